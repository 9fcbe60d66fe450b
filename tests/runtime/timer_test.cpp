#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {

constexpr FakeMachine::Shape kTwoSips{2, 1, 1, 1, 1 << 20};

class Timers : public ::testing::TestWithParam<SchedulingKind> {
 protected:
  RunOptions options() const {
    RunOptions options;
    options.scheduling = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Runtime, Timers, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(Timers, CompleteWhenTheirTimeHasPassed) {
  HostRun host(kTwoSips, options());
  std::vector<Ps> ends(2);
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Ps begin = ctx.now();
        const Handle timer = ctx.timer(1'500, "work");
        EXPECT_FALSE(timer.done());
        ctx.wait(timer);
        EXPECT_EQ(timer.completed(), begin + 1'500);
        ctx.wait(ctx.timer(0, "nothing"));
        ctx.wait(ctx.timer(700, "more work"));  // counts from now, not from the beginning
        ends[static_cast<std::size_t>(ctx.rank())] = ctx.now() - begin;
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_THAT(ends, ::testing::Each(Ps{2'200}));
}

TEST_P(Timers, EndWithinTheClocksRange) {
  HostRun host(kTwoSips, options());
  constexpr Ps kLast = (Ps{1} << 63) - 1;
  std::vector<std::string> texts;
  const auto outcome = host.run(
      [&](Context& ctx) {
        if (ctx.rank() != 0) return;
        ctx.wait(ctx.timer(1'000, "begin"));
        for (const Ps time : {static_cast<Ps>(-5), kLast - 999}) {
          try {
            (void)ctx.timer(time, "work");
          } catch (const std::invalid_argument& error) {
            texts.emplace_back(error.what());
          }
        }
        ctx.wait(ctx.timer(kLast - 1'000, "the longest"));
        EXPECT_EQ(ctx.now(), kLast);
      },
      2);
  EXPECT_TRUE(outcome.finished);
  const std::string why = " ps from 1000 ps on end beyond the clock's last instant, 9223372036854775807 ps";
  EXPECT_THAT(texts, ::testing::ElementsAre("timer 'work': 18446744073709551611" + why,
                                            "timer 'work': 9223372036854774808" + why));
}

TEST_P(Timers, OfARankThatHasEndedHoldNobodyUp) {
  HostRun host(kTwoSips, options());
  const auto outcome = host.run([](Context& ctx) { (void)ctx.timer(1'000, "left behind"); }, 2);
  EXPECT_TRUE(outcome.finished);
}

TEST_P(Timers, PromisesLetAnotherRankGoOn) {
  HostRun host(kTwoSips, options());
  Handle promise;
  Ps resumed = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        if (ctx.rank() == 0) promise = ctx.promise("go on");
        ctx.barrier();
        if (ctx.rank() == 0) {
          EXPECT_EQ(ctx.wait_any({promise}), 0U);
          resumed = ctx.now();
          return;
        }
        ctx.wait(ctx.timer(700, "work"));
        ctx.fulfil(promise);
        EXPECT_EQ(promise.completed(), ctx.now());
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(resumed, 700U);
}

TEST(WaitAny, ReturnsWithTheFirstThatIsComplete) {
  HostRun host(kTwoSips);
  host.machine.duration = [](PeCoord, const LaunchMessage&) { return Ps{50'000}; };
  host.run(
      [&](Context& ctx) {
        if (ctx.rank() != 0) return;
        const Handle launch = ctx.launch_async("work", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        const Handle late = ctx.timer(900'000, "late"), early = ctx.timer(10, "early");
        EXPECT_EQ(ctx.wait_any({late, launch, early}), 2U);
        EXPECT_EQ(ctx.now(), early.completed());
        EXPECT_EQ(ctx.wait_any({late, launch}), 1U);
        EXPECT_EQ(ctx.now(), launch.completed());
        EXPECT_EQ(ctx.wait_any({launch, early}), 0U) << "complete ones cost nothing";
        EXPECT_EQ(ctx.wait_any({late}), 0U);
        EXPECT_EQ(ctx.now(), late.completed());
      },
      2);
}

TEST(WaitAny, TakesTimersInTheMainContextToo) {
  HostRun host(kTwoSips);
  Context& ctx = host.runtime.main();
  const Handle timer = ctx.timer(2'000, "work");
  ctx.wait(timer);
  EXPECT_EQ(timer.completed(), 2'000U);
  EXPECT_EQ(ctx.now(), 2'000U);
}

template <class Error, class F>
void expect_error(const char* text, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error: " << text;
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), text);
  }
}

TEST(WaitAny, RefusesWhatCannotComplete) {
  HostRun host(kTwoSips);
  host.run(
      [&](Context& ctx) {
        expect_error<std::invalid_argument>("wait_any: no handles", [&] { ctx.wait_any({}); });
        expect_error<std::invalid_argument>("wait_any: a handle is empty", [&] { ctx.wait_any({Handle()}); });
        expect_error<std::invalid_argument>("fulfil: the handle is no promise", [&] { ctx.fulfil(ctx.timer(1, "t")); });
        const Handle promise = ctx.promise("once");
        ctx.fulfil(promise);
        expect_error<std::logic_error>("fulfil: promise 'once' on sip0, submitted at 0.000 ns is complete already",
                                       [&] { ctx.fulfil(promise); });
      },
      1);
}

TEST(Promise, ThatNobodyFulfilsIsADeadlockThatNamesIt) {
  HostRun host(kTwoSips);
  const auto outcome = host.run(
      [](Context& ctx) {
        ctx.wait_any({ctx.promise("never"), ctx.promise("nor this")});
      },
      1, Ending::unfinished);
  EXPECT_FALSE(outcome.finished);
  ASSERT_EQ(host.runtime.blocked_ranks().size(), 1U);
  EXPECT_EQ(host.runtime.blocked_ranks().front().waits_for,
            "promise 'never' on sip0, submitted at 0.000 ns, or one of 1 more");
}

}  // namespace
}  // namespace kernbench::testing
