#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {

std::string reason(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(Failure, OfOneWorkerEndsTheOthersAndNothingElse) {
  HostRun host({4, 1, 1, 2, 1 << 20});
  int unwound = 0, reached_end = 0;
  struct Guard {
    int& count;
    ~Guard() { ++count; }
  };
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Guard guard{unwound};
        const auto sip = static_cast<std::uint16_t>(ctx.rank());
        const Handle handle = ctx.launch_async("work", LaunchOptions{{{sip, 0, 0}, {sip, 0, 1}}}, kNoBody);
        if (ctx.rank() == 2) throw std::runtime_error("made to fail");
        ctx.wait(handle);
        ++reached_end;
      },
      4, Ending::failure);
  EXPECT_FALSE(outcome.finished);
  EXPECT_TRUE(outcome.unfinished.empty());
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(reason(outcome.failures.at(2)), "made to fail");
  EXPECT_EQ(reached_end, 0);
  EXPECT_EQ(unwound, 4 - 1);                    // rank 3 had not begun
  EXPECT_EQ(host.machine.launches.size(), 6u);  // kernels belong to their PEs and finish
  EXPECT_EQ(host.machine.pool().outstanding(), 0u);
  try {
    host.runtime.rethrow_failures();
    FAIL();
  } catch (const SpawnError& error) {
    EXPECT_STREQ(error.what(), "rank 2 of 4 failed; first reason: made to fail");
    EXPECT_EQ(error.failures.size(), 1u);
  }
}

TEST(Failure, OfAKernelSurfacesInTheWorkerThatWaits) {
  HostRun host({2, 2, 1, 1, 1 << 20});
  host.machine.fails = [](PeCoord pe, const LaunchMessage&) { return pe == PeCoord{1, 1, 0}; };
  const auto outcome = host.run(
      [&](Context& ctx) {
        const auto sip = static_cast<std::uint16_t>(ctx.rank());
        ctx.launch("work", LaunchOptions{{{sip, 0, 0}, {sip, 1, 0}}}, kNoBody);
      },
      2, Ending::failure);
  ASSERT_EQ(outcome.failures.size(), 1u);
  const std::string text = reason(outcome.failures.at(1));
  EXPECT_NE(text.find("launch 'work' on sip1, submitted at 0.000 ns failed\n  sip1.cube1.pe0: kernel error in kernel "
                      "'work', op run, at "),
            std::string::npos)
      << text;
  EXPECT_THROW(std::rethrow_exception(outcome.failures.at(1)), DeviceFault);
}

TEST(Failure, CanBeCaughtAndTheRankGoesOn) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  host.machine.fails = [](PeCoord, const LaunchMessage& launch) { return launch.kernel == "bad"; };
  int caught = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Handle bad = ctx.launch_async("bad", LaunchOptions{{{0, 0, 0}}}, kNoBody);
        for (int i = 0; i < 2; ++i) {
          try {
            ctx.wait(bad);
          } catch (const DeviceFault&) {
            ++caught;
            ctx.launch("good", LaunchOptions{{{0, 0, 0}}}, kNoBody);  // yields inside a handler
          }
        }
      },
      1);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(caught, 2);
}

TEST(Failure, ThatNobodyWaitedForIsInTheOutcome) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  host.machine.fails = [](PeCoord, const LaunchMessage&) { return true; };
  const auto outcome = host.run(
      [&](Context& ctx) {
        ctx.launch_async("bad", LaunchOptions{{{0, 0, 0}}}, kNoBody);
      },
      1, Ending::failure);
  EXPECT_TRUE(outcome.finished);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_THROW(host.runtime.rethrow_failures(), SpawnError);
}

TEST(Failure, InHandlersOfSeveralRanksDoesNotMixTheirExceptions) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  std::vector<std::string> seen;
  host.run(
      [&](Context& ctx) {
        const auto sip = static_cast<std::uint16_t>(ctx.rank());
        try {
          throw std::runtime_error("of rank " + std::to_string(ctx.rank()));
        } catch (const std::exception&) {
          for (int i = 0; i < 2; ++i) ctx.launch("work", LaunchOptions{{{sip, 0, 0}}}, kNoBody);
          try {
            throw;  // rethrows this rank's own
          } catch (const std::exception& own) {
            seen.push_back(own.what());
          }
        }
      },
      2);
  EXPECT_EQ(seen, (std::vector<std::string>{"of rank 0", "of rank 1"}));
}

TEST(Failure, WhileOthersAreInHandlersUnwindsThem) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  bool destroyed = false;
  struct Guard {
    bool& flag;
    ~Guard() { flag = true; }
  };
  const auto outcome = host.run(
      [&](Context& ctx) {
        const auto sip = static_cast<std::uint16_t>(ctx.rank());
        if (ctx.rank() == 0) {
          const Guard guard{destroyed};
          try {
            throw std::runtime_error("handled");
          } catch (const std::runtime_error&) {
            ctx.launch("work", LaunchOptions{{{sip, 0, 0}}}, kNoBody);
          }
        }
        throw std::runtime_error("not handled");
      },
      2, Ending::failure);
  EXPECT_TRUE(destroyed);
  EXPECT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures.count(1), 1u);
}

TEST(Failure, LeavesMemoryAsItWas) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.full(ctx.rank() + 1, {1, 8}, DType::f32, {}, "t");
        if (ctx.rank() == 1) throw std::runtime_error("made to fail");
        ctx.launch("work", kNoBodyOf, tensor);
      },
      2, Ending::failure);
  float value = 0;
  host.machine.read(PhysicalAddress::hbm({0, 0, 0}, 0), &value, sizeof value);
  EXPECT_EQ(value, 1.0f);
}

}  // namespace
}  // namespace kernbench::testing
