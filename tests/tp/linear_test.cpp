#include "runtime/tp/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

constexpr int kRanks = 2;
constexpr std::int64_t kRows = 3, kIn = 20, kOut = 24;

tp::ParallelState start(Context& ctx) {
  ctx.init_process_group();
  return tp::initialize_model_parallel(ctx, ctx.world_size());
}

Tensor input(Context& ctx, const tp::LinearPlacement& placement, std::int64_t cols = kIn, std::int64_t from = 0) {
  return ctx.from_host(values_of({kRows, cols}, input_at, 0, from), {kRows, cols}, DType::f16, placement.input, "x");
}

tp::LinearOptions options_of(const tp::LinearPlacement& placement, bool bias = false) {
  tp::LinearOptions options;
  options.name = "layer";
  options.bias = bias;
  options.placement = placement;
  return options;
}

Values whole_product(bool bias) {
  Values y = product(values_of({kRows, kIn}, input_at), values_of({kIn, kOut}, weight_at), kRows, kIn, kOut);
  for (std::size_t i = 0; bias && i < y.size(); ++i) y[i] += bias_at(0, static_cast<std::int64_t>(i) % kOut);
  return y;
}

class Layers : public ::testing::TestWithParam<SchedulingKind> {};

TEST_P(Layers, ColumnRankOwnsItsColumnsWhateverThePlacement) {
  MachineRun host(machine_of(kRanks, 2, 2), scheduled(GetParam()));
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        for (const tp::LinearPlacement& placement : two_placements()) {
          tp::ColumnParallelLinear layer(state, kIn, kOut, options_of(placement, true));
          layer.load_weight(weight_at);
          layer.load_bias(bias_at);
          const std::int64_t own = kOut / kRanks, first = ctx.rank() * own;
          EXPECT_EQ(layer.weight().shape(), (Shape{kIn, own}));
          EXPECT_EQ(layer.weight().to_host(), values_of({kIn, own}, weight_at, 0, first));
          for (const ShardSpec& shard : layer.weight().shards()) EXPECT_EQ(shard.sip, ctx.rank());
          const Tensor y = layer.forward(input(ctx, placement));
          EXPECT_EQ(y.shape(), (Shape{kRows, own}));
          Values expected =
              product(values_of({kRows, kIn}, input_at), values_of({kIn, own}, weight_at, 0, first), kRows, kIn, own);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] += bias_at(0, first + static_cast<std::int64_t>(i) % own);
          }
          EXPECT_EQ(y.to_host(), in_f16(expected));  // sums are exact in f32
          ++checked;
        }
      },
      std::tuple<>(), kRanks);
  EXPECT_EQ(checked, 2 * kRanks);
}

TEST_P(Layers, ColumnGathersItsOutputOnEveryRank) {
  MachineRun host(machine_of(kRanks, 2, 2), scheduled(GetParam()));
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        for (const tp::LinearPlacement& placement : two_placements()) {
          tp::ColumnParallelLinear layer(state, kIn, kOut, options_of(placement), true);
          layer.load_weight(weight_at);
          const Tensor y = layer.forward(input(ctx, placement));
          EXPECT_EQ(y.shape(), (Shape{kRows, kOut}));
          EXPECT_EQ(y.to_host(), in_f16(whole_product(false)));
        }
      },
      std::tuple<>(), kRanks);
}

TEST_P(Layers, RowRankOwnsItsRowsAndEveryRankEndsWithTheSameBits) {
  MachineRun host(machine_of(kRanks, 2, 2), scheduled(GetParam()));
  std::map<int, std::vector<std::vector<std::uint8_t>>> outputs;
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        for (const tp::LinearPlacement& placement : two_placements()) {
          tp::RowParallelLinear layer(state, kIn, kOut, options_of(placement, true));
          layer.load_weight(weight_at);
          layer.load_bias(bias_at);
          const std::int64_t own = kIn / kRanks, first = ctx.rank() * own;
          EXPECT_EQ(layer.weight().shape(), (Shape{own, kOut}));
          EXPECT_EQ(layer.weight().to_host(), values_of({own, kOut}, weight_at, first, 0));
          const Tensor y = layer.forward(input(ctx, placement, own, first));
          EXPECT_EQ(y.shape(), (Shape{kRows, kOut}));
          expect_close(y.to_host(), whole_product(true), "row");
          outputs[ctx.rank()].push_back(y.bytes_to_host());
        }
      },
      std::tuple<>(), kRanks);
  ASSERT_EQ(outputs.size(), static_cast<std::size_t>(kRanks));
  for (const auto& [rank, bytes] : outputs) EXPECT_EQ(bytes, outputs[0]) << "rank " << rank;
}

TEST_P(Layers, RowScattersAnInputThatIsNotParallel) {
  MachineRun host(machine_of(kRanks, 2, 2), scheduled(GetParam()));
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        for (const tp::LinearPlacement& placement : two_placements()) {
          tp::RowParallelLinear layer(state, kIn, kOut, options_of(placement), false);
          layer.load_weight(weight_at);
          expect_close(layer.forward(input(ctx, placement)).to_host(), whole_product(false), "scattered");
        }
      },
      std::tuple<>(), kRanks);
}

TEST_P(Layers, TraceHasOneEntryPerLaunchAndPerCollective) {
  MachineRun host(machine_of(kRanks, 1, 2), scheduled(GetParam()));
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        tp::ColumnParallelLinear column(state, kIn, kOut, options_of({}, true));      // 1 launch
        tp::RowParallelLinear row(state, kOut, kIn, options_of({}));                  // 1 launch, 1 collective
        tp::RowParallelLinear biased(state, kIn, kOut, options_of({}, true), false);  // 3 launches, 1 collective
        biased.forward(row.forward(column.forward(input(ctx, {}))));
      },
      std::tuple<>(), kRanks);
  std::map<std::pair<int, std::string>, int> entries;
  for (const HostTraceEntry& entry : host.runtime.host_trace()) ++entries[{entry.rank, entry.kind}];
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ((entries[{rank, "launch"}]), 5);
    EXPECT_EQ((entries[{rank, "collective"}]), 2);
  }
  EXPECT_EQ(entries.size(), 4u);
}

/// With one rank, so that every switch is its own: at least one wait or collective, two for the row layer.
TEST_P(Layers, EveryForwardYields) {
  MachineRun host(machine_of(1, 1, 2), scheduled(GetParam()));
  const auto waits_of = [&](const std::function<void()>& forward) {
    std::pair<std::uint64_t, std::size_t> before(host.runtime.switches(), host.runtime.host_trace().size());
    forward();
    return std::pair(host.runtime.switches() - before.first, host.runtime.host_trace().size() - before.second);
  };
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        const Tensor x = input(ctx, {});
        const tp::ColumnParallelLinear column(state, kIn, kOut, options_of({}));
        const auto [column_yields, column_calls] = waits_of([&] { column.forward(x); });
        EXPECT_EQ(column_calls, 1u) << "waited for";
        EXPECT_GE(column_yields, 1u);
        const tp::RowParallelLinear row(state, kIn, kOut, options_of({}));
        const auto [row_yields, row_calls] = waits_of([&] { row.forward(x); });
        EXPECT_EQ(row_calls, 2u);
        EXPECT_GE(row_yields, 2u);
      },
      std::tuple<>(), 1);
}

/// All of a pass into tensors that are there is launches and collectives, and in it no queue is installed: the second
/// pass takes no less.
TEST_P(Layers, APassIntoTensorsThatArePlacedAndPreparedIsLaunchesAndCollectivesAlone) {
  MachineRun host(machine_of(kRanks, 2, 2), scheduled(GetParam()));
  std::vector<Ps> times, starts;
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        const tp::LinearPlacement placement;
        tp::ColumnParallelLinear column(state, kIn, kOut, options_of(placement), true);
        tp::RowParallelLinear row(state, kOut, kIn, options_of(placement, true), false);
        column.load_weight(weight_at);
        row.load_weight([](std::int64_t r, std::int64_t c) { return r == c ? 1.0 : 0.0; });
        const Tensor x = input(ctx, placement);
        const tp::ForwardTensors hidden = column.place(kRows), y = row.place(kRows);
        column.prepare(x, hidden);
        row.prepare(hidden.output, y);
        Values expected = in_f16(whole_product(false)), first;
        for (std::int64_t r = 0; r < kRows; ++r) {  // the unit matrix, and fewer columns
          first.insert(first.end(), expected.begin() + r * kOut, expected.begin() + r * kOut + kIn);
        }
        for (int pass = 0; pass < 2; ++pass) {
          ctx.barrier();
          const Ps begin = ctx.now();
          const Tensor result = row.forward(column.forward(x, hidden), y);
          if (ctx.rank() == 0) times.push_back(ctx.now() - begin);
          if (ctx.rank() == 0) starts.push_back(begin);
          EXPECT_EQ(result.va(), y.output.va());
          EXPECT_EQ(result.to_host(), first);
          EXPECT_EQ(hidden.output.to_host(), expected);
        }
      },
      std::tuple<>(), kRanks);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_NEAR(static_cast<double>(times[0]), static_cast<double>(times[1]), static_cast<double>(times[1]) / 20);
  if (GetParam() == SchedulingKind::rounds) return;  // there a rank waits for the round, too
  Ps idle = 0, until = starts[0];  // entries are in order of completion; launches come before the one ahead has ended
  for (const HostTraceEntry& entry : host.runtime.host_trace()) {
    if (entry.rank != 0 || entry.t_submit < starts[0] || entry.t_complete > starts[0] + times[0]) continue;
    idle += std::max(entry.t_submit, until) - until;
    until = entry.t_complete;
  }
  EXPECT_EQ(idle, 0U);
  EXPECT_EQ(until, starts[0] + times[0]);
}

INSTANTIATE_TEST_SUITE_P(Schedulings, Layers, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

/// The whole model against the host; the activation lies between the layers and is not linear, so that a missing or
/// doubled one shows. All ranks to the bit. f32: sums of a few dozen terms below 8, 2^-24 of each.
class MlpOfRanks : public ::testing::TestWithParam<std::tuple<SchedulingKind, int, DType>> {};

TEST_P(MlpOfRanks, EqualsTheHostsModelOnEveryRank) {
  const auto [scheduling, world, dtype] = GetParam();
  RunOptions options_of_run = scheduled(scheduling);
  if (world < 8 || dtype == DType::f32) options_of_run.fidelity = Fidelity::all(Grade::fast);
  MachineRun host(machine_of(static_cast<std::uint16_t>(world), 2, 1), options_of_run);
  const std::int64_t in = 12, hidden = 32, out = 10;
  Values h = product(values_of({kRows, in}, input_at), values_of({in, hidden}, weight_at), kRows, in, hidden);
  for (std::size_t i = 0; i < h.size(); ++i)
    h[i] = std::max(0.0, h[i] + bias_at(0, static_cast<std::int64_t>(i) % hidden));
  if (dtype == DType::f16) h = in_f16(h);
  Values y = product(h, values_of({hidden, out}, weight_at), kRows, hidden, out);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias_at(0, static_cast<std::int64_t>(i) % out);
  std::map<int, std::vector<std::uint8_t>> outputs;
  host.runtime.spawn(
      [&, type = dtype](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        tp::LinearOptions options = options_of({}, true);
        options.dtype = type;
        options.activation = Activation::relu;
        tp::ColumnParallelLinear fc1(state, in, hidden, options);
        options.activation = Activation::none;
        tp::RowParallelLinear fc2(state, hidden, out, options);
        fc1.load_weight(weight_at);
        fc1.load_bias(bias_at);
        fc2.load_weight(weight_at);
        fc2.load_bias(bias_at);
        const Tensor x = ctx.from_host(values_of({kRows, in}, input_at), {kRows, in}, type, {}, "x");
        const Tensor result = fc2.forward(fc1.forward(x));
        const Values got = result.to_host();
        ASSERT_EQ(got.size(), y.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_LE(std::abs(got[i] - y[i]), (type == DType::f16 ? 1e-2 : 1e-5) * (1 + std::abs(y[i]))) << i;
        outputs[ctx.rank()] = result.bytes_to_host();
      },
      std::tuple<>(), world);
  ASSERT_EQ(outputs.size(), static_cast<std::size_t>(world));
  for (const auto& [rank, bytes] : outputs) EXPECT_EQ(bytes, outputs[0]) << "rank " << rank;
}

INSTANTIATE_TEST_SUITE_P(Ranks, MlpOfRanks,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(1, 2, 4, 8), ::testing::Values(DType::f32, DType::f16)));

/// Chunks of rows: 3 chunks of 7 rows, 40 of which 32 fill the array and 8 do not, more chunks than rows. Every rank
/// ends with the same bits, and since sums here are exact in any order, with those of the layer without chunks. One
/// GEMM and one all-reduce a chunk, one launch that joins them.
class OverlappedRow : public ::testing::TestWithParam<std::tuple<SchedulingKind, std::tuple<std::int64_t, int, int>>> {
};

TEST_P(OverlappedRow, GivesTheBitsOfTheLayerWithoutChunks) {
  const auto [rows, chunks, pieces] = std::get<1>(GetParam());
  const SchedulingKind scheduling = std::get<0>(GetParam());
  MachineRun host(machine_of(kRanks, 2, 2), scheduled(scheduling));
  std::map<int, std::vector<std::uint8_t>> outputs;
  Ps overlapped = 0;  // begin of the passes in chunks
  host.runtime.spawn(
      [&, rows = rows, chunks = chunks](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        for (const tp::LinearPlacement& placement : two_placements()) {
          std::vector<Values> results;
          for (const int count : {1, chunks}) {
            tp::LinearOptions options = options_of(placement, true);
            options.overlap_chunks = count;
            options.activation = Activation::relu;
            tp::RowParallelLinear layer(state, kIn, kOut, options);
            layer.load_weight(weight_at);
            layer.load_bias(bias_at);
            const std::int64_t own = kIn / kRanks;
            const Tensor x = ctx.from_host(values_of({rows, own}, input_at, 0, ctx.rank() * own), {rows, own},
                                           DType::f16, placement.input, "x");
            const tp::ForwardTensors tensors = layer.place(rows);
            layer.prepare(x, tensors);
            ctx.barrier();
            if (count > 1) overlapped = ctx.now();
            const Tensor y = layer.forward(x, tensors);
            EXPECT_EQ(y.shape(), (Shape{rows, kOut}));
            results.push_back(y.to_host());
            if (count > 1) outputs[ctx.rank()] = y.bytes_to_host();
          }
          EXPECT_EQ(results[0], results[1]);
          Values expected =
              product(values_of({rows, kIn}, input_at), values_of({kIn, kOut}, weight_at), rows, kIn, kOut);
          for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] = std::max(0.0, expected[i] + bias_at(0, static_cast<std::int64_t>(i) % kOut));
          expect_close(results[1], expected, "chunks");
        }
      },
      std::tuple<>(), kRanks);
  for (const auto& [rank, bytes] : outputs) EXPECT_EQ(bytes, outputs[0]) << "rank " << rank;
  std::map<std::string, int> entries;  // of rank 0, of the last pass
  for (const HostTraceEntry& entry : host.runtime.host_trace()) {
    if (entry.rank == 0 && entry.t_submit >= overlapped) ++entries[entry.kind];
  }
  EXPECT_EQ(entries, (std::map<std::string, int>{{"launch", pieces + 1}, {"collective", pieces}}));
}

INSTANTIATE_TEST_SUITE_P(Rows, OverlappedRow,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(std::tuple(7, 3, 3), std::tuple(40, 2, 2),
                                                              std::tuple(2, 16, 2))));

TEST(Layer, WeightsDefaultToZeroAndGiveZero) {
  MachineRun host(machine_of(kRanks, 1, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        tp::ColumnParallelLinear layer(state, kIn, kOut);
        EXPECT_EQ(layer.weight().to_host(), Values(static_cast<std::size_t>(kIn * kOut / kRanks), 0.0));
        EXPECT_EQ(layer.forward(input(ctx, {})).to_host(),
                  Values(static_cast<std::size_t>(kRows * kOut / kRanks), 0.0));
      },
      std::tuple<>(), kRanks);
}

TEST(Layer, DimensionsThatTheRanksDoNotDivideAreNamed) {
  MachineRun host(machine_of(kRanks, 1, 1));
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        EXPECT_EQ(
            error_text([&] { tp::ColumnParallelLinear(state, 8, 7, options_of({})); }),
            "ColumnParallelLinear 'layer': out is 7: give a positive multiple of the tensor-parallel world size 2");
        EXPECT_EQ(error_text([&] { tp::RowParallelLinear(state, 7, 8, options_of({})); }),
                  "RowParallelLinear 'layer': in is 7: give a positive multiple of the tensor-parallel world size 2");
        tp::LinearOptions options = options_of({});
        options.overlap_chunks = 17;
        EXPECT_EQ(error_text([&] { tp::RowParallelLinear(state, 8, 8, options); }),
                  "RowParallelLinear 'layer': overlap chunks is 17: give 1 to 16");
        options.overlap_chunks = 2;
        options.sequence_parallel = true;
        EXPECT_EQ(error_text([&] { tp::RowParallelLinear(state, 8, 8, options); }),
                  "RowParallelLinear 'layer': overlap chunks is 2, but a sequence-parallel layer has no all-reduce: "
                  "give 1");
      },
      std::tuple<>(), kRanks);
}

TEST(Layer, AnInputThatDoesNotFitIsNamed) {
  MachineRun host(machine_of(kRanks, 1, 1));
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = start(ctx);
        const tp::ColumnParallelLinear layer(state, 8, 8, options_of({}));
        const Tensor x = ctx.zeros({2, 9}, DType::f16, {}, "x");
        EXPECT_EQ(error_text([&] { layer.forward(x); }),
                  "ColumnParallelLinear 'layer': the input 'x' is 2x9 f16, not M x 8 f16");
        tp::ColumnParallelLinear bare(state, 8, 8, options_of({}));
        EXPECT_EQ(error_text([&] { bare.load_bias(bias_at); }), "ColumnParallelLinear 'layer' has no bias");
        const Tensor two = ctx.zeros({2, 8}, DType::f16, {}, "x");
        EXPECT_EQ(error_text([&] { layer.forward(two, layer.place(3)); }),
                  "ColumnParallelLinear 'layer': output is 3x4 f16, not 2x4 f16: give what place(2) returns");
        const tp::RowParallelLinear row(state, 8, 8, options_of({}), false);
        EXPECT_EQ(error_text([&] {
                    row.forward(two, {{}, {}, {}, {}, ctx.zeros({2, 8}, DType::f16, {}, "y")});
                  }),
                  "RowParallelLinear 'layer': scattered is an empty handle, not 2x4 f16: give what place(2) returns");
      },
      std::tuple<>(), kRanks);
}

/// Placement inside a SIP is no way to split a layer over ranks: a policy has no field for it, and both ranks hold all
/// of a tensor that they place alike.
TEST(Layer, PlacementAloneNeverSplitsOverRanks) {
  MachineRun host(machine_of(kRanks, 2, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const Tensor t = ctx.zeros({1, 128}, DType::f16, tp::LinearPlacement::split(), "t");
        std::int64_t elements = 0;
        for (const ShardSpec& shard : t.shards()) {
          EXPECT_EQ(shard.sip, ctx.rank());
          elements += shard.region.rows * shard.region.cols;
        }
        EXPECT_EQ(elements, 128);
      },
      std::tuple<>(), kRanks);
}

}  // namespace
}  // namespace kernbench::testing
