#include "runtime/tp/norm.h"

#include <gtest/gtest.h>

#include "runtime/tp/own_shard.h"
#include "runtime/tp/pointwise.h"
#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

constexpr double kNormEpsilon = 1e-3;

/// Written out once more, in f64.
Values norm_on_host(const Values& x, std::int64_t width, tp::NormKind kind) {
  Values y(x.size());
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(width)) {
    const auto n = static_cast<std::size_t>(width);
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[row + i] / static_cast<double>(width);
    if (kind == tp::NormKind::rms) mean = 0;
    for (std::size_t i = 0; i < n; ++i)
      square += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(width);
    for (std::size_t i = 0; i < n; ++i) {
      const auto col = static_cast<std::int64_t>(i);
      y[row + i] = (x[row + i] - mean) / std::sqrt(square + kNormEpsilon) * weight_at(3, col);
      if (kind == tp::NormKind::layer) y[row + i] += bias_at(0, col);
    }
  }
  return y;
}

/// Roundings to the dtype: of the weights and inputs none (multiples of 1/16), of the result one; f32 sums besides.
void expect_rounded(const Values& got, const Values& expected, DType dtype, const std::string& what) {
  const double tolerance = dtype == DType::f16 ? 1e-3 : 1e-5;  // f16: half a unit is 2^-11 of the value
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - expected[i]), tolerance * (1 + std::abs(expected[i]))) << what << ", element " << i;
  }
}

/// Placements of an input: by columns (what a layer leaves), by rows, tiles, copies.
std::vector<DPPolicy> input_placements() {
  return {spread(), tp::dense_rows(), policy_of(CubeSplit::column_wise, PeSplit::row_wise),
          policy_of(CubeSplit::row_wise, PeSplit::tiled_column_major), DPPolicy()};
}

class Norms : public ::testing::TestWithParam<std::tuple<SchedulingKind, tp::NormKind, DType>> {
 protected:
  tp::NormOptions options() const {
    tp::NormOptions options;
    options.kind = std::get<1>(GetParam());
    options.dtype = std::get<2>(GetParam());
    options.epsilon = kNormEpsilon;
    return options;
  }
  RunOptions run() const { return scheduled(std::get<0>(GetParam())); }
};

/// 24 columns on 4 PEs are equal shards, 22 are not; 5 rows leave uneven ones, 3 leave PEs without any, or fewer rows
/// in a cube than PEs that hold columns of them.
TEST_P(Norms, EveryRowIsNormalisedWhateverThePlacements) {
  MachineRun host(machine_of(2, 2, 2), run());
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        for (const Shape shape : {Shape{5, 24}, Shape{3, 22}, Shape{1, 24}}) {
          tp::NormOptions wanted = options();
          for (const DPPolicy& output :
               {tp::dense_rows(), spread(), policy_of(CubeSplit::row_wise, PeSplit::column_wise)}) {
            wanted.output = output;
            tp::Norm norm(state, shape.cols, wanted);
            norm.load_weight([](std::int64_t, std::int64_t col) { return weight_at(3, col); });
            if (wanted.kind == tp::NormKind::layer) norm.load_bias(bias_at);
            const Values x = values_of(shape, input_at, ctx.rank(), 0),
                         expected = norm_on_host(x, shape.cols, wanted.kind);
            for (const DPPolicy& input : input_placements()) {
              const Tensor y = norm.forward(ctx.from_host(x, shape, wanted.dtype, input, "x"));
              expect_rounded(y.to_host(), expected, wanted.dtype, to_string(input));
              ++checked;
            }
          }
        }
      },
      std::tuple<>(), 2);
  EXPECT_EQ(checked, 2 * 3 * 3 * 5);
}

/// The sum that the layers after it read is rounded, and what is normalised is that.
TEST_P(Norms, AResidualIsAddedInTheSamePassAndTheSumIsKept) {
  MachineRun host(machine_of(1, 2, 2), run());
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 1);
        for (const Shape shape : {Shape{5, 24}, Shape{3, 22}}) {
          const tp::NormOptions wanted = options();
          tp::Norm norm(state, shape.cols, wanted);
          norm.load_weight([](std::int64_t, std::int64_t col) { return weight_at(3, col); });
          if (wanted.kind == tp::NormKind::layer) norm.load_bias(bias_at);
          const Values x = values_of(shape, input_at), residual = values_of(shape, weight_at);
          Values expected = x;
          for (std::size_t i = 0; i < x.size(); ++i) expected[i] += residual[i];  // exact in f16
          for (const DPPolicy& input : input_placements()) {
            const Tensor sum = norm.place(shape.rows), y = norm.place(shape.rows);
            norm.forward(ctx.from_host(x, shape, wanted.dtype, input, "x"),
                         ctx.from_host(residual, shape, wanted.dtype, tp::dense_rows(), "r"), sum, y);
            EXPECT_EQ(sum.to_host(), expected) << to_string(input);
            expect_rounded(y.to_host(), norm_on_host(expected, shape.cols, wanted.kind), wanted.dtype,
                           to_string(input));
          }
        }
      },
      std::tuple<>(), 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Norms,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(tp::NormKind::rms, tp::NormKind::layer),
                                            ::testing::Values(DType::f32, DType::f16)));

constexpr std::uint64_t kWide = 64, kWideBytes = kWide * 2, kHolders = 4;  // f16
/// What PEs that each hold a quarter of the columns read for a norm of so many rows, bytes.
std::uint64_t read_for(std::int64_t rows) {
  MachineRun host(machine_of(1, 1, kHolders));
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        tp::NormOptions options;
        options.output = DPPolicy().pe(PeSplit::column_wise);
        const tp::Norm norm(tp::initialize_model_parallel(ctx, 1), kWide, options);
        norm.forward(ctx.zeros({rows, kWide}, DType::f16, DPPolicy(), "x"));
      },
      std::tuple<>(), 1);
  std::uint64_t bytes = 0;
  for (std::uint16_t pe = 0; pe < kHolders; ++pe) bytes += host.machine.pe({0, 0, pe}).statistics().dma_read_bytes;
  return bytes;
}

TEST(Norm, PesThatHoldColumnsOfTheSameRowsDealTheRowsOut) {
  EXPECT_EQ(read_for(6), 6 * kWideBytes + kHolders * kWideBytes) << "each row once, the weights on every PE";
}
TEST(Norm, OfFewerRowsThanPesEachReadsAllOfThem) {
  EXPECT_EQ(read_for(3), 3 * kHolders * kWideBytes + kWideBytes) << "and the weights of its own columns";
}

TEST(Norm, RowsLieInEveryCubeOnPesOrOverTheCubesByTheirNumber) {
  MachineRun host(machine_of(1, 2, 2));
  host.runtime.spawn(
      [](Context& ctx) {
        ctx.init_process_group();
        const tp::Norm norm(tp::initialize_model_parallel(ctx, 1), 8);
        const auto lies = [&](std::int64_t rows) { return to_string(norm.place(rows).policy()); };
        EXPECT_EQ(lies(64), to_string(DPPolicy().pe(PeSplit::row_wise)));
        EXPECT_EQ(lies(65), to_string(tp::dense_rows()));
        EXPECT_EQ(lies(512), to_string(tp::dense_rows()));
        EXPECT_EQ(lies(513), to_string(tp::rows_over_cubes()));
      },
      std::tuple<>(), 1);
}

TEST(Norm, WhatDoesNotFitIsNamed) {
  MachineRun host(machine_of(1, 1, 1));
  host.runtime.spawn(
      [](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 1);
        EXPECT_EQ(error_text([&] { tp::Norm(state, 0); }), "Norm 'norm': width is 0: give 1 or more");
        tp::Norm norm(state, 8);
        const Tensor x = ctx.zeros({2, 9}, DType::f16, {}, "x");
        EXPECT_EQ(error_text([&] { norm.forward(x); }), "Norm 'norm': the input is 2x9 f16, not 2x8 f16");
        EXPECT_EQ(error_text([&] { norm.load_bias(bias_at); }), "Norm 'norm' has no bias");
        const tp::ParallelState none;
        EXPECT_EQ(error_text([&] { tp::Norm(none, 8); }),
                  "the tensor-parallel state is used before it is initialised: call initialize_model_parallel first");
      },
      std::tuple<>(), 1);
}

/// Sums, products, rows and positions of two placements that have nothing in common.
TEST(Pointwise, WorksOnEveryElementWhateverThePlacements) {
  MachineRun host(machine_of(1, 2, 2));
  int checked = 0;
  host.runtime.drive([&](Context& ctx) {
    const Shape shape{6, 22};
    const Values a = values_of(shape, input_at), b = values_of(shape, weight_at), table = values_of({9, 22}, weight_at);
    for (const DPPolicy& left : input_placements()) {
      for (const DPPolicy& right : input_placements()) {
        const auto tensor = [&](const Values& values, Shape form, const DPPolicy& policy) {
          return ctx.from_host(values, form, DType::f16, policy, "t");
        };
        Values sum = a, product = a, positions = a;
        for (std::size_t i = 0; i < a.size(); ++i) {
          sum[i] += b[i];
          product[i] *= b[i];
          const std::size_t row = i / 22, at = 4 + row % 3;  // two sequences of 3, from position 4 on
          positions[i] += table[at * 22 + i % 22];
        }
        const Tensor x = tensor(b, shape, right);
        const Tensor y1 = tensor(a, shape, left), y2 = tensor(a, shape, left), y3 = tensor(a, shape, left);
        ctx.wait(tp::add(ctx, "add", y1, x));
        ctx.wait(tp::multiply(ctx, "multiply", y2, x));
        ctx.wait(tp::add_positions(ctx, "positions", y3, tensor(table, {9, 22}, right), 3, 4));
        EXPECT_EQ(y1.to_host(), sum);
        EXPECT_EQ(y2.to_host(), in_f16(product));
        EXPECT_EQ(y3.to_host(), positions);
        const Tensor part = ctx.empty({2, 22}, DType::f16, left, "part");
        ctx.wait(tp::copy_rows(ctx, "rows", x, 3, part));
        EXPECT_EQ(part.to_host(), values_of({2, 22}, weight_at, 3, 0));
        ++checked;
      }
    }
    EXPECT_EQ(error_text([&] {
                tp::add(ctx, "add", ctx.zeros({2, 2}, DType::f16, {}, "y"), Tensor());
              }),
              "'add': an empty handle does not fit 'y' (2x2 f16, SIP 0)");
  });
  EXPECT_EQ(checked, 25);
}

}  // namespace
}  // namespace kernbench::testing
