#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/machine_run.h"

namespace kernbench::testing {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

DPPolicy split_over_all() { return DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise); }

TEST(TensorOnMachine, AnyPeReachesAnyShard) {
  MachineRun host(machine_of(1, 2, 2));
  host.runtime.spawn(
      [](Context& ctx) {
        const Tensor in = ctx.from_host({10, 20, 30, 40}, {1, 4}, DType::f32, split_over_all(), "in");
        const Tensor out = ctx.zeros({4, 4}, DType::f32, split_over_all(), "out");  // column i: what PE i read
        ctx.launch(
            "read_all",
            [](Va in_base, Va out_base, Tl& tl) {
              const ShardView own = tl.shard(out_base);
              for (Va i = 0; i < 4; ++i) tl.store(own.va + i * 4, tl.load(in_base + i * 4, {1, 1}, DType::f32));
            },
            in, out);
        for (std::int64_t row = 0; row < 4; ++row) {
          for (std::int64_t pe = 0; pe < 4; ++pe) EXPECT_EQ(out.at(row, pe), 10 * (row + 1));
        }
      },
      std::tuple<>(), 1);
}

TEST(TensorOnMachine, AccessAfterFreeIsAFaultThatNamesPeAddressKernelAndOp) {
  MachineRun host(machine_of(1, 1, 2));
  std::string text;
  host.runtime.spawn(
      [&](Context& ctx) {
        Tensor gone = ctx.zeros({1, 4}, DType::f32, {}, "gone");
        const Va va = gone.va();
        gone.free();
        try {
          ctx.launch(
              "late", LaunchOptions{{{0, 0, 1}}},
              [](Va freed, Tl& tl) {
                tl.load(freed, {1, 4}, DType::f32);
              },
              va);
        } catch (const DeviceFault& fault) {
          text = fault.what();
        }
        EXPECT_THAT(text, AllOf(HasSubstr("sip0.cube0.pe1"), HasSubstr("late"), HasSubstr("load"), HasSubstr("VA 0x"),
                                HasSubstr("not mapped")));
      },
      std::tuple<>(), 1);
  EXPECT_FALSE(text.empty());
}

TEST(TensorOnMachine, TimedContentsArriveAsWritten) {
  RunOptions options;
  options.timed_host_io = true;
  MachineRun host(machine_of(2, 2, 2), options);
  host.runtime.spawn(
      [](Context& ctx) {
        std::vector<double> values(77);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) + 100 * ctx.rank();
        const Ps before = ctx.now();
        const Tensor tensor = ctx.from_host(values, {7, 11}, DType::f16, split_over_all(), "t");
        EXPECT_GT(ctx.now(), before);
        const Ps written = ctx.now();
        EXPECT_EQ(tensor.to_host(), values);
        EXPECT_GT(ctx.now(), written);
      },
      std::tuple<>(), 2);
}

}  // namespace
}  // namespace kernbench::testing
