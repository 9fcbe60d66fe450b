#include "runtime/tp/parallel_state.h"

#include <gtest/gtest.h>

#include "runtime/tp/regions.h"
#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

TEST(ParallelState, MustFollowInitProcessGroup) {
  MachineRun host(machine_of(2, 1, 1));
  host.runtime.spawn(
      [](Context& ctx) {
        EXPECT_EQ(error_text([&] { tp::initialize_model_parallel(ctx, 2); }),
                  "initialize_model_parallel: there is no process group: call init_process_group first");
      },
      std::tuple<>(), 2);
}

TEST(ParallelState, SizesThatDoNotDivideTheRanksAreNamed) {
  MachineRun host(machine_of(4, 1, 1));
  host.runtime.spawn(
      [](Context& ctx) {
        ctx.init_process_group();
        EXPECT_EQ(
            error_text([&] { tp::initialize_model_parallel(ctx, 3); }),
            "initialize_model_parallel: tensor_model_parallel_size 3 times pipeline_model_parallel_size 1 does not "
            "divide the 4 ranks of the world");
        EXPECT_EQ(
            error_text([&] { tp::initialize_model_parallel(ctx, 4, 2); }),
            "initialize_model_parallel: tensor_model_parallel_size 4 times pipeline_model_parallel_size 2 does not "
            "divide the 4 ranks of the world");
        EXPECT_EQ(error_text([&] { tp::initialize_model_parallel(ctx, 2, 0); }),
                  "initialize_model_parallel: pipeline_model_parallel_size is 0: give 1 or more");
      },
      std::tuple<>(), 4);
}

TEST(ParallelState, TheGroupOfAllRanksTakesNoTime) {
  MachineRun host(machine_of(2, 1, 1));
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const Ps before = ctx.now();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        EXPECT_EQ(ctx.now(), before);
        EXPECT_EQ(state.tensor_model_parallel_rank(), ctx.rank());
        EXPECT_EQ(state.tensor_model_parallel_world_size(), 2);
        EXPECT_EQ(state.data_parallel_world_size(), 1);
        EXPECT_EQ(state.pipeline_model_parallel_world_size(), 1);
        ++checked;
      },
      std::tuple<>(), 2);
  EXPECT_EQ(checked, 2);
}

/// Each group adds up its members' numbers: the sums tell which ranks are in it. 12 ranks as 2 x 3 x 2.
TEST(ParallelState, GroupsFollowMegatronsRankOrder) {
  constexpr int kTensor = 2, kData = 3, kPipeline = 2, kWorld = kTensor * kData * kPipeline;
  MachineRun host(machine_of(kWorld, 1, 1));
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, kTensor, kPipeline);
        const int rank = ctx.rank();
        const int t = rank % 2, d = rank / 2 % 3, p = rank / 6;  // by hand: TP fastest, then DP, then PP
        EXPECT_EQ(state.tensor_model_parallel_rank(), t);
        EXPECT_EQ(state.data_parallel_rank(), d);
        EXPECT_EQ(state.pipeline_model_parallel_rank(), p);
        EXPECT_EQ(state.tensor_model_parallel_world_size(), kTensor);
        EXPECT_EQ(state.data_parallel_world_size(), kData);
        EXPECT_EQ(state.pipeline_model_parallel_world_size(), kPipeline);
        const auto sum_of = [&](const Group& group) {
          const Tensor x = ctx.full(1 << rank, {1, 4}, DType::f32, {}, "x");  // a bit for each member
          ctx.all_reduce(x, ReduceOp::sum, group);
          return x.to_host()[0];
        };
        const auto bit = [](int tensor, int data, int pipeline) { return 1 << (tensor + 2 * (data + 3 * pipeline)); };
        EXPECT_EQ(ctx.group_rank(state.tensor_model_parallel_group()), t);
        EXPECT_EQ(sum_of(state.tensor_model_parallel_group()), bit(0, d, p) + bit(1, d, p));
        EXPECT_EQ(ctx.group_rank(state.data_parallel_group()), d);
        EXPECT_EQ(sum_of(state.data_parallel_group()), bit(t, 0, p) + bit(t, 1, p) + bit(t, 2, p));
        EXPECT_EQ(ctx.group_rank(state.pipeline_model_parallel_group()), p);
        EXPECT_EQ(sum_of(state.pipeline_model_parallel_group()), bit(t, d, 0) + bit(t, d, 1));
        ++checked;
      },
      std::tuple<>(), kWorld);
  EXPECT_EQ(checked, kWorld);
}

/// Both replicas of the model hold all of it, and neither adds up with the other.
TEST(ParallelState, LayersUseTheTensorGroup) {
  constexpr int kRanks = 4;
  MachineRun host(machine_of(kRanks, 1, 2));
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        const int replica = state.data_parallel_rank();
        tp::ColumnParallelLinear up(state, 6, 8);
        tp::RowParallelLinear down(state, 8, 6);
        up.load_weight(weight_at);
        down.load_weight(weight_at);
        EXPECT_EQ(up.weight().to_host(), values_of({6, 4}, weight_at, 0, ctx.rank() % 2 * 4));
        EXPECT_EQ(down.weight().to_host(), values_of({4, 6}, weight_at, ctx.rank() % 2 * 4, 0));
        const Values in = values_of({3, 6}, input_at, replica * 3, 0);  // each replica has its own rows
        const Tensor y = down.forward(up.forward(ctx.from_host(in, {3, 6}, DType::f16, {}, "x")));
        const Values hidden = in_f16(product(in, values_of({6, 8}, weight_at), 3, 6, 8));
        expect_close(y.to_host(), product(hidden, values_of({8, 6}, weight_at), 3, 8, 6), "replica");
        ++checked;
      },
      std::tuple<>(), kRanks);
  EXPECT_EQ(checked, kRanks);
}

TEST(ParallelState, UseBeforeInitialisationIsAnError) {
  const tp::ParallelState none;
  const std::string text =
      "the tensor-parallel state is used before it is initialised: call initialize_model_parallel first";
  EXPECT_EQ(error_text([&] { none.tensor_model_parallel_rank(); }), text);
  EXPECT_EQ(error_text([&] { none.tensor_model_parallel_world_size(); }), text);
  EXPECT_EQ(error_text([&] { tp::ColumnParallelLinear(none, 4, 4); }), text);
  EXPECT_EQ(error_text([&] { tp::RowParallelLinear(none, 4, 4); }), text);
  EXPECT_EQ(error_text([&] { tp::copy_to_region(none, Tensor()); }), text);
}

}  // namespace
}  // namespace kernbench::testing
