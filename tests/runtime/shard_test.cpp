#include <gtest/gtest.h>

#include <set>

#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {

DPPolicy columns_over_pes() { return DPPolicy().pe(PeSplit::column_wise); }

TEST(Tensor, EmptyShardsHoldNothingAndTakePartInNothing) {
  HostRun host({2, 1, 1, 4, 1 << 20});
  ProcessGroupOptions ring;
  ring.algorithm = "ring_allreduce";
  const auto outcome = host.run(
      [&](Context& ctx) {
        ctx.init_process_group(ring);
        const Tensor tensor = ctx.zeros({1, 2}, DType::f16, columns_over_pes(), "t");
        ASSERT_EQ(tensor.shards().size(), 4u);
        for (const ShardSpec& shard : tensor.shards()) {
          EXPECT_EQ(shard.nbytes, shard.pe < 2 ? 2u : 0u);
          EXPECT_EQ(shard.region.empty(), shard.pe >= 2);
        }
        EXPECT_THROW(tensor.pa(2), std::invalid_argument);
        ctx.launch("work", kNoBodyOf, tensor);
        ctx.all_reduce(tensor);
      },
      2);
  EXPECT_TRUE(outcome.finished);
  std::set<std::pair<std::string, int>> ran;
  for (const auto& launch : host.machine.launches) ran.emplace(launch.kernel, launch.pe.pe);
  EXPECT_EQ(ran, (std::set<std::pair<std::string, int>>{
                     {"work", 0}, {"work", 1}, {"ring_allreduce", 0}, {"ring_allreduce", 1}}));
}

TEST(Tensor, KeepsAPolicyThatNobodyCanChange) {
  HostRun host({1, 1, 1, 4, 1 << 20});
  const auto outcome = host.run(
      [&](Context& ctx) {
        DPPolicy policy = columns_over_pes();
        const Tensor tensor = ctx.zeros({1, 8}, DType::f16, policy, "t");
        policy = policy.pe(PeSplit::replicate).pes(1);
        EXPECT_EQ(tensor.policy().pe(), PeSplit::column_wise);
        EXPECT_FALSE(tensor.policy().num_pes().has_value());
        static_assert(std::is_same_v<decltype(tensor.policy()), const DPPolicy&>);
      },
      1);
  EXPECT_TRUE(outcome.finished);
}

}  // namespace
}  // namespace kernbench::testing
