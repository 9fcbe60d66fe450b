#include <gtest/gtest.h>

#include <functional>

#include "tests/runtime/entry_points.h"
#include "tests/runtime/host_run.h"

namespace kernbench::testing {
namespace {

struct Case {
  HostEntryPoint entry;
  SchedulingKind scheduling;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const HostEntryPoint& entry : kHostEntryPoints) {
    for (const SchedulingKind kind : {SchedulingKind::concurrent, SchedulingKind::rounds})
      list.push_back({entry, kind});
  }
  return list;
}

std::string name_of(const Case& value) {
  return identifier_of(value.entry) + (value.scheduling == SchedulingKind::rounds ? "_rounds" : "_concurrent");
}

class EntryPoint : public ::testing::TestWithParam<Case> {
 protected:
  EntryPoint() : host_({3, 1, 1, 1, 1 << 20}, options()) {
    host_.machine.duration = [](PeCoord, const LaunchMessage&) { return Ps{5'000'000}; };
    host_.machine.effect = [this](PeCoord pe, const LaunchMessage&) {
      const std::vector<float> values(kEntryElements, kAfter);
      host_.machine.write(PhysicalAddress::hbm(pe, offset_[pe.sip]), values.data(), kEntryElements * sizeof(float));
    };
  }
  static RunOptions options() {
    RunOptions options;
    options.scheduling = GetParam().scheduling;
    return options;
  }
  Tensor make(Context& ctx, double value) {
    return ctx.full(value, {1, kEntryElements}, DType::f32, {}, value == kBefore ? "t" : "other");
  }
  /// On a SIP where nothing is pending.
  Tensor make_other(Context& ctx) {
    const int device = ctx.device();
    ctx.set_device(2);
    Tensor other = make(ctx, kOther);
    ctx.set_device(device);
    return other;
  }
  std::uint64_t waited() const { return waits_of(host_.runtime, GetParam().entry.access); }
  HostRun host_;
  std::uint64_t offset_[3] = {0, 0, 0};
};
INSTANTIATE_TEST_SUITE_P(HostReadBarrier, EntryPoint, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(EntryPoint, WaitsForAPendingLaunch) {
  bool checked = false;
  const auto outcome = host_.run(
      [&](Context& ctx) {
        Tensor tensor = make(ctx, kBefore), other = make_other(ctx);
        offset_[0] = tensor.pa(0).offset;
        const Handle handle = ctx.launch_async("writer", kNoBodyOf, tensor);
        EXPECT_EQ(use_entry_point(GetParam().entry.access, tensor, other), expected_of(GetParam().entry.access));
        EXPECT_TRUE(handle.done());
        EXPECT_EQ(waited(), 1u);
        checked = true;
      },
      1);
  EXPECT_TRUE(outcome.finished);
  EXPECT_TRUE(checked);
}

TEST_P(EntryPoint, WaitsForAPendingCollectiveOfAnyRank) {
  ProcessGroupOptions ring;
  ring.algorithm = "ring_allreduce";
  const bool rounds = GetParam().scheduling == SchedulingKind::rounds;
  std::vector<Tensor> tensors(2);
  std::vector<Ps> resumed(2);
  bool checked = false;
  const auto outcome = host_.run(
      [&](Context& ctx) {
        const auto rank = static_cast<std::size_t>(ctx.rank());
        ctx.init_process_group(ring);
        tensors[rank] = make(ctx, kBefore);
        Tensor other = rank == 1 ? make_other(ctx) : Tensor();
        offset_[rank] = tensors[rank].pa(0).offset;
        ctx.barrier();
        const Handle handle = ctx.all_reduce_async(tensors[rank]);
        if (!rounds) ctx.barrier();  // there, rank 0 has had its turn
        if (rank == 0) {
          ctx.wait(handle);
        } else {  // the last to submit it; reads what rank 0's part writes
          EXPECT_FALSE(handle.done());
          EXPECT_EQ(use_entry_point(GetParam().entry.access, tensors[0], other), expected_of(GetParam().entry.access));
          EXPECT_EQ(waited(), 1u);
          checked = true;
        }
        resumed[rank] = ctx.now();
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_TRUE(checked);
  if (rounds) {
    EXPECT_EQ(resumed[0], resumed[1]) << "the common resume point";
  }
}

TEST_P(EntryPoint, CostsNoSwitchWithNothingPending) {
  const auto outcome = host_.run(
      [&](Context& ctx) {
        Tensor tensor = make(ctx, kAfter), other = make_other(ctx);
        const std::uint64_t switches = host_.runtime.switches();
        const Ps now = ctx.now();
        EXPECT_EQ(use_entry_point(GetParam().entry.access, tensor, other), expected_of(GetParam().entry.access));
        EXPECT_EQ(host_.runtime.switches(), switches);
        EXPECT_EQ(ctx.now(), now);
        EXPECT_EQ(waited(), 0u);
        EXPECT_GE(host_.runtime.host_accesses()[static_cast<std::size_t>(GetParam().entry.access)].used, 1u);
      },
      1);
  EXPECT_TRUE(outcome.finished);
}

class Metadata : public ::testing::TestWithParam<SchedulingKind> {
 protected:
  static RunOptions options() {
    RunOptions options;
    options.scheduling = GetParam();
    return options;
  }
  /// Looks at everything that metadata is while `handle` is pending.
  void expect_no_drain(const Tensor& tensor, const Handle& handle) {
    const std::vector<std::function<void()>> accessors = {
        [&] { EXPECT_EQ(tensor.shape().count(), 8); },  [&] { EXPECT_EQ(tensor.dtype(), DType::f16); },
        [&] { EXPECT_EQ(tensor.name(), "t"); },         [&] { EXPECT_NE(tensor.va(), 0u); },
        [&] { EXPECT_LT(tensor.pa(0).sip, 2); },        [&] { EXPECT_LT(tensor.sip(), 2); },
        [&] { EXPECT_EQ(tensor.shards().size(), 1u); }, [&] { EXPECT_EQ(tensor.bytes(), 16u); },
        [&] { EXPECT_EQ(tensor.copies(), 1u); },        [&] { EXPECT_FALSE(tensor.policy().num_pes().has_value()); }};
    const std::uint64_t switches = host_.runtime.switches();
    for (const auto& access : accessors) {
      access();
      EXPECT_FALSE(handle.done());
      EXPECT_EQ(host_.runtime.switches(), switches);
    }
    for (const HostAccessCounts& counts : host_.runtime.host_accesses()) EXPECT_EQ(counts.used, 0u);
    looked_ = true;
  }
  HostRun host_{{2, 1, 1, 1, 1 << 20}, options()};
  bool looked_ = false;
};
INSTANTIATE_TEST_SUITE_P(HostReadBarrier, Metadata,
                         ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds), [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(Metadata, NeverDrainsAPendingLaunch) {
  const auto outcome = host_.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.full(1, {2, 4}, DType::f16, {}, "t");
        const Handle handle = ctx.launch_async("writer", kNoBodyOf, tensor);
        expect_no_drain(tensor, handle);
        ctx.wait(handle);
      },
      1);
  EXPECT_TRUE(outcome.finished);
  EXPECT_TRUE(looked_);
}

TEST_P(Metadata, NeverDrainsAPendingCollective) {
  ProcessGroupOptions ring;
  ring.algorithm = "ring_allreduce";
  const auto outcome = host_.run(
      [&](Context& ctx) {
        ctx.init_process_group(ring);
        const Tensor tensor = ctx.full(1, {2, 4}, DType::f16, {}, "t");
        if (ctx.rank() == 0) ctx.barrier();
        const Handle handle = ctx.all_reduce_async(tensor);
        if (ctx.rank() == 1) ctx.barrier();
        if (ctx.rank() == 0) expect_no_drain(tensor, handle);  // both ranks have submitted it
        ctx.wait(handle);
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_TRUE(looked_);
}

TEST(HostReadBarrier, RegistryListsEachEntryPointOnceInOrder) {
  for (std::size_t i = 0; i < kHostEntryPoints.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kHostEntryPoints[i].access), i);
    EXPECT_TRUE(kHostEntryPoints[i].reads || kHostEntryPoints[i].writes);
  }
}

class CopyFrom : public ::testing::TestWithParam<SchedulingKind> {};
INSTANTIATE_TEST_SUITE_P(HostReadBarrier, CopyFrom,
                         ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds), [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(CopyFrom, OverPendingWritersOfBothRanksEndsWithTheLaterValues) {
  // Each rank copies from a tensor of the other rank; the source and the target of both have pending writers.
  RunOptions options;
  options.scheduling = GetParam();
  HostRun host({2, 1, 1, 1, 1 << 20}, options);
  std::vector<Tensor> sources(2), targets(2);
  host.machine.duration = [](PeCoord pe, const LaunchMessage& launch) {
    return Ps{1'000'000} * (launch.kernel == "source" ? 5 : 9) * (pe.sip + 1u);
  };
  host.machine.effect = [&](PeCoord pe, const LaunchMessage& launch) {
    const bool source = launch.kernel == "source";
    const std::vector<float> values(kEntryElements, (source ? 10.0F : 20.0F) + static_cast<float>(pe.sip));
    const Tensor& tensor = (source ? sources : targets)[pe.sip];
    host.machine.write(tensor.pa(0), values.data(), kEntryElements * sizeof(float));
  };
  std::vector<std::vector<double>> copied(2);
  const auto outcome = host.run(
      [&](Context& ctx) {
        const auto rank = static_cast<std::size_t>(ctx.rank());
        sources[rank] = ctx.full(1, {1, kEntryElements}, DType::f32, {}, "source");
        targets[rank] = ctx.full(2, {1, kEntryElements}, DType::f32, {}, "target");
        ctx.barrier();
        ctx.launch_async("source", kNoBodyOf, sources[rank]);
        ctx.launch_async("target", LaunchOptions{{}, ctx.new_stream()}, kNoBodyOf, targets[rank]);
        ctx.barrier();  // all four writers are submitted
        targets[rank].copy_from(sources[1 - rank]);
        copied[rank] = targets[rank].to_host();
        ctx.barrier();
        sources[rank] = targets[rank] = Tensor();
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(copied[0], std::vector<double>(kEntryElements, 11)) << "what rank 1's writer wrote, not overwritten by 20";
  EXPECT_EQ(copied[1], std::vector<double>(kEntryElements, 10)) << "what rank 0's writer wrote, not overwritten by 21";
}

TEST(HostReadBarrier, LetsOtherWorkersHaveTheirTurns) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  std::vector<std::string> order;
  host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 8}, DType::f32, {}, "t");
        ctx.barrier();
        if (ctx.rank() == 0) {
          ctx.launch_async("writer", kNoBodyOf, tensor);
          order.push_back("reads");
          tensor.to_host();
          order.push_back("has read");
        } else {
          order.push_back("turn of rank 1");
        }
      },
      2);
  EXPECT_EQ(order, (std::vector<std::string>{"reads", "turn of rank 1", "has read"}));
}

}  // namespace
}  // namespace kernbench::testing
