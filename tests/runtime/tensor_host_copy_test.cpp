#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/runtime/host_run.h"
#include "tests/support/in_copy.h"

namespace kernbench::testing {
namespace {

RunOptions timed(bool data = true) {
  RunOptions options;
  options.timed_host_io = true;
  options.data = data;
  return options;
}

/// Times of creating, reading, writing and copying tensors.
std::vector<Ps> host_copy_times(HostRun& host, bool data) {
  std::vector<Ps> times;
  host.run(
      [&](Context& ctx) {
        auto lap = [&, last = ctx.now()]() mutable {
          times.push_back(ctx.now() - last);
          last = ctx.now();
        };
        const DPPolicy policy = DPPolicy().pe(PeSplit::column_wise);
        std::vector<double> values(512);
        std::iota(values.begin(), values.end(), 1.0);
        Tensor a = ctx.from_host(values, {1, 512}, DType::f16, policy, "a");
        lap();
        if (data) {
          EXPECT_EQ(a.to_host(), values);
        } else {
          a.to_host();
        }
        lap();
        const double one = a.at(0, 300);
        EXPECT_EQ(one, data ? 301 : 0);
        lap();
        Tensor b = ctx.zeros({1, 512}, DType::f16, policy, "b");
        lap();
        b.copy_from(a);
        lap();
        EXPECT_EQ(b.at(0, 511), data ? 512 : 0);
      },
      1);
  return times;
}

TEST(TensorHostCopies, TimedHostCopiesTakeTheTimeOfTheirWay) {
  HostRun host({1, 1, 1, 4, 1 << 20}, timed());
  const Ps there_and_back = 2 * host.machine.pcie_config().latency;
  const std::vector<Ps> times = host_copy_times(host, true);
  ASSERT_EQ(times.size(), 5u);
  EXPECT_GT(times[0], 2 * there_and_back);  // map, then contents
  EXPECT_GT(times[1], there_and_back);      // read
  EXPECT_GT(times[2], there_and_back);      // one element
  EXPECT_LT(times[2], times[1]);
  EXPECT_GT(times[3], 2 * there_and_back);  // zeros are written, too
  EXPECT_GT(times[4], 2 * there_and_back);  // read and write
}

TEST(TensorHostCopies, TimedHostCopiesTakeTheSameTimeWithoutData) {
  const std::vector<Ps> with = in_copy([] {
    HostRun host({1, 1, 1, 4, 1 << 20}, timed());
    return host_copy_times(host, true);
  });
  HostRun host({1, 1, 1, 4, 1 << 20}, timed(false));
  const std::vector<Ps> times = host_copy_times(host, false);
  ASSERT_EQ(times.size(), 5u);
  for (const Ps time : times) EXPECT_GT(time, 2 * host.machine.pcie_config().latency);
  EXPECT_EQ(times, with);
}

TEST(TensorHostCopies, ATimedCopyPassesACollectiveThatNotAllHaveCalled) {
  HostRun host({2, 1, 1, 1, 1 << 20}, timed());
  host.machine.duration = [](PeCoord, const LaunchMessage&) { return 1000 * kPsPerNs * 1000; };  // longer than a copy
  host.runtime.init_process_group({});
  const auto outcome = host.run(
      [&](Context& ctx) {
        const Tensor sum = ctx.full(1, {1, 8}, DType::f16, {}, "sum");
        const Tensor other = ctx.full(5, {1, 8}, DType::f16, {}, "other");
        if (ctx.rank() == 0) {
          const Handle handle = ctx.all_reduce_async(sum);
          EXPECT_EQ(other.at(0, 3), 5);  // rank 1 has not called yet: it waits for the barrier below
          EXPECT_FALSE(handle.done());
          ctx.barrier();
          ctx.wait(handle);
        } else {
          ctx.barrier();
          ctx.all_reduce(sum);
        }
      },
      2);
  EXPECT_TRUE(outcome.finished);
}

}  // namespace
}  // namespace kernbench::testing
