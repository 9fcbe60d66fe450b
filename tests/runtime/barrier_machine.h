#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>

#include "tests/runtime/entry_points.h"
#include "tests/runtime/machine_run.h"

namespace kernbench::testing {

inline constexpr Va kForeign = Va{1} << 46;  ///< beyond what tensors are given
inline constexpr Shape kRow{1, kEntryElements};

/// Adds `term` to the eight elements at `va`, on each PE that runs it.
inline void add_to(Va va, double term, Tl& tl) {
  tl.store(va, tl.add(tl.load(va, kRow, DType::f32), tl.fill(kRow, DType::f32, term)));
}

inline std::string ns_of(Ps time) { return fmt::format("{}.{:03} ns", time / kPsPerNs, time % kPsPerNs); }

/// Programs of two or three ranks, one SIP of one PE for each, that run one after the other on one machine.
class BarrierOnMachine : public ::testing::TestWithParam<SchedulingKind> {
 protected:
  static bool rounds() { return GetParam() == SchedulingKind::rounds; }

  void build(std::uint16_t sips = 2) {
    host_ = std::make_unique<MachineRun>(machine_of(sips, 1, 1), scheduled(GetParam()));
    host_->runtime.init_process_group(ring_algorithm());
  }
  void run(const std::function<void(Context&)>& program) {
    host_->runtime.spawn(program, std::tuple<>(), host_->machine.map().sips);
  }
  static Tensor make(Context& ctx, double value, const std::string& name = "t") {
    return ctx.full(value, kRow, DType::f32, {}, name);
  }
  /// A launch of `ctx`'s SIP that adds 1 to a tensor of another SIP; on a stream that nothing holds up.
  Handle add_from_elsewhere(Context& ctx, const Tensor& tensor) {
    const Va va = kForeign + (Va{windows_++} << 21);
    const std::uint16_t stream = ctx.new_stream();
    ctx.submit(MmuMapMessage{{{va, tensor.bytes(), tensor.pa(0), {}}}}, stream);
    return ctx.launch_async("elsewhere", LaunchOptions{{{static_cast<std::uint16_t>(ctx.device()), 0, 0}}, stream},
                            add_to, va, 1);
  }
  std::uint64_t waits() const {
    const HostAccessTable& table = host_->runtime.host_accesses();
    return std::accumulate(table.begin(), table.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const HostAccessCounts& counts) { return sum + counts.waited; });
  }
  /// Uses `entry` while `writer` is pending: the access has to come after it.
  void use_after(const HostEntryPoint& entry, Tensor& tensor, Tensor& other, const Handle& writer) {
    EXPECT_FALSE(writer.done()) << "nothing is tried otherwise";
    const std::uint64_t before = waits();
    EXPECT_EQ(use_entry_point(entry.access, tensor, other), expected_of(entry.access));
    EXPECT_TRUE(writer.done());
    EXPECT_GT(waits(), before);
    ++tried_;
  }

  std::unique_ptr<MachineRun> host_;
  unsigned windows_ = 0;
  std::size_t tried_ = 0;
};
}  // namespace kernbench::testing
