// Kernels' fibers: switching, stacks and their guards.
#include "models/pe/cpu/fiber.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace kernbench::pe {
namespace {

const KernelLabel kLabel{"k", {0, 1, 2}};

TEST(KernelFiber, SuspendsResumesAndGivesItsStackBack) {
  StackPool pool;
  KernelFiber fiber(pool, kLabel);
  std::vector<int> order;
  fiber.start([&] {
    order.push_back(1);
    fiber.suspend();
    order.push_back(3);
  });
  order.push_back(2);
  EXPECT_TRUE(fiber.active());
  EXPECT_EQ(pool.in_use(), 1u);
  fiber.resume();
  EXPECT_FALSE(fiber.active());
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(KernelFiber, ExceptionsStayInsideOrComeOutAsTheError) {
  StackPool pool;
  KernelFiber fiber(pool, kLabel);
  fiber.start([&] {
    try {
      fiber.suspend();
      throw std::runtime_error("inner");
    } catch (const std::runtime_error&) {
      throw std::logic_error("outer");
    }
  });
  fiber.resume();
  EXPECT_FALSE(fiber.active());
  EXPECT_THROW(std::rethrow_exception(fiber.take_error()), std::logic_error);
}

TEST(KernelFiber, CancelUnwindsEvenThroughACatchAll) {
  StackPool pool;
  int unwound = 0;
  struct Guard {
    int& count;
    ~Guard() { ++count; }
  };
  {
    KernelFiber fiber(pool, kLabel);
    fiber.start([&] {
      const Guard outer{unwound};
      try {
        const Guard inner{unwound};
        fiber.suspend();
      } catch (...) {
      }
      fiber.suspend();
    });
  }
  EXPECT_EQ(unwound, 2);
  EXPECT_EQ(pool.in_use(), 0u);
}

/// Whose code runs is known while it does, and only then: at its start, while it waits, when it goes on.
TEST(KernelFiber, SaysWhoseCodeRuns) {
  StackPool pool;
  Activity activity;
  KernelFiber fiber(pool, {"k", {0, 1, 2}, &activity});
  std::vector<std::string> running;
  fiber.start([&] {
    running.push_back(activity.kernel());
    fiber.suspend();
    running.push_back(activity.kernel());
  });
  EXPECT_EQ(activity.kernel(), "");
  fiber.resume();
  EXPECT_EQ(activity.kernel(), "");
  EXPECT_EQ(running, std::vector<std::string>(2, "kernel 'k' on sip0.cube1.pe2"));
  const std::string longest(200, 'x');
  activity.enter(longest, {});
  EXPECT_EQ(activity.kernel(), "kernel '" + longest.substr(0, 64) + "' on sip0.cube0.pe0");
}

/// Any place of the guard, the far one too.
TEST(KernelFiberDeathTest, AnOverflowEndsTheProcessWithTheKernelsName) {
  const auto touch = [](std::size_t below) {
    StackPool pool;
    KernelFiber fiber(pool, kLabel);
    fiber.start([&] {
      const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
      *reinterpret_cast<volatile char*>(here - StackPool::kStackBytes - below) = 1;
    });
  };
  for (const std::size_t below : {std::size_t{0}, std::size_t{100'000}, StackPool::kGuardBytes - 8192}) {
    EXPECT_EXIT(touch(below), ::testing::ExitedWithCode(8),
                "kernbench: error: kernel 'k' on sip0.cube1.pe2 overflowed its stack of 128 KiB");
  }
}

TEST(KernelFiberDeathTest, AStackWithoutAGuardIsLookedAtWhenItsKernelSwitchesAway) {
  const auto overwrite_the_end = [] {
    StackPool pool(1, 0);
    const StackPool::Stack stack = pool.take();
    EXPECT_EQ(stack.guard_bytes, 0U);
    pool.give_back(stack);  // the next one is this one
    KernelFiber fiber(pool, kLabel);
    fiber.start([&] { std::memset(stack.base, 1, 8); });
  };
  EXPECT_EXIT(overwrite_the_end(), ::testing::ExitedWithCode(8),
              "kernbench: error: kernel 'k' on sip0.cube1.pe2 overflowed its stack of 128 KiB");
}

TEST(KernelFiber, ThousandsAreAliveAtOnce) {
  StackPool pool;
  std::vector<std::unique_ptr<KernelFiber>> fibers;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    fibers.push_back(std::make_unique<KernelFiber>(pool, kLabel));
    KernelFiber* self = fibers.back().get();
    self->start([&sum, self, i] {
      self->suspend();
      sum += i;
    });
  }
  EXPECT_EQ(pool.in_use(), 20'000u);
  for (const auto& fiber : fibers) fiber->resume();
  EXPECT_EQ(sum, 20'000u * 19'999 / 2);
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace kernbench::pe
