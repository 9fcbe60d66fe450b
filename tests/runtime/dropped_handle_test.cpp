#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <variant>

#include "tests/runtime/barrier_machine.h"

// The last handle of a tensor goes while something that was submitted before may still touch its memory.
namespace kernbench::testing {
namespace {

constexpr Shape kLong{1, 1 << 18};  ///< 1 MiB of f32: a host copy takes longer than a tensor is made

/// Adds 1 to the first elements, so often that it is still under way when the next tensor has been made.
void add_often(Va va, Tl& tl) {
  for (int i = 0; i < 200; ++i) add_to(va, 1, tl);
}

class DroppedHandle : public BarrierOnMachine {
 protected:
  /// Rank 0 makes a tensor, `begin` begins something on it, and the handle goes. The next tensor lies elsewhere and
  /// keeps its contents; the memory comes back when what was begun has ended.
  void drop_after(const std::function<Handle(Context&, const Tensor&)>& begin) {
    build();
    run([&](Context& ctx) {
      if (ctx.rank() != 0) return;
      const PeCoord pe{0, 0, 0};
      const std::uint64_t all = host_->runtime.free_bytes(pe);
      Tensor gone = ctx.full(kBefore, kLong, DType::f32, {}, "gone");
      const std::uint64_t at = gone.pa(0).encode();
      const Handle pending = begin(ctx, gone);
      gone = Tensor();
      EXPECT_LT(host_->runtime.free_bytes(pe), all) << "the memory may still be written";
      {
        const Tensor next = ctx.full(kOther, kLong, DType::f32, {}, "next");
        EXPECT_FALSE(pending.done()) << "nothing is tried otherwise";
        EXPECT_NE(next.pa(0).encode(), at);
        EXPECT_NO_THROW(ctx.wait(pending)) << "the mapping is there as long";
        EXPECT_EQ(next.at(0, 0), kOther);
        EXPECT_EQ(next.at(0, kLong.cols - 1), kOther);
      }
      EXPECT_EQ(host_->runtime.free_bytes(pe), all);
      EXPECT_EQ(ctx.full(kOther, kLong, DType::f32, {}, "later").pa(0).encode(), at);
      ++tried_;
    });
    EXPECT_EQ(tried_, 1U);
  }
};

INSTANTIATE_TEST_SUITE_P(Tensor, DroppedHandle, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(DroppedHandle, MemoryIsKeptUntilAPendingHostCopyFromItHasEnded) {
  Handle read;
  drop_after([&](Context& ctx, const Tensor& tensor) {
    MemoryReadMessage message;
    message.from = tensor.pa(0);
    message.bytes = tensor.bytes();
    return read = ctx.submit(std::move(message), ctx.new_stream());
  });
  const auto& data = std::get<MemoryReadMessage>(read.message().body).data;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kLong.cols); ++i) {
    ASSERT_EQ(load_element(data.data(), DType::f32, i), kBefore) << i;
  }
}

TEST_P(DroppedHandle, MemoryAndMappingAreKeptUntilAPendingLaunchThatGotTheAddressAsANumberHasEnded) {
  drop_after([](Context& ctx, const Tensor& tensor) {
    return ctx.launch_async("by_number", LaunchOptions{{{0, 0, 0}}, ctx.new_stream()}, add_often, tensor.va());
  });
}

TEST_P(DroppedHandle, MemoryIsKeptUntilAPendingLaunchOfAnotherSipThatMapsItHasEnded) {
  drop_after([](Context& ctx, const Tensor& tensor) {
    ctx.set_device(1);
    const std::uint16_t stream = ctx.new_stream();
    ctx.submit(MmuMapMessage{{{kForeign, tensor.bytes(), tensor.pa(0), {}}}}, stream);
    const Handle launch = ctx.launch_async("elsewhere", LaunchOptions{{{1, 0, 0}}, stream}, add_often, kForeign);
    ctx.set_device(0);
    return launch;
  });
}

/// 12 of the 16 GiB of the slice, twice.
TEST_P(DroppedHandle, ANewTensorThatFindsNoOtherMemoryWaitsForIt) {
  build();
  run([&](Context& ctx) {
    if (ctx.rank() != 0) return;
    constexpr Shape kMost{1, std::int64_t{3} << 30};
    Tensor gone = ctx.empty(kMost, DType::f32, {}, "gone");
    const std::uint64_t at = gone.pa(0).encode();
    const Handle pending =
        ctx.launch_async("by_number", LaunchOptions{{{0, 0, 0}}, ctx.new_stream()}, add_often, gone.va());
    gone = Tensor();
    const Tensor next = ctx.empty(kMost, DType::f32, {}, "next");
    EXPECT_TRUE(pending.done());
    EXPECT_EQ(next.pa(0).encode(), at);
    EXPECT_THROW(ctx.empty(kMost, DType::f32, {}, "too much"), OutOfDeviceMemory);
    ++tried_;
  });
  EXPECT_EQ(tried_, 1U);
}

/// Each waits for what was pending when its own handle went, and not for what came later.
TEST_P(DroppedHandle, MemoryIsNotKeptForWhatIsSubmittedLater) {
  build();
  run([&](Context& ctx) {
    if (ctx.rank() != 0) return;
    const PeCoord pe{0, 0, 0};
    const Tensor kept = make(ctx, kBefore, "kept");
    const std::uint64_t all = host_->runtime.free_bytes(pe);
    Tensor gone = make(ctx, kBefore, "gone");
    const Handle before = ctx.launch_async("before", LaunchOptions{{{0, 0, 0}}, ctx.new_stream()}, add_often, kept);
    gone = Tensor();
    EXPECT_LT(host_->runtime.free_bytes(pe), all);
    const Handle later = ctx.launch_async("later", LaunchOptions{{{0, 0, 0}}, ctx.new_stream()}, add_often, kept);
    ctx.wait(before);
    EXPECT_FALSE(later.done()) << "nothing is tried otherwise";
    EXPECT_EQ(host_->runtime.free_bytes(pe), all);
    ctx.wait(later);
    ++tried_;
  });
  EXPECT_EQ(tried_, 1U);
}

}  // namespace
}  // namespace kernbench::testing
