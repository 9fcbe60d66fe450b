#include "runtime/tp/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/tp/gemm_planner.h"
#include "runtime/tp/regions.h"
#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

constexpr std::array kCubeSplits = {CubeSplit::replicate, CubeSplit::column_wise, CubeSplit::row_wise};
constexpr std::array kPeSplits = {PeSplit::replicate, PeSplit::column_wise, PeSplit::row_wise,
                                  PeSplit::tiled_column_major, PeSplit::tiled_row_major};

/// Products of multiples of 1/16 and 1/8 add up exactly in f32, so every placement has to give the same bits: the exact
/// sum, rounded once.
TEST(TpGemm, GivesTheSameBitsForEveryPlacement) {
  MachineRun host(machine_of(1, 2, 2));
  const std::int64_t m = 5, k = 13, n = 7;
  const Values x = values_of({m, k}, input_at), w = values_of({k, n}, weight_at);
  const Values expected = in_f16(product(x, w, m, k, n));
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        for (const CubeSplit cube : kCubeSplits) {
          for (const PeSplit pe : kPeSplits) {
            const DPPolicy one = policy_of(cube, pe), other = policy_of(CubeSplit::row_wise, PeSplit::column_wise);
            for (int varied = 0; varied < 3; ++varied) {
              const Tensor a = ctx.from_host(x, {m, k}, DType::f16, varied == 0 ? one : other, "a");
              const Tensor b = ctx.from_host(w, {k, n}, DType::f16, varied == 1 ? one : other, "b");
              const Tensor c = ctx.empty({m, n}, DType::f16, varied == 2 ? one : other, "c");
              ctx.wait(tp::gemm(ctx, "gemm", {a, b, Tensor(), c, Activation::none}));
              ASSERT_EQ(c.to_host(), expected) << to_string(cube) << " " << to_string(pe) << " " << varied;
              for (std::size_t copy = 1; copy < c.copies(); ++copy) {
                ASSERT_EQ(c.bytes_to_host(copy), c.bytes_to_host(0));
              }
              ++checked;
            }
          }
        }
      },
      std::tuple<>(), 1);
  EXPECT_EQ(checked, 45);
}

TEST(TpGemm, AddsTheBiasOnceAndThenTheActivation) {
  MachineRun host(machine_of(1, 2, 2));
  const std::int64_t m = 3, k = 8, n = 6;
  const Values x = values_of({m, k}, input_at), w = values_of({k, n}, weight_at);
  Values expected = product(x, w, m, k, n);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::max(0.0, expected[i] + bias_at(0, static_cast<std::int64_t>(i) % n));
  }
  host.runtime.spawn(
      [&](Context& ctx) {
        for (const tp::LinearPlacement& placement : two_placements()) {
          const Tensor a = ctx.from_host(x, {m, k}, DType::f16, placement.input, "a");
          const Tensor b = ctx.from_host(w, {k, n}, DType::f16, placement.weight, "b");
          const Tensor bias = ctx.from_host(values_of({1, n}, bias_at), {1, n}, DType::f16, placement.bias, "bias");
          const Tensor c = ctx.empty({m, n}, DType::f16, placement.output, "c");
          ctx.wait(tp::gemm(ctx, "gemm", {a, b, bias, c, Activation::relu}));
          EXPECT_EQ(c.to_host(), in_f16(expected));
        }
      },
      std::tuple<>(), 1);
}

TEST(TpGemm, TilesLargerThanATileAreSummedOverAllOfK) {
  MachineRun host(machine_of(1, 1, 2));
  const std::int64_t m = 70, k = 300, n = 150;
  const Values x = values_of({m, k}, input_at), w = values_of({k, n}, weight_at);
  host.runtime.spawn(
      [&](Context& ctx) {
        const Tensor a =
            ctx.from_host(x, {m, k}, DType::f32, policy_of(CubeSplit::replicate, PeSplit::column_wise), "a");
        const Tensor b = ctx.from_host(w, {k, n}, DType::f32, policy_of(CubeSplit::replicate, PeSplit::row_wise), "b");
        const Tensor c = ctx.empty({m, n}, DType::f32, policy_of(CubeSplit::replicate, PeSplit::column_wise), "c");
        ctx.wait(tp::gemm(ctx, "gemm", {a, b, Tensor(), c, Activation::none}));
        EXPECT_EQ(c.to_host(), product(x, w, m, k, n));  // exact in f32
      },
      std::tuple<>(), 1);
}

/// Three rows of b over four PEs: one has rows of c and nothing to sum, and still takes its turn with the others, in
/// the order of blocks that its cube has.
TEST(TpGemm, APeWithoutRowsOfBKeepsTheOrderOfItsCube) {
  MachineRun host(machine_of(1, 3, 4));
  const std::int64_t m = 80, n = 12;
  const DPPolicy over_cubes = policy_of(CubeSplit::column_wise, PeSplit::replicate);
  const DPPolicy rows = policy_of(CubeSplit::replicate, PeSplit::row_wise);
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        for (const std::int64_t k : {2, 3}) {
          for (const DPPolicy& of_c : {rows, policy_of(CubeSplit::replicate, PeSplit::replicate)}) {
            const Values x = values_of({m, k}, input_at), w = values_of({k, n}, weight_at);
            const Tensor a = ctx.from_host(x, {m, k}, DType::f16, over_cubes, "a");
            const Tensor b = ctx.from_host(w, {k, n}, DType::f16, rows, "b");
            const Tensor c = ctx.empty({m, n}, DType::f16, of_c, "c");
            const tp::GemmOperands operands{a, b, Tensor(), c, Activation::none};
            const std::string mapping = "split:50x40x32,rows=1,chains=1";
            ctx.wait(tp::gemm(ctx, "gemm", operands, tp::plan_gemm(ctx.map(), "gemm", operands, mapping)));
            EXPECT_EQ(c.to_host(), in_f16(product(x, w, m, k, n))) << k;
            for (std::size_t copy = 1; copy < c.copies(); ++copy) {
              EXPECT_EQ(c.bytes_to_host(copy), c.bytes_to_host(0)) << k << " copy " << copy;
            }
            ++checked;
          }
        }
      },
      std::tuple<>(), 1);
  EXPECT_EQ(checked, 4);
}

/// Sums whose last bits depend on their order: copies of the result have the same ones, wherever they lie.
TEST(TpGemm, CopiesHaveTheSameBitsWhereSumsAreNotExact) {
  MachineRun host(machine_of(1, 3, 2));
  const std::int64_t m = 5, k = 200, n = 12;
  const auto odd = [](std::int64_t row, std::int64_t col) { return std::sin(static_cast<double>(31 * row + col)); };
  const Values x = values_of({m, k}, odd), w = values_of({k, n}, odd);
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        for (const tp::GemmMapping::Kind kind : tp::gemm_mapping_kinds()) {
          for (const DPPolicy& of_a : {policy_of(CubeSplit::column_wise, PeSplit::replicate),
                                       policy_of(CubeSplit::column_wise, PeSplit::column_wise)}) {
            for (const DPPolicy& of_b : {policy_of(CubeSplit::replicate, PeSplit::row_wise),
                                         policy_of(CubeSplit::row_wise, PeSplit::row_wise)}) {
              for (const PeSplit pe : {PeSplit::replicate, PeSplit::column_wise, PeSplit::row_wise}) {
                const DPPolicy of_c = policy_of(CubeSplit::replicate, pe);
                const Tensor a = ctx.from_host(x, {m, k}, DType::f32, of_a, "a");
                const Tensor b = ctx.from_host(w, {k, n}, DType::f32, of_b, "b");
                const Tensor c = ctx.empty({m, n}, DType::f32, of_c, "c");
                const tp::GemmOperands operands{a, b, Tensor(), c, Activation::none};
                tp::GemmPlan plan;
                try {
                  plan = tp::plan_gemm(ctx.map(), "gemm", operands,
                                       std::string(to_string(kind)) + ":5x12x16,rows=1,chains=1");
                } catch (const std::invalid_argument&) {
                  continue;  // does not serve these
                }
                ctx.wait(tp::gemm(ctx, "gemm", operands, plan));
                for (std::size_t copy = 1; copy < c.copies(); ++copy) {
                  EXPECT_EQ(c.bytes_to_host(copy), c.bytes_to_host(0))
                      << to_string(kind) << " " << to_string(of_a) << " " << to_string(of_b) << " " << to_string(of_c);
                }
                ++checked;
              }
            }
          }
        }
      },
      std::tuple<>(), 1);
  EXPECT_GE(checked, 24 + 4) << "stream and vector serve all";
}

/// A row of activations that a column layer left cut over all PEs is one range of virtual addresses: it is read as if
/// it lay in one piece.
TEST(TpGemm, ARowCutOverPesIsReadInOnePiece) {
  OpCounter counter;
  MachineRun host(machine_of(1, 2, 2), {}, &counter);
  const std::int64_t k = 64, n = 8;
  const Values x = values_of({1, k}, input_at), w = values_of({k, n}, weight_at);
  const DPPolicy columns = policy_of(CubeSplit::column_wise, PeSplit::column_wise);
  host.runtime.spawn(
      [&](Context& ctx) {
        const Tensor b = ctx.from_host(w, {k, n}, DType::f16, columns, "b");
        for (const auto& [name, policy] : {std::pair("whole", DPPolicy()), std::pair("cut", columns)}) {
          const Tensor a = ctx.from_host(x, {1, k}, DType::f16, policy, "a");
          const Tensor c = ctx.empty({1, n}, DType::f16, columns, "c");
          const tp::GemmOperands operands{a, b, Tensor(), c, Activation::none};
          ctx.wait(tp::gemm(ctx, name, operands, tp::plan_gemm(ctx.map(), name, operands, "stream")));
          EXPECT_EQ(c.to_host(), in_f16(product(x, w, 1, k, n)));
        }
      },
      std::tuple<>(), 1);
  EXPECT_EQ(counter.ops.at("cut"), counter.ops.at("whole"));
}

TEST(TpGemm, RefusesOperandsThatDoNotFit) {
  MachineRun host(machine_of(1, 1, 1));
  host.runtime.spawn(
      [&](Context& ctx) {
        const Tensor a = ctx.zeros({2, 3}, DType::f16, {}, "a"), b = ctx.zeros({4, 5}, DType::f16, {}, "b");
        const Tensor c = ctx.zeros({2, 5}, DType::f16, {}, "c"), f32 = ctx.zeros({3, 5}, DType::f32, {}, "w");
        const Tensor i8 = ctx.zeros({2, 5}, DType::i8, {}, "i");
        const auto error = [&](const Tensor& x, const Tensor& w, const Tensor& y, const Tensor& residual = {}) {
          return error_text([&] { tp::gemm(ctx, "g", {x, w, Tensor(), y, Activation::none, {}, residual}); });
        };
        EXPECT_EQ(error(a, b, c), "gemm 'g': 2x3 times 4x5 does not give 2x5");
        EXPECT_EQ(error(a, f32, c), "gemm 'g': tensor 'w' is f32, the result is f16");
        EXPECT_EQ(error(a, f32, i8), "gemm 'g': i8 is no floating-point type");
        EXPECT_EQ(error(a, Tensor(), c), "gemm 'g': an operand is an empty handle");
        const Tensor half = ctx.zeros({3, 5}, DType::f16, {}, "h");
        EXPECT_EQ(error(a, half, c, half), "gemm 'g': the residual is 3x5, not 2x5");
        EXPECT_EQ(error(a, half, c, i8), "gemm 'g': tensor 'i' is i8, the result is f16");
      },
      std::tuple<>(), 1);
}

TEST(TpRegions, ScatterTakesTheRanksColumnsAndGatherPutsThemBack) {
  MachineRun host(machine_of(2, 2, 2));
  const Shape shape{3, 10};
  const Values whole = values_of(shape, input_at);
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        for (const tp::LinearPlacement& placement : two_placements()) {
          const Tensor x = ctx.from_host(whole, shape, DType::f16, placement.input, "x");
          const Tensor part = tp::scatter_to_region(state, x, placement.output, "part");
          EXPECT_EQ(part.shape(), (Shape{3, 5}));
          EXPECT_EQ(part.to_host(), values_of({3, 5}, input_at, 0, ctx.rank() * 5));
          const Tensor back = tp::gather_from_region(state, part, placement.output, "back");
          EXPECT_EQ(back.to_host(), whole);
          ++checked;
        }
        EXPECT_EQ(error_text([&] {
                    tp::scatter_to_region(state, ctx.zeros({1, 3}, DType::f16, {}, "odd"), {}, "s");
                  }),
                  "scatter 's': the tensor has 3 columns, which 2 ranks do not divide");
      },
      std::tuple<>(), 2);
  EXPECT_EQ(checked, 4);
}

/// Placements of a gathered tensor whose shards lie within a rank's columns, across those of several ranks, and in
/// copies.
std::vector<DPPolicy> gathered_policies() {
  return {policy_of(CubeSplit::column_wise, PeSplit::column_wise), policy_of(CubeSplit::replicate, PeSplit::replicate),
          policy_of(CubeSplit::row_wise, PeSplit::tiled_row_major),
          policy_of(CubeSplit::column_wise, PeSplit::row_wise), policy_of(CubeSplit::replicate, PeSplit::column_wise)};
}

class TpGather : public ::testing::TestWithParam<std::tuple<int, SchedulingKind>> {};
INSTANTIATE_TEST_SUITE_P(Regions, TpGather,
                         ::testing::Combine(::testing::Values(1, 2, 4),
                                            ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds)),
                         [](const auto& info) {
                           return "tp" + std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == SchedulingKind::rounds ? "_rounds" : "_concurrent");
                         });

TEST_P(TpGather, IsOneAllGatherAndNothingElse) {
  const auto [ranks, scheduling] = GetParam();
  MachineRun host(machine_of(static_cast<std::uint16_t>(ranks), 2, 2), scheduled(scheduling));
  int gathered = 0;
  host.runtime.spawn(
      [&, ranks = ranks](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, ranks);
        // One row, several; columns that neither the PEs nor the cubes divide.
        for (const Shape own : {Shape{1, 7}, Shape{3, 5}, Shape{4, 8}, Shape{2, 1}}) {
          const Shape whole{own.rows, own.cols * ranks};
          const std::int64_t first = ctx.rank() * own.cols;
          const Tensor x = ctx.from_host(values_of(own, weight_at, 0, first), own, DType::f16, spread(), "x");
          for (const DPPolicy& policy : gathered_policies()) {
            const Tensor full = tp::gather_from_region(state, x, policy, "full");
            EXPECT_EQ(full.shape(), whole);
            EXPECT_EQ(full.to_host(), values_of(whole, weight_at)) << own.str() << " " << to_string(policy);
            for (std::size_t copy = 1; copy < full.copies(); ++copy) {
              EXPECT_EQ(full.bytes_to_host(copy), full.bytes_to_host(0)) << own.str() << " " << to_string(policy);
            }
            ++gathered;
          }
        }
      },
      std::tuple<>(), ranks);
  EXPECT_EQ(gathered, ranks * 4 * 5);
  EXPECT_EQ(host.runtime.host_trace().size(), static_cast<std::size_t>(gathered));
  for (const HostTraceEntry& entry : host.runtime.host_trace()) {
    EXPECT_EQ(entry.kind, "collective") << entry.name;
    EXPECT_EQ(entry.operation, "all_gather") << entry.name;
  }
}

TEST(TpRegions, CopyIsTheIdentityAndReduceSumsOverTheRanks) {
  MachineRun host(machine_of(2, 1, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        const Tensor x = ctx.full(ctx.rank() + 1, {2, 8}, DType::f16, {}, "x");
        const Ps before = ctx.now();
        EXPECT_EQ(tp::copy_to_region(state, x).va(), x.va());
        EXPECT_EQ(ctx.now(), before);
        tp::reduce_from_region(state, x);
        EXPECT_EQ(x.to_host(), Values(16, 3.0));
      },
      std::tuple<>(), 2);
}

}  // namespace
}  // namespace kernbench::testing
