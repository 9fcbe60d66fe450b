#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {

DPPolicy spread_policy() { return DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise); }

ProcessGroupOptions ring_options() {
  ProcessGroupOptions options;
  options.algorithm = "ring_allreduce";
  return options;
}

TEST(ProcessGroup, InstallsNeighbourTablesOnAllSipsBeforeAnyProgramRuns) {
  HostRun host({3, 1, 1, 2, 1 << 20});
  std::vector<Ps> begins;
  host.runtime.init_process_group(ring_options());
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
  host.runtime.init_process_group(ring_options());
  EXPECT_EQ(host.runtime.algorithm(), "ring_allreduce");
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, spread_policy(), "t");
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
  host.runtime.init_process_group(ring_options());
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.full(1, {1, ctx.rank() == 0 ? 64 : 32}, DType::f16, spread_policy(), "t");
        ctx.all_reduce(tensor);
      },
      2, Ending::failure);
  ASSERT_EQ(outcome.failures.count(1), 1u);
  try {
    std::rethrow_exception(outcome.failures.at(1));
  } catch (const CollectiveMismatch& error) {
    EXPECT_STREQ(error.what(),
                 "process group 0: collective 0 of rank 1 is all_reduce(sum, 32 x f16, sip), but rank 0 called "
                 "all_reduce(sum, 64 x f16, sip) there: ranks must issue the same collectives in the same order");
  }
}

TEST(ProcessGroup, MustExistAndFitTheMachine) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  host.runtime.program(
      [](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 8}, DType::f16, {}, "t");
        EXPECT_THROW(ctx.all_reduce(tensor), std::logic_error);
      },
      3);
  EXPECT_THROW(host.runtime.init_process_group(ring_options()), std::invalid_argument);
  host.runtime.run();
  EXPECT_TRUE(host.runtime.outcome().finished);
}

template <class Program>
std::string failure_of(HostRun& host, int rank, const Program& program) {
  const auto outcome = host.run(program, host.machine.map().sips, Ending::failure);
  if (outcome.failures.count(rank) == 0) return "no failure";
  try {
    std::rethrow_exception(outcome.failures.at(rank));
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(ProcessGroup, CanBeMadeByTheWorkers) {
  HostRun host({2, 1, 1, 2, 1 << 20});
  int checked = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        EXPECT_FALSE(ctx.in_process_group() && ctx.rank() == 0);
        ctx.init_process_group(ring_options());
        EXPECT_TRUE(ctx.in_process_group());
        EXPECT_EQ(ctx.group_rank(), ctx.rank());
        EXPECT_EQ(ctx.group_size(), 2);
        for (std::uint16_t sip = 0; sip < 2; ++sip) {
          for (const PeCoord pe : ctx.map().pes(sip)) EXPECT_FALSE(host.machine.sfr[pe].empty());
        }
        EXPECT_THROW(ctx.init_process_group(ring_options()), std::logic_error);
        const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, spread_policy(), "t");
        ctx.all_reduce(tensor);
        ++checked;
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(checked, 2);
}

TEST(ProcessGroup, KnowsOneBackend) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  EXPECT_EQ(failure_of(host, 0,
                       [](Context& ctx) {
                         ProcessGroupOptions options = ring_options();
                         options.backend = "nccl";
                         ctx.init_process_group(options);
                       }),
            "init_process_group: backend is 'nccl': give 'ahbm'");
}

TEST(ProcessGroup, MustBeMadeAlikeByAllWorkers) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  EXPECT_NE(failure_of(host, 1,
                       [](Context& ctx) {
                         ProcessGroupOptions options = ring_options();
                         if (ctx.rank() == 1) options.algorithm = "auto";
                         ctx.init_process_group(options);
                       })
                .find("init_process_group: rank 1 asks for algorithm 'auto'"),
            std::string::npos);
}

TEST(ProcessGroup, NamesTheOperationThatDiffers) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  EXPECT_EQ(failure_of(host, 1,
                       [](Context& ctx) {
                         ctx.init_process_group(ring_options());
                         const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, spread_policy(), "t");
                         ctx.barrier();
                         if (ctx.rank() == 1) ctx.barrier();
                         ctx.all_reduce_async(tensor);
                         if (ctx.rank() == 0) ctx.barrier();
                         ctx.all_reduce_async(tensor, ctx.rank() == 0 ? ReduceOp::sum : ReduceOp::max);
                         ctx.barrier();
                       }),
            "process group 0: collective 1 of rank 1 is all_reduce(max, 64 x f16, sip), but rank 0 called "
            "all_reduce(sum, 64 x f16, sip) there: ranks must issue the same collectives in the same order");
}

TEST(ProcessGroup, NamesTheRankThatEndedWithoutACallOfOthers) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  EXPECT_EQ(failure_of(host, 1,
                       [](Context& ctx) {
                         ctx.init_process_group(ring_options());
                         const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, spread_policy(), "t");
                         if (ctx.rank() == 0) ctx.all_reduce(tensor);
                         if (ctx.rank() == 1) ctx.launch("long", kNoBodyOf, tensor);
                       }),
            "process group 0: rank 1 has ended without calling collective 0, all_reduce(sum, 64 x f16, sip), which "
            "rank 0 called");
}

TEST(ProcessGroup, NamesTheCallerOfWhatAnEndedRankCannotCall) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  EXPECT_EQ(failure_of(host, 0,
                       [](Context& ctx) {
                         ctx.init_process_group(ring_options());
                         const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, spread_policy(), "t");
                         if (ctx.rank() == 1) return;
                         for (int i = 0; i < 3; ++i) ctx.launch("long", kNoBodyOf, tensor);
                         ctx.all_reduce(tensor);
                       }),
            "process group 0: rank 0 calls collective 0, all_reduce(sum, 64 x f16, sip), but rank 1 has ended without "
            "calling it");
}

TEST(ProcessGroup, NamesWhoHasNotCalledWhenNothingMoves) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  host.machine.hangs = [](PeCoord, const LaunchMessage& launch) { return launch.call.has_value(); };
  const auto outcome = host.run(
      [](Context& ctx) {
        ctx.init_process_group(ring_options());
        const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, spread_policy(), "t");
        if (ctx.rank() == 0) ctx.all_reduce(tensor);
        ctx.barrier();
      },
      2, Ending::unfinished);
  EXPECT_EQ(outcome.unfinished, (std::vector<int>{0, 1}));
  const auto blocked = host.runtime.blocked_ranks();
  ASSERT_EQ(blocked.size(), 2u);
  EXPECT_NE(blocked[0].waits_for.find("; process group 0, collective 0: not called by rank 1"), std::string::npos)
      << blocked[0].waits_for;
  EXPECT_EQ(blocked[1].waits_for, "barrier; not reached by rank 0");
}

TEST(Group, OfSomeRanksHasItsOwnNumbersQueuesAndOrder) {
  HostRun host({4, 1, 1, 1, 1 << 20});
  int checked = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        ctx.init_process_group(ring_options());
        const Group odd = ctx.new_group({3, 1}, ring_options());
        const Group all = ctx.new_group({0, 1, 2, 3}, ring_options());
        EXPECT_EQ(ctx.group_size(odd), 2);
        EXPECT_EQ(ctx.group_rank(odd), ctx.rank() == 3 ? 0 : ctx.rank() == 1 ? 1 : -1);
        const Tensor tensor = ctx.full(1, {1, 64}, DType::f16, {}, "t");
        if (ctx.rank() % 2 == 1) {
          ctx.all_reduce(tensor, ReduceOp::sum, odd);
          ctx.barrier(odd);
        } else {
          EXPECT_THROW(ctx.all_reduce(tensor, ReduceOp::sum, odd), std::invalid_argument);
          EXPECT_THROW(ctx.barrier(odd), std::invalid_argument);
        }
        ctx.all_reduce(tensor, ReduceOp::sum, all);
        ctx.all_reduce(tensor);
        ++checked;
      },
      4);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(checked, 4);
  EXPECT_EQ(host.runtime.host_trace().size(), 2u + 4 + 4);
  std::set<std::uint16_t> groups;
  for (const NeighbourEntry& entry : host.machine.sfr[{1, 0, 0}]) groups.insert(entry.group);
  EXPECT_EQ(groups, (std::set<std::uint16_t>{0, 1, 2}));
  for (const NeighbourEntry& entry : host.machine.sfr[{0, 0, 0}]) EXPECT_NE(entry.group, 1);
}

TEST(Group, RefusesRanksThatThereAreNot) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  host.run(
      [&](Context& ctx) {
        if (ctx.rank() == 0) {
          EXPECT_THROW(ctx.new_group({0}), std::logic_error);
        }
        ctx.init_process_group(ring_options());
        EXPECT_THROW(ctx.new_group({}), std::invalid_argument);
        EXPECT_THROW(ctx.new_group({0, 2}), std::invalid_argument);
        EXPECT_THROW(ctx.new_group({1, 1}), std::invalid_argument);
      },
      2);
}

TEST(Group, MustBeMadeAlikeByAllRanks) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  const std::string text = failure_of(host, 1, [](Context& ctx) {
    ctx.init_process_group(ring_options());
    if (ctx.rank() == 0) {
      ctx.new_group({0, 1}, ring_options());
    } else {
      ctx.launch("work", LaunchOptions{{{1, 0, 0}}}, kNoBody);
      ctx.new_group({1, 0}, ring_options());
    }
  });
  EXPECT_NE(text.find("new_group 0 of rank 1 is [1, 0], but another rank called new_group[0, 1] there"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace kernbench::testing
