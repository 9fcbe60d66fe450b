#include <gtest/gtest.h>

#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {

DPPolicy spread() {
  DPPolicy policy;
  policy.cube = CubeSplit::column_wise;
  policy.pe = PeSplit::column_wise;
  return policy;
}

ProcessGroupOptions ring() {
  ProcessGroupOptions options;
  options.algorithm = "ring_allreduce";
  return options;
}

TEST(ProcessGroup, InstallsNeighbourTablesOnAllSipsBeforeAnyProgramRuns) {
  HostRun host({3, 1, 1, 2, 1 << 20});
  std::vector<Ps> begins;
  host.runtime.init_process_group(ring());
  host.run(
      [&](Context& ctx) {
        begins.push_back(ctx.now());
        for (std::uint16_t sip = 0; sip < 3; ++sip) {
          for (const PeCoord pe : ctx.map().pes(sip)) EXPECT_FALSE(host.machine.sfr[pe].empty());
        }
      },
      3);
  ASSERT_EQ(begins.size(), 3u);
  EXPECT_GT(begins[0], 0u);
  EXPECT_EQ(begins[0], begins[2]);
}

TEST(ProcessGroup, TracesOneEntryPerCollectiveNamedAfterItsAlgorithm) {
  HostRun host({2, 1, 1, 2, 1 << 20});
  host.runtime.init_process_group(ring());
  EXPECT_EQ(host.runtime.algorithm(), "ring_allreduce");
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, spread(), "t");
        ctx.all_reduce(tensor);
        ctx.all_reduce(tensor, ReduceOp::max);
      },
      2);
  EXPECT_TRUE(outcome.finished);
  ASSERT_EQ(host.runtime.host_trace().size(), 4u);
  for (const HostTraceEntry& entry : host.runtime.host_trace()) {
    EXPECT_EQ(entry.kind, "collective");
    EXPECT_EQ(entry.name, "ring_allreduce");
    EXPECT_EQ(entry.rank, entry.sip);
    EXPECT_LT(entry.t_submit, entry.t_complete);
  }
}

TEST(ProcessGroup, NamesTheRanksWhoseCallsDiffer) {
  HostRun host({2, 1, 1, 2, 1 << 20});
  host.runtime.init_process_group(ring());
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.full(1, {1, ctx.rank() == 0 ? 64 : 32}, DType::f16, spread(), "t");
        ctx.all_reduce(tensor);
      },
      2);
  ASSERT_EQ(outcome.failures.count(1), 1u);
  try {
    std::rethrow_exception(outcome.failures.at(1));
  } catch (const CollectiveMismatch& error) {
    EXPECT_STREQ(error.what(),
                 "process group 0: collective 0 of rank 1 is all_reduce(sum, 32 x f16, sip), but rank 0 called "
                 "all_reduce(sum, 64 x f16, sip) there: ranks must issue the same collectives in the same order");
  }
}

TEST(ProcessGroup, AReadDoesNotWaitForACollectiveThatAnotherRankHasNotCalled) {
  HostRun host({2, 1, 1, 2, 1 << 20});
  host.runtime.init_process_group(ring());
  bool early = false, late = false;
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, spread(), "t");
        ctx.barrier();
        if (ctx.rank() == 0) {
          const Handle handle = ctx.all_reduce_async(tensor);
          tensor.to_host();
          early = handle.done();
          ctx.barrier();
          ctx.barrier();
          tensor.to_host();
          late = handle.done();
        } else {
          ctx.barrier();
          const Handle handle = ctx.all_reduce_async(tensor);
          ctx.barrier();
          ctx.wait(handle);
        }
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_FALSE(early);
  EXPECT_TRUE(late);
}

TEST(ProcessGroup, MustExistAndFitTheMachine) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  host.runtime.program(
      [](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 8}, DType::f16, {}, "t");
        EXPECT_THROW(ctx.all_reduce(tensor), std::logic_error);
      },
      3);
  EXPECT_THROW(host.runtime.init_process_group(ring()), std::invalid_argument);
  host.runtime.run();
  EXPECT_TRUE(host.runtime.outcome().finished);
}

}  // namespace
}  // namespace kernbench::testing
