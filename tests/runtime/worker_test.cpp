#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tool_work.h"
#include "runtime/watchdog.h"
#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {

TEST(Workers, StartAndResumeInRankOrderAtOneInstant) {
  HostRun host({16, 1, 1, 1, 1 << 20});
  std::vector<int> order;
  std::vector<Ps> times;
  const auto outcome = host.run(
      [&](Context& ctx) {
        order.push_back(ctx.rank());
        for (int i = 0; i < 3; ++i) {
          ctx.launch("work", LaunchOptions{{{static_cast<std::uint16_t>(ctx.rank()), 0, 0}}}, kNoBody);
          order.push_back(ctx.rank());
          times.push_back(ctx.now());
        }
      },
      16);
  EXPECT_TRUE(outcome.finished);
  ASSERT_EQ(order.size(), 64u);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int>(i % 16));
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], times[i / 16 * 16]);
  EXPECT_EQ(host.machine.pool().outstanding(), 0u);
}

TEST(Workers, ResumeWhenTheirOwnHandleCompletes) {
  HostRun host({3, 1, 1, 1, 1 << 20});
  host.machine.duration = [](PeCoord pe, const LaunchMessage&) { return Ps{3'000'000} - pe.sip * 1'000'000u; };
  std::vector<int> order;
  host.run(
      [&](Context& ctx) {
        ctx.launch("work", LaunchOptions{{{static_cast<std::uint16_t>(ctx.rank()), 0, 0}}}, kNoBody);
        order.push_back(ctx.rank());
      },
      3);
  EXPECT_EQ(order, (std::vector<int>{2, 1, 0}));
}

TEST(Wait, ReturnsWithTheHandleCompleteAndAtOnceTheSecondTime) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  bool checked = false;
  host.run(
      [&](Context& ctx) {
        const Handle handle = ctx.launch_async("work", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        EXPECT_FALSE(handle.done());
        EXPECT_EQ(handle.completed(), kNever);
        ctx.wait(handle);
        EXPECT_TRUE(handle.done());
        EXPECT_EQ(handle.completed(), ctx.now());
        const std::uint64_t executed = host.machine.dispatcher().executed();
        const Ps now = ctx.now();
        ctx.wait(handle);
        EXPECT_EQ(ctx.now(), now);
        EXPECT_EQ(host.machine.dispatcher().executed(), executed);
        EXPECT_LT(handle.kernel_start(), handle.kernel_end());
        checked = true;
      },
      1);
  EXPECT_TRUE(checked);
}

TEST(Wait, ForAnEarlierHandleAfterALaterOneIsImmediate) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  host.run(
      [&](Context& ctx) {
        const Handle first = ctx.launch_async("a", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        const Handle second = ctx.launch_async("b", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        ctx.wait(second);
        EXPECT_TRUE(first.done());
        const Ps now = ctx.now();
        ctx.wait(first);
        EXPECT_EQ(ctx.now(), now);
      },
      1);
  ASSERT_EQ(host.runtime.host_trace().size(), 2u);
  EXPECT_EQ(host.runtime.host_trace()[0].name, "a");
  EXPECT_EQ(host.runtime.host_trace()[1].name, "b");
}

TEST(Launch, OfOneStreamFollowsInOrderAndOfAnotherOverlaps) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  host.run(
      [&](Context& ctx) {
        const std::uint16_t other = ctx.new_stream();
        const Handle a = ctx.launch_async("a", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        const Handle b = ctx.launch_async("b", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        const Handle c = ctx.launch_async("c", LaunchOptions{{{0, 0, 0}}, other}, kNoBody);
        for (const Handle& handle : {a, b, c}) ctx.wait(handle);
        EXPECT_GE(b.kernel_start(), a.kernel_end());
        EXPECT_LT(c.kernel_start(), a.kernel_end());
      },
      1);
}

TEST(Launch, GoesToThePesThatHoldANonEmptyShard) {
  HostRun host({1, 2, 1, 4, 1 << 20});
  const DPPolicy policy = DPPolicy().pe(PeSplit::row_wise).cubes(1);
  host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.zeros({3, 8}, DType::f16, policy, "t");  // PE 3 holds nothing
        ctx.launch("work", kNoBodyOf, tensor);
      },
      1);
  std::vector<PeCoord> pes;
  for (const auto& record : host.machine.launches) pes.push_back(record.pe);
  EXPECT_EQ(pes, (std::vector<PeCoord>{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}}));
}

TEST(Launch, RefusesWhatCannotBeLaunched) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  host.run(
      [&](Context& ctx) {
        const Tensor a = ctx.zeros({1, 8}, DType::f16, {}, "a");
        ctx.set_device(1);
        const Tensor b = ctx.zeros({1, 8}, DType::f16, {}, "b");
        EXPECT_EQ(message([&] { ctx.launch_async("k", kNoBodyOfTwo, a, b); }),
                  "launch 'k': tensor 'a' is on sip0, tensor 'b' on sip1: all must be on one SIP");
        EXPECT_EQ(message([&] { ctx.launch_async("k", kNoBody); }),
                  "launch 'k': no targets, and no tensor that has any");
        EXPECT_EQ(message([&] {
                    ctx.launch_async("k", LaunchOptions{{{0, 0, 7}}}, kNoBody);
                  }),
                  "the machine has no sip0.cube0.pe7");
        EXPECT_EQ(message([&] { ctx.set_device(2); }), "set_device: sip is 2: give 0 to 1");
        struct Large {
          std::array<char, kMaxArgumentBytes - 8> bytes{};
        };
        EXPECT_EQ(message([&] {
                    ctx.launch_async(
                        "k", [](Va, Large, char, Tl&) {}, a, Large(), 'x');
                  }),
                  "launch 'k': 4097 B of arguments, a launch carries at most 4096");
        EXPECT_EQ(message([&] {
                    ctx.launch(
                        "k", [](Va, Large, Tl&) {}, a, Large());
                  }),
                  "");
      },
      1);
}

TEST(Workers, BarrierLetsAllGoOnInTheSameInstantInOrderOfRanks) {
  HostRun host({3, 1, 1, 1, 1 << 20});
  host.machine.duration = [](PeCoord pe, const LaunchMessage&) { return (pe.sip + 1) * Ps{1'000'000}; };
  std::vector<Ps> times;
  std::vector<int> order;
  host.run(
      [&](Context& ctx) {
        for (int i = 0; i < 2; ++i) {
          ctx.launch("work", LaunchOptions{{{static_cast<std::uint16_t>(ctx.rank()), 0, 0}}}, kNoBody);
          ctx.barrier();
          times.push_back(ctx.now());
          order.push_back(ctx.rank());
        }
      },
      3);
  ASSERT_EQ(times.size(), 6u);
  EXPECT_EQ(times[0], times[2]);
  EXPECT_EQ(times[3], times[5]);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 0, 1, 2})) << "rank 2 arrives last";
}

void expect_reported(bool waits, const std::string& what) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  host.machine.hangs = [](PeCoord pe, const LaunchMessage&) { return pe.sip == 1; };
  const auto outcome = host.run(
      [waits](Context& ctx) {
        const LaunchOptions one{{{static_cast<std::uint16_t>(ctx.rank()), 0, 0}}};
        const Handle handle = ctx.launch_async("work", one, kNoBody);
        if (waits) ctx.wait(handle);
      },
      2, Ending::unfinished);
  EXPECT_FALSE(outcome.finished);
  EXPECT_EQ(outcome.unfinished, std::vector<int>{1});
  const auto ranks = host.runtime.blocked_ranks();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].waits_for, what);
}

TEST(Workers, ThatWaitForNothingThatComesAreReported) {
  expect_reported(true, "launch 'work' on sip1, submitted at 0.000 ns");
}

TEST(Workers, ThatReturnWithAKernelThatNeverEndsAreReported) {
  expect_reported(false, "launch 'work' on sip1, submitted at 0.000 ns (not waited for)");
}

TEST(Workers, EndingDoesNotEndTheirKernels) {
  HostRun host({1, 1, 1, 2, 1 << 20});
  const auto outcome = host.run(
      [&](Context& ctx) {
        ctx.launch_async("work", LaunchOptions{{{0, 0, 0}, {0, 0, 1}}}, kNoBody);
      },
      1);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(host.machine.launches.size(), 2u);
  EXPECT_EQ(host.runtime.host_trace().size(), 1u);
}

TEST(Spawn, ChecksItsArguments) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  EXPECT_THROW(host.runtime.program([](Context&) {}, 0), std::invalid_argument);
  host.runtime.program([](Context&) {}, 1);
  EXPECT_THROW(host.runtime.program([](Context&) {}, 1), std::logic_error);
}

TEST(Spawn, RanksBeyondTheSipsUseSip0) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  std::vector<int> devices;
  host.run([&](Context& ctx) { devices.push_back(ctx.device()); }, 3);
  EXPECT_EQ(devices, (std::vector<int>{0, 1, 0}));
}

TEST(Watchdog, NamesTheWorkerThatNeverYields) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  std::atomic<bool> expired{false};
  std::string report;
  {
    Watchdog watchdog(0.05, host.machine.dispatcher(), host.runtime.host_progress(), [&](const std::string& text) {
      report = text;
      expired = true;
    });
    host.run(
        [&](Context& ctx) {
          while (ctx.rank() == 1 && !expired) {
          }
        },
        2);
  }
  EXPECT_EQ(report,
            "watchdog: no progress for 0.05 s of wall clock at 0.000 ns of simulated time; running: the host code of "
            "rank 1 (process rank1)");
}

TEST(Watchdog, TakesTurnsAmongRanksForNoProgress) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  std::atomic<bool> expired{false};
  std::string report;
  {
    Watchdog watchdog(0.05, host.machine.dispatcher(), host.runtime.host_progress(), [&](const std::string& text) {
      report = text;
      expired = true;
    });
    bool over = false;
    host.run(
        [&](Context& ctx) {
          while (!over) {
            ctx.barrier();
            if (ctx.rank() == 0) over = expired;  // for both: none is left behind at a barrier
            ctx.barrier();
          }
        },
        2);
  }
  EXPECT_THAT(report, ::testing::MatchesRegex("watchdog: no progress for 0.05 s of wall clock at 0.000 ns of simulated "
                                              "time; running: the host code of .*, after [0-9]+ turns of ranks in "
                                              "which the machine got nothing to do"));
}

/// What a watchdog of 0.1 s says of a program on two ranks; `rank_program` also gets whether it has said it.
std::string report_of(const std::function<void(Context&, const std::atomic<bool>&)>& rank_program) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  std::atomic<bool> expired{false};
  std::string report;
  const Watchdog watchdog(0.1, host.machine.dispatcher(), host.runtime.host_progress(), [&](const std::string& text) {
    report = text;
    expired = true;
  });
  host.run([&](Context& ctx) { rank_program(ctx, expired); }, 2);
  return report;
}
void pass_time(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(Watchdog, LetsTheToolFillAndCheckForAsLongAsItTakes) {
  EXPECT_EQ(report_of([](Context& ctx, const std::atomic<bool>&) {
              const ToolWork outer(ctx);
              { const ToolWork inner(ctx); }
              pass_time(300);
            }),
            "");
}

/// Where it looks, none of them may be under way.
TEST(Watchdog, TakesEachEndOfTheToolsWorkForProgress) {
  EXPECT_EQ(report_of([](Context& ctx, const std::atomic<bool>&) {
              for (int i = 0; i < 10; ++i) {
                { const ToolWork work(ctx); }
                pass_time(20);
              }
            }),
            "");
}

TEST(Watchdog, WatchesWhatOthersDoWhileTheToolsWorkWaits) {
  const std::string report = report_of([](Context& ctx, const std::atomic<bool>& expired) {
    std::optional<ToolWork> work;
    if (ctx.rank() == 0) work.emplace(ctx);
    ctx.barrier();
    while (ctx.rank() == 1 && !expired) {
    }
    ctx.barrier();
  });
  EXPECT_THAT(report, ::testing::HasSubstr("running: the host code of rank 1 (process rank1)"));
}

TEST(Watchdog, WatchesARankAgainBehindTheToolsWork) {
  const std::string report = report_of([](Context& ctx, const std::atomic<bool>& expired) {
    { const ToolWork work(ctx); }
    while (!expired) {
    }
  });
  EXPECT_THAT(report, ::testing::HasSubstr("running: the host code of rank 0 (process rank0)"));
}

/// No simulated time for longer than its period; `step` happens all the while. Whether it reports.
template <class Step>
bool expires_during(const Step& step) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  HostProgress progress;
  std::atomic<bool> expired{false};
  const Watchdog watchdog(0.5, host.machine.dispatcher(), progress, [&](const std::string&) { expired = true; });
  for (int i = 0; i < 800; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    step(progress);
  }
  return expired;
}

/// An event that makes itself again: time passes, and nothing comes to its end.
struct Restless {
  EventQueue& queue;
  const std::atomic<bool>& over;
  void again() {
    queue.at(queue.now() + 1000, [this] {
      if (!over) again();
    });
  }
};

TEST(Watchdog, TakesSimulatedTimeAloneForNoProgress) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  std::atomic<bool> expired{false};
  std::string report;
  Restless restless{host.machine.dispatcher().queue(0), expired};
  const auto begin = std::chrono::steady_clock::now();
  {
    Watchdog watchdog(0.2, host.machine.dispatcher(), host.runtime.host_progress(), [&](const std::string& text) {
      report = text;
      expired = true;
    });
    restless.again();
    host.run([](Context&) {}, 1);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(expired);
  EXPECT_LT(took.count(), 0.2 + 1) << "within a second";
  EXPECT_THAT(report, ::testing::MatchesRegex("watchdog: no progress for 0.2 s of wall clock at [0-9]+\\.[0-9]+ ns of "
                                              "simulated time; running: the machine's event queue, [0-9]+ instants in "
                                              "which no work came to its end"));
}

/// A launch now and then is progress, whatever else happens.
TEST(Watchdog, TakesALaunchThatEndsForProgress) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  std::atomic<bool> expired{false};
  const Watchdog watchdog(0.5, host.machine.dispatcher(), host.runtime.host_progress(),
                          [&](const std::string&) { expired = true; });
  host.run(
      [](Context& ctx) {
        for (int i = 0; i < 8; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          ctx.launch("work", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        }
      },
      1);
  EXPECT_FALSE(expired);
}

TEST(Watchdog, TakesAWorkerThatEndsForProgress) {
  EXPECT_FALSE(expires_during([](HostProgress& progress) { ++progress.ended; }));
}

TEST(Watchdog, ReportsWhenNothingHappens) {
  EXPECT_TRUE(expires_during([](HostProgress&) {}));
}

TEST(Limit, EndsTheRunAtASimulatedTime) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  host.machine.dispatcher().set_limit(500'000);
  const auto outcome = host.run(
      [&](Context& ctx) {
        ctx.launch("work", LaunchOptions{{{0, 0, 0}}}, kNoBody);
      },
      1, Ending::unfinished);
  EXPECT_TRUE(host.machine.dispatcher().limit_reached());
  EXPECT_EQ(outcome.unfinished, std::vector<int>{0});
  EXPECT_LE(host.machine.dispatcher().now(), 500'000u);
}

}  // namespace
}  // namespace kernbench::testing
