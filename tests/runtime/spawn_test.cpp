#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/watchdog.h"
#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {
using ::testing::HasSubstr;

constexpr FakeMachine::Shape kFourSips{4, 1, 1, 1, 1 << 20};
const std::tuple<> kNoArguments;

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::vector<PeCoord> own_pe(const Context& ctx) { return {{static_cast<std::uint16_t>(ctx.device()), 0, 0}}; }

class Spawn : public ::testing::TestWithParam<SchedulingKind> {
 protected:
  static RunOptions options() {
    RunOptions options;
    options.scheduling = GetParam();
    return options;
  }
  HostRun host_{kFourSips, options()};
};
INSTANTIATE_TEST_SUITE_P(Runtime, Spawn, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(Spawn, CallsFnWithRankAndArgumentsAndReturnsWhenAllHaveFinished) {
  std::vector<std::string> calls;
  host_.runtime.spawn(
      [&](int rank, const std::string& text, int number) {
        host_.runtime.context().launch("work", LaunchOptions{own_pe(host_.runtime.context())}, kNoBody);
        calls.push_back(std::to_string(rank) + text + std::to_string(number));
      },
      std::make_tuple(std::string("x"), 7), 3);
  EXPECT_EQ(calls, (std::vector<std::string>{"0x7", "1x7", "2x7"}));
  EXPECT_EQ(host_.machine.launches.size(), 3u);
}

TEST_P(Spawn, RefusesJoinFalseByName) {
  EXPECT_EQ(message_of([&] { host_.runtime.spawn([](Context&) {}, kNoArguments, 2, false); }),
            "spawn: join = false is not supported: workers always end before it returns");
}

TEST_P(Spawn, CurrentDeviceBelongsToTheWorker) {
  std::vector<int> devices;
  host_.runtime.spawn(
      [&](Context& ctx) {
        EXPECT_EQ(ctx.device(), ctx.rank());
        if (ctx.rank() == 1) ctx.set_device(3);
        ctx.barrier();
        devices.push_back(ctx.device());
        const Tensor tensor = ctx.zeros({1, 8}, DType::f16, {}, "t");
        EXPECT_EQ(tensor.sip(), ctx.device());
      },
      kNoArguments, 3);
  std::sort(devices.begin(), devices.end());
  EXPECT_EQ(devices, (std::vector<int>{0, 2, 3}));
}

TEST_P(Spawn, ShardsOfARanksTensorLieOnItsSip) {
  const DPPolicy policy = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
  int checked = 0;
  host_.runtime.spawn(
      [&](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 128}, DType::f16, policy, "t");
        for (const ShardSpec& shard : tensor.shards()) {
          EXPECT_EQ(shard.sip, ctx.rank());
          ++checked;
        }
      },
      kNoArguments, 4);
  EXPECT_EQ(checked, 4) << "one cube of one PE each";
}

TEST_P(Spawn, ErrorHoldsRootCausesOnly) {
  int unwound = 0, went_on = 0;
  struct Guard {
    int& count;
    ~Guard() { ++count; }
  };
  try {
    host_.runtime.spawn(
        [&](Context& ctx) {
          const Guard guard{unwound};
          ctx.barrier();
          const Handle handle = ctx.launch_async("work", LaunchOptions{own_pe(ctx)}, kNoBody);
          ctx.barrier();
          if (ctx.rank() == 2) throw std::out_of_range("made to fail");
          ctx.wait(handle);
          ++went_on;
        },
        kNoArguments, 4);
    FAIL();
  } catch (const SpawnError& error) {
    EXPECT_STREQ(error.what(), "rank 2 of 4 failed; first reason: made to fail");
    ASSERT_EQ(error.failures.size(), 1u);
    EXPECT_THROW(std::rethrow_exception(error.failures.at(2)), std::out_of_range);
  }
  EXPECT_EQ(unwound, 4) << "the siblings are ended, their stacks unwind";
  EXPECT_EQ(went_on, 0);
}

TEST_P(Spawn, AfterAFailureQueuesAndCollectiveStateAreClear) {
  ProcessGroupOptions ring;
  ring.algorithm = "ring_allreduce";
  std::vector<Handle> handles(4);
  EXPECT_THROW(host_.runtime.spawn(
                   [&](Context& ctx) {
                     ctx.init_process_group(ring);
                     const Tensor tensor = ctx.zeros({1, 8}, DType::f16, {}, "t");
                     ctx.barrier();
                     if (ctx.rank() == 3) throw std::runtime_error("made to fail");
                     const auto rank = static_cast<std::size_t>(ctx.rank());
                     handles[rank] = ctx.all_reduce_async(tensor);
                     ctx.wait(handles[rank]);
                   },
                   kNoArguments, 4),
               SpawnError);
  EXPECT_TRUE(host_.runtime.blocked_ranks().empty());
  EXPECT_EQ(host_.machine.pool().outstanding(), 0u);
  const bool rounds = GetParam() == SchedulingKind::rounds;
  if (rounds) {  // there are no queues otherwise
    EXPECT_EQ(host_.runtime.pending_worker_waits(), 0u);
    EXPECT_EQ(host_.runtime.pending_collectives(), 0u);
  }
  // In rounds no part has gone to the machine, nor does one now; otherwise three have, and what a PE has it finishes.
  EXPECT_EQ(host_.runtime.host_trace().size(), rounds ? 0u : 3u);
  EXPECT_EQ(host_.machine.launches.size(), rounds ? 0u : 3u);
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(handles[rank].done(), !rounds) << rank;
}

TEST_P(Spawn, AfterAFailureTheMachineCanBeReadButNotUsed) {
  std::vector<Tensor> kept(2);
  EXPECT_THROW(host_.runtime.spawn(
                   [&](Context& ctx) {
                     kept[static_cast<std::size_t>(ctx.rank())] = ctx.full(4, {1, 8}, DType::f32, {}, "kept");
                     ctx.barrier();
                     throw std::runtime_error("made to fail");
                   },
                   kNoArguments, 2),
               SpawnError);
  EXPECT_EQ(kept[0].to_host(), std::vector<double>(8, 4.0)) << "memory stays as it was";
  const std::string refused =
      "the machine cannot be used after a failed program: contents can be read, nothing can be submitted";
  EXPECT_EQ(message_of([&] { host_.runtime.spawn([](Context&) {}, kNoArguments, 2); }), refused);
  EXPECT_EQ(message_of([&] {
              host_.runtime.main().launch_async("work", LaunchOptions{{{0, 0, 0}}}, kNoBody);
            }),
            refused);
}

TEST_P(Spawn, SeveralProgramsRunOneAfterTheOther) {
  std::vector<int> calls;
  for (int i = 1; i <= 3; ++i) {
    host_.runtime.spawn(
        [&](Context& ctx) {
          EXPECT_EQ(ctx.world_size(), i);
          ctx.launch("work", LaunchOptions{own_pe(ctx)}, kNoBody);
          calls.push_back(ctx.rank());
        },
        kNoArguments, i);
  }
  EXPECT_EQ(calls, (std::vector<int>{0, 0, 1, 0, 1, 2}));
  EXPECT_EQ(host_.machine.pool().outstanding(), 0u);
}

TEST_P(Spawn, FaultNobodyWaitedForIsAFailureOfItsRank) {
  host_.machine.fails = [](PeCoord, const LaunchMessage& launch) { return launch.kernel == "bad"; };
  try {
    host_.runtime.spawn(
        [&](Context& ctx) { ctx.launch_async(ctx.rank() == 1 ? "bad" : "good", LaunchOptions{own_pe(ctx)}, kNoBody); },
        kNoArguments, 2);
    FAIL();
  } catch (const SpawnError& error) {
    EXPECT_EQ(error.failures.size(), 1u);
    EXPECT_EQ(error.failures.count(1), 1u);
  }
}

TEST_P(Spawn, FromAWorkerIsRefused) {
  host_.runtime.spawn(
      [&](Context& ctx) {
        if (ctx.rank() != 0) return;
        EXPECT_EQ(message_of([&] { host_.runtime.spawn([](Context&) {}, kNoArguments, 1); }),
                  "spawn: call it from the main context, not from a worker");
      },
      kNoArguments, 2);
}

TEST_P(Spawn, DeadlockNamesRanksAtABarrierThatOneHasLeft) {
  const std::string text = message_of([&] {
    host_.runtime.spawn(
        [&](Context& ctx) {
          if (ctx.rank() != 1) ctx.barrier();
        },
        kNoArguments, 3);
  });
  EXPECT_THAT(text, HasSubstr("2 ranks have not finished"));
  EXPECT_THAT(text, HasSubstr("0    barrier; not reached by rank 1 (which has ended)\n"));
}

TEST_P(Spawn, LimitOfSimulatedTimeEndsIt) {
  host_.machine.dispatcher().set_limit(500'000);
  EXPECT_THROW(host_.runtime.spawn([](Context& ctx) { ctx.launch("work", LaunchOptions{own_pe(ctx)}, kNoBody); },
                                   kNoArguments, 1),
               RunStopped);
}

TEST_P(Spawn, RefusesUseOfAContextOutsideOfItsProgram) {
  EXPECT_EQ(message_of([&] { host_.runtime.context(); }), "context: no worker is running: call it from a worker");
}

TEST(WatchdogDeathTest, EndsAnInfiniteHostLoopWithExitCode4) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        HostRun host({2, 1, 1, 1, 1 << 20});
        const Watchdog watchdog(0.2, host.machine.dispatcher(), host.runtime.host_progress());
        host.run(
            [](Context& ctx) {
              for (volatile bool forever = ctx.rank() == 1; forever;) {
              }
            },
            2);
      },
      ::testing::ExitedWithCode(4), "watchdog: no progress for 0.2 s .* running: the host code of rank 1");
}

}  // namespace
}  // namespace kernbench::testing
