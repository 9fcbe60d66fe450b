#include <gtest/gtest.h>

#include "runtime/tp/regions.h"
#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

constexpr std::int64_t kSequenceRows = 12, kSequenceCols = 10;

tp::ParallelState sequence_state(Context& ctx) {
  ctx.init_process_group();
  return tp::initialize_model_parallel(ctx, ctx.world_size());
}

/// Scheduling and number of ranks.
class SequenceRegions : public ::testing::TestWithParam<std::tuple<SchedulingKind, int>> {
 protected:
  int ranks() const { return std::get<1>(GetParam()); }
  RunOptions options() const { return scheduled(std::get<0>(GetParam())); }
};

TEST_P(SequenceRegions, ScatterGivesEachRankItsRowsAndGatherAllOfThemBack) {
  MachineRun host(machine_of(ranks(), 2, 2), options());
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = sequence_state(ctx);
        const Values whole = values_of({kSequenceRows, kSequenceCols}, weight_at);
        for (const tp::LinearPlacement& placement : two_placements()) {
          const Tensor x = ctx.from_host(whole, {kSequenceRows, kSequenceCols}, DType::f16, placement.output, "x");
          const Tensor part = tp::scatter_to_sequence_region(state, x, placement.weight, "part");
          const std::int64_t own = kSequenceRows / ranks();
          EXPECT_EQ(part.shape(), (Shape{own, kSequenceCols}));
          EXPECT_EQ(part.to_host(), values_of({own, kSequenceCols}, weight_at, ctx.rank() * own, 0));
          EXPECT_EQ(tp::gather_from_sequence_region(state, part, placement.output, "full").to_host(), whole);
          ++checked;
        }
      },
      std::tuple<>(), ranks());
  EXPECT_EQ(checked, 2 * ranks());
}

/// Rank r contributes (r + 1) times a pattern by position, so that the sum tells whose part was left out or taken
/// twice.
TEST_P(SequenceRegions, ReduceScatterGivesEachRankItsRowsOfTheSum) {
  MachineRun host(machine_of(ranks(), 2, 2), options());
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = sequence_state(ctx);
        Values mine = values_of({kSequenceRows, kSequenceCols}, weight_at);
        for (double& value : mine) value *= ctx.rank() + 1;
        const Tensor x = ctx.from_host(mine, {kSequenceRows, kSequenceCols}, DType::f16, spread(), "x");
        const Tensor part = tp::reduce_scatter_to_sequence_region(state, x, spread(), "part");
        const std::int64_t own = kSequenceRows / ranks();
        Values expected = values_of({own, kSequenceCols}, weight_at, ctx.rank() * own, 0);
        for (double& value : expected) value *= ranks() * (ranks() + 1) / 2;
        EXPECT_EQ(part.to_host(), expected);
      },
      std::tuple<>(), ranks());
}

/// The MLP of a sequence-parallel block: each rank has its rows before and after, and the whole is the host's model.
TEST_P(SequenceRegions, LinearLayersGatherBeforeAndReduceScatterAfter) {
  MachineRun host(machine_of(ranks(), 2, 2), options());
  const std::int64_t hidden = 16;
  Values h = product(values_of({kSequenceRows, kSequenceCols}, input_at), values_of({kSequenceCols, hidden}, weight_at),
                     kSequenceRows, kSequenceCols, hidden);
  for (double& value : h) value = std::max(0.0, value);
  Values y = product(in_f16(h), values_of({hidden, kSequenceCols}, weight_at), kSequenceRows, hidden, kSequenceCols);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias_at(0, static_cast<std::int64_t>(i) % kSequenceCols);
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = sequence_state(ctx);
        tp::LinearOptions options;
        options.sequence_parallel = true;
        options.activation = Activation::relu;
        tp::ColumnParallelLinear up(state, kSequenceCols, hidden, options);
        options.activation = Activation::none;
        options.bias = true;
        tp::RowParallelLinear down(state, hidden, kSequenceCols, options);
        up.load_weight(weight_at);
        down.load_weight(weight_at);
        down.load_bias(bias_at);
        const std::int64_t own = kSequenceRows / ranks(), first = ctx.rank() * own;
        const Tensor x = ctx.from_host(values_of({own, kSequenceCols}, input_at, first, 0), {own, kSequenceCols},
                                       DType::f16, spread(), "x");
        const tp::ForwardTensors in = up.place(kSequenceRows), out = down.place(kSequenceRows);
        up.prepare(x, in);
        down.prepare(in.output, out);
        const Tensor result = down.forward(up.forward(x, in), out);
        EXPECT_EQ(result.shape(), (Shape{own, kSequenceCols}));
        const auto begin = y.begin() + first * kSequenceCols;
        expect_close(result.to_host(), {begin, begin + own * kSequenceCols}, "rows of the rank");
      },
      std::tuple<>(), ranks());
  std::map<std::string, int> calls;  // of rank 0
  for (const HostTraceEntry& entry : host.runtime.host_trace()) {
    if (entry.rank == 0) ++calls[entry.kind == "launch" ? "launch" : entry.operation];
  }
  EXPECT_EQ(calls, (std::map<std::string, int>{{"launch", 3}, {"all_gather", 1}, {"reduce_scatter", 1}}));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SequenceRegions,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(1, 2, 4)));

TEST(SequenceRegion, RowsThatTheRanksDoNotDivideAreNamed) {
  MachineRun host(machine_of(2, 1, 1));
  host.runtime.spawn(
      [](Context& ctx) {
        const tp::ParallelState state = sequence_state(ctx);
        const Tensor x = ctx.zeros({3, 4}, DType::f16, {}, "x");
        EXPECT_EQ(error_text([&] { tp::scatter_to_sequence_region(state, x, {}, "part"); }),
                  "scatter 'part': the tensor has 3 rows, which 2 ranks do not divide");
        EXPECT_EQ(error_text([&] { tp::reduce_scatter_to_sequence_region(state, x, {}, "part"); }),
                  "reduce_scatter 'part': the tensor has 3 rows, which 2 ranks do not divide");
        tp::LinearOptions options;
        options.name = "down";
        options.sequence_parallel = true;
        const tp::RowParallelLinear down(state, 4, 4, options);
        EXPECT_EQ(error_text([&] { down.place(3); }),
                  "RowParallelLinear 'down': rows is 3: give a positive multiple of the tensor-parallel world size 2");
      },
      std::tuple<>(), 2);
}

}  // namespace
}  // namespace kernbench::testing
