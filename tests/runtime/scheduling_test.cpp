#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {

constexpr FakeMachine::Shape kThreeSips{3, 1, 1, 1, 1 << 20};

RunOptions with(SchedulingKind kind) {
  RunOptions options;
  options.scheduling = kind;
  return options;
}

std::uint16_t sip_of(const Context& ctx) { return static_cast<std::uint16_t>(ctx.rank()); }

ProcessGroupOptions ring() {
  ProcessGroupOptions options;
  options.algorithm = "ring_allreduce";
  return options;
}

class BothSchedulings : public ::testing::TestWithParam<SchedulingKind> {
 protected:
  /// `concurrent` has no queues: there, handles tell that nothing was waited for.
  static void expect_queued_waits(const HostRun& host, std::size_t count) {
    if (GetParam() == SchedulingKind::rounds) {
      EXPECT_EQ(host.runtime.pending_worker_waits(), count);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Runtime, BothSchedulings,
                         ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds), [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(BothSchedulings, WaitReturnsOnlyWithItsHandleComplete) {
  HostRun host(kThreeSips, with(GetParam()));
  host.machine.duration = [](PeCoord pe, const LaunchMessage& launch) {
    return Ps{100'000} * (1 + (pe.sip * 7u + launch.kernel.size() * 5u) % 11);
  };
  int waits = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        const std::uint16_t other = ctx.new_stream();
        std::vector<Handle> handles;
        for (int i = 0; i < 12; ++i) {
          handles.push_back(
              ctx.launch_async(std::string(static_cast<std::size_t>(i) % 5 + 1, 'k'),
                               LaunchOptions{{{sip_of(ctx), 0, 0}}, i % 2 == 0 ? std::uint16_t{0} : other}, kNoBody));
          const Handle& handle = handles[static_cast<std::size_t>(i * 5 % (i + 1))];
          ctx.wait(handle);
          EXPECT_TRUE(handle.done());
          EXPECT_LE(handle.completed(), ctx.now());
          ++waits;
        }
      },
      3);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(waits, 36);
}

TEST_P(BothSchedulings, WaitingForACompleteHandleNeitherSwitchesNorQueues) {
  HostRun host(kThreeSips, with(GetParam()));
  int checked = 0;
  host.run(
      [&](Context& ctx) {
        const Handle handle = ctx.launch("work", LaunchOptions{{{sip_of(ctx), 0, 0}}}, kNoBody);
        const std::uint64_t switches = host.runtime.switches();
        const std::uint64_t executed = host.machine.dispatcher().executed();
        const std::size_t waits = host.runtime.pending_worker_waits();
        for (int i = 0; i < 100; ++i) ctx.wait(handle);
        EXPECT_EQ(host.runtime.switches(), switches);
        EXPECT_EQ(host.machine.dispatcher().executed(), executed);
        expect_queued_waits(host, waits);
        ++checked;
      },
      3);
  EXPECT_EQ(checked, 3);
}

TEST_P(BothSchedulings, LaunchYieldsOnceAndSubmitNever) {
  HostRun host({1, 1, 1, 1, 1 << 20}, with(GetParam()));
  host.run(
      [&](Context& ctx) {
        ctx.launch_async("a", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        EXPECT_EQ(host.runtime.switches(), 0u);
        ctx.launch("b", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        EXPECT_EQ(host.runtime.switches(), 1u);
      },
      1);
}

TEST_P(BothSchedulings, TwoRanksWaitForOneHandle) {
  HostRun host(kThreeSips, with(GetParam()));
  Handle shared;
  int resumed = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        if (ctx.rank() == 0) shared = ctx.launch_async("work", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        ctx.barrier();
        ctx.wait(shared);
        EXPECT_TRUE(shared.done());
        ++resumed;
      },
      3);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(resumed, 3);
}

TEST(Rounds, AllWorkersResumeAtOneDrainPoint) {
  HostRun host(kThreeSips, with(SchedulingKind::rounds));
  host.machine.duration = [](PeCoord pe, const LaunchMessage&) { return (pe.sip + 1) * Ps{1'000'000}; };
  std::vector<Ps> times;
  std::vector<int> order;
  host.run(
      [&](Context& ctx) {
        for (int i = 0; i < 3; ++i) {
          ctx.launch("work", LaunchOptions{{{sip_of(ctx), 0, 0}}}, kNoBody);
          order.push_back(ctx.rank());
          times.push_back(ctx.now());
        }
      },
      3);
  ASSERT_EQ(times.size(), 9u);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
  for (std::size_t round = 0; round < 3; ++round) {
    EXPECT_EQ(times[3 * round], times[3 * round + 1]);
    EXPECT_EQ(times[3 * round], times[3 * round + 2]);
    EXPECT_GE(times[3 * round], (round + 1) * 3'000'000) << "the longest kernel of each round";
  }
}

TEST(Rounds, DrainOnlyBeginsWhenEveryLiveWorkerHasYieldedOrEnded) {
  HostRun host(kThreeSips, with(SchedulingKind::rounds));
  std::size_t seen = 0;
  host.run(
      [&](Context& ctx) {
        if (ctx.rank() == 2) {  // the others have had their turns
          seen = host.runtime.pending_worker_waits();
          EXPECT_EQ(ctx.now(), 0u);
          return;
        }
        ctx.launch("work", LaunchOptions{{{sip_of(ctx), 0, 0}}}, kNoBody);
      },
      3);
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(host.runtime.pending_worker_waits(), 0u);
}

TEST(Rounds, WorkerWaitsDrainBeforeCollectives) {
  HostRun host({2, 1, 1, 2, 1 << 20}, with(SchedulingKind::rounds));
  host.runtime.init_process_group(ring());
  host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 64}, DType::f16, {}, "t");
        const std::uint16_t other = ctx.new_stream();
        ctx.barrier();
        const Handle reduced = ctx.all_reduce_async(tensor);  // submitted first
        EXPECT_GT(host.runtime.pending_collectives(), 0u);
        const Handle work = ctx.launch_async("work", LaunchOptions{{{sip_of(ctx), 0, 0}}, other}, kNoBody);
        ctx.wait(work);
        ctx.wait(reduced);
        EXPECT_GE(reduced.kernel_start(), work.completed());
      },
      2);
  const auto& trace = host.runtime.host_trace();
  ASSERT_EQ(trace.size(), 4u);
  EXPECT_EQ(trace[0].kind + trace[1].kind, "launchlaunch");
  EXPECT_EQ(trace[2].kind + trace[3].kind, "collectivecollective");
}

TEST(Rounds, CollectivesDrainInOrderOfSubmission) {
  HostRun host({4, 1, 1, 1, 1 << 20}, with(SchedulingKind::rounds));
  host.runtime.init_process_group(ring());
  std::vector<Handle> handles(8);
  host.run(
      [&](Context& ctx) {
        const Group low = ctx.new_group({0, 1}, ring()), high = ctx.new_group({2, 3}, ring());
        const Tensor tensor = ctx.zeros({1, 64}, DType::f16, {}, "t");
        ctx.barrier();
        const auto rank = static_cast<std::size_t>(ctx.rank());
        handles[rank] = ctx.all_reduce_async(tensor, ReduceOp::sum, rank < 2 ? low : high);
        handles[rank + 4] = ctx.all_reduce_async(tensor);
        ctx.wait(handles[rank + 4]);
        EXPECT_TRUE(handles[rank].done()) << "one stream keeps its order";
      },
      4);
  for (std::size_t rank = 2; rank < 4; ++rank) {
    EXPECT_GE(handles[rank].kernel_start(), std::max(handles[0].completed(), handles[1].completed()));
  }
  for (std::size_t rank = 4; rank < 8; ++rank) EXPECT_GE(handles[rank].kernel_start(), handles[3].completed());
}

TEST(Rounds, ACollectiveWaitsForItsLastMemberAndHoldsNobodyUp) {
  HostRun host({2, 1, 1, 2, 1 << 20}, with(SchedulingKind::rounds));
  host.runtime.init_process_group(ring());
  Ps submitted_last = 0;
  Handle first;
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 64}, DType::f16, {}, "t");
        ctx.barrier();
        if (ctx.rank() == 0) {
          first = ctx.all_reduce_async(tensor);
          ctx.wait(first);
        } else {
          for (int i = 0; i < 3; ++i) {  // goes on although rank 0 waits for the collective
            ctx.launch("work", LaunchOptions{{{1, 0, 0}}}, kNoBody);
            EXPECT_EQ(host.runtime.pending_collectives(), 1u);
            EXPECT_FALSE(first.done());
          }
          submitted_last = ctx.now();
          ctx.all_reduce(tensor);
        }
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_GE(first.kernel_start(), submitted_last);
  EXPECT_EQ(host.runtime.pending_collectives(), 0u);
}

TEST(Rounds, WhatStandsBehindACollectiveInItsStreamWaitsWithIt) {
  HostRun host({2, 1, 1, 1, 1 << 20}, with(SchedulingKind::rounds));
  host.runtime.init_process_group(ring());
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 64}, DType::f16, {}, "t");
        ctx.barrier();
        if (ctx.rank() == 1) ctx.launch("first", LaunchOptions{{{1, 0, 0}}}, kNoBody);
        const Handle reduced = ctx.all_reduce_async(tensor);
        const Handle behind = ctx.launch_async("behind", LaunchOptions{{{sip_of(ctx), 0, 0}}}, kNoBody);
        ctx.wait(behind);
        EXPECT_TRUE(reduced.done());
        EXPECT_GE(behind.kernel_start(), reduced.kernel_end());
      },
      2);
  EXPECT_TRUE(outcome.finished);
}

TEST(Rounds, DrainsUntilNothingDrainableIsLeft) {
  // Rank 0 waits behind two collectives and a launch between them: one drain completes them all.
  HostRun host({2, 1, 1, 1, 1 << 20}, with(SchedulingKind::rounds));
  host.runtime.init_process_group(ring());
  std::vector<Ps> resumed;
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 64}, DType::f16, {}, "t");
        ctx.barrier();
        const std::uint64_t before = host.runtime.switches();
        const Handle a = ctx.all_reduce_async(tensor);
        ctx.launch_async("between", LaunchOptions{{{sip_of(ctx), 0, 0}}}, kNoBody);
        const Handle b = ctx.all_reduce_async(tensor);
        if (ctx.rank() == 0) ctx.wait(b);
        if (ctx.rank() == 1) {
          ctx.wait(a);
          EXPECT_TRUE(b.done());
          EXPECT_EQ(host.runtime.switches(), before + 1);
        }
        resumed.push_back(ctx.now());
      },
      2);
  EXPECT_TRUE(outcome.finished);
  ASSERT_EQ(resumed.size(), 2u);
  EXPECT_EQ(resumed[0], resumed[1]);
}

TEST(Rounds, AWorkerThatEndsDoesNotHoldTheDrainUp) {
  HostRun host(kThreeSips, with(SchedulingKind::rounds));
  int rounds = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        for (int i = 0; i < ctx.rank(); ++i) {
          ctx.launch("work", LaunchOptions{{{sip_of(ctx), 0, 0}}}, kNoBody);
          ++rounds;
        }
      },
      3);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(rounds, 3);
}

TEST_P(BothSchedulings, SingleDriverNeverTouchesTheQueues) {
  HostRun host({2, 1, 1, 1, 1 << 20}, with(GetParam()));
  host.machine.duration = [](PeCoord, const LaunchMessage& launch) {
    return launch.kernel == "slow" ? Ps{90'000'000} : Ps{1'000'000};
  };
  bool ran = false;
  host.runtime.drive([&](Context& ctx) {
    EXPECT_EQ(ctx.rank(), 0);
    EXPECT_EQ(ctx.world_size(), 1);
    EXPECT_EQ(ctx.device(), 0);
    ctx.set_device(1);
    const Handle slow = ctx.launch_async("slow", LaunchOptions{{{1, 0, 0}}, ctx.new_stream()}, kNoBody);
    const Handle handle = ctx.launch_async("work", LaunchOptions{{{1, 0, 0}}}, kNoBody);
    ctx.wait(handle);
    EXPECT_EQ(handle.completed(), ctx.now()) << "no drain: it resumes with its own handle";
    EXPECT_FALSE(slow.done());
    expect_queued_waits(host, 0);
    const Tensor tensor = ctx.full(3, {1, 8}, DType::f32, {}, "t");
    EXPECT_FALSE(slow.done());
    EXPECT_EQ(tensor.at(0, 7), 3);
    EXPECT_TRUE(slow.done());
    expect_queued_waits(host, 0);
    ran = true;
  });
  EXPECT_TRUE(ran);
}

TEST_P(BothSchedulings, MainContextDrivesDirectlyAndNeverEnqueues) {
  HostRun host({2, 1, 1, 1, 1 << 20}, with(GetParam()));
  host.machine.duration = [](PeCoord, const LaunchMessage& launch) {
    return launch.kernel == "slow" ? Ps{9'000'000} : Ps{1'000'000};
  };
  Context& ctx = host.runtime.main();
  const Handle slow = ctx.launch_async("slow", LaunchOptions{{{0, 0, 0}}, ctx.new_stream()}, kNoBody);
  const Handle quick = ctx.launch_async("quick", LaunchOptions{{{0, 0, 0}}}, kNoBody);
  ctx.wait(quick);
  EXPECT_TRUE(quick.done());
  EXPECT_FALSE(slow.done()) << "drives only until its own handle is complete";
  EXPECT_EQ(ctx.now(), quick.completed());
  expect_queued_waits(host, 0);
  {
    const Tensor tensor = ctx.full(2, {1, 16}, DType::f16, {}, "t");
    EXPECT_EQ(tensor.at(0, 3), 2);
    EXPECT_TRUE(slow.done()) << "reading waits for all that is pending";
  }
  const Ps before = ctx.now();
  host.runtime.spawn(
      [](Context& worker) {
        worker.launch("work", LaunchOptions{{{sip_of(worker), 0, 0}}}, kNoBody);
      },
      std::tuple<>(), 2);
  EXPECT_GT(ctx.now(), before);
  ctx.wait(ctx.launch_async("after", LaunchOptions{{{0, 0, 0}}}, kNoBody));
  EXPECT_EQ(host.runtime.host_trace().size(), 5u);
  EXPECT_EQ(host.runtime.switches(), 2u) << "the workers' waits only";
}

TEST(MainContext, ThatWaitsForWhatNeverComesIsToldSo) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  host.machine.hangs = [](PeCoord, const LaunchMessage&) { return true; };
  Context& ctx = host.runtime.main();
  const Handle handle = ctx.launch_async("work", LaunchOptions{{{0, 0, 0}}}, kNoBody);
  EXPECT_THROW(ctx.wait(handle), Deadlock);
}

}  // namespace
}  // namespace kernbench::testing
