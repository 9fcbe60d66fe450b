// Messages that a program makes by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/message_check.h"
#include "tests/runtime/machine_run.h"

namespace kernbench::testing {
namespace {
using ::testing::HasSubstr;

LaunchMessage launch_on(std::vector<PeCoord> targets) {
  LaunchMessage launch;
  launch.kernel = "k";
  launch.entry = bind_kernel([](Tl&) {}).entry;
  launch.targets = std::move(targets);
  return launch;
}

TEST(HandMadeMessage, WhatItMayNotNameIsSaid) {
  MachineRun host(machine_of(2, 1, 2));
  const MachineMap& map = host.machine.map();
  const auto fault = [&](decltype(Message::body) body) { return fault_of(body, map, 0); };

  EXPECT_EQ(fault(launch_on({{0, 0, 0}, {0, 0, 1}})), "");
  EXPECT_EQ(fault(launch_on({})), "there are no targets");
  EXPECT_EQ(fault(launch_on({{0, 7, 0}})), "a target: there is no sip0.cube7.pe0");
  EXPECT_EQ(fault(launch_on({{1, 0, 0}})), "a target: sip1.cube0.pe0 is not on sip0, which the message goes to");
  EXPECT_EQ(fault(launch_on({{0, 0, 1}, {0, 0, 1}})), "sip0.cube0.pe1 is a target twice");
  LaunchMessage launch = launch_on({{0, 0, 0}});
  launch.entry = {};
  EXPECT_EQ(fault(launch), "there is no kernel: entry is empty");
  launch = launch_on({{0, 0, 0}});
  launch.arguments.resize(kMaxArgumentBytes + 1);
  EXPECT_EQ(fault(launch), "4097 B of arguments, a launch carries at most 4096");
  launch = launch_on({{0, 0, 0}});
  launch.tensors.push_back({0x1000, {{{0, 0, 9}, 0, 64, 1, 32, 0, 0}}, {1, 32}});
  EXPECT_EQ(fault(launch), "a shard's owner: there is no sip0.cube0.pe9");

  const PhysicalAddress home = PhysicalAddress::hbm({1, 0, 1}, map.hbm_slice.bytes - 64);
  EXPECT_EQ(fault(MmuMapMessage{{{0x1000, 64, home, {{0, 0, 1}}}}}), "");
  EXPECT_EQ(fault(MmuMapMessage{{{0x1000, 65, home, {}}}}), "no memory of this machine has 65 B at " + home.str());
  EXPECT_EQ(fault(MmuMapMessage{{{0x1000, 0, home, {}}}}), "the range at 0x1000 has no bytes");
  EXPECT_EQ(fault(MmuMapMessage{{{~Va{0} - 62, 64, home, {}}}}),
            "64 B at 0xffffffffffffffc1 end beyond all virtual addresses");
  EXPECT_EQ(fault(MmuMapMessage{{{0x1000, 64, home, {{1, 0, 0}}}}}),
            "a viewer: sip1.cube0.pe0 is not on sip0, which the message goes to");
  EXPECT_EQ(fault(MmuUnmapMessage{0x1000, 0}), "the range at 0x1000 has no bytes");

  EXPECT_EQ(fault(MemoryWriteMessage{home, std::vector<std::uint8_t>(64)}), "");
  const PhysicalAddress nowhere = PhysicalAddress::sram({0, 5}, 0);
  EXPECT_EQ(fault(MemoryWriteMessage{nowhere, std::vector<std::uint8_t>(8)}),
            "no memory of this machine has 8 B at sip0.cube5.sram+0x0");
  EXPECT_EQ(fault(MemoryReadMessage{home, {}, std::uint64_t{1} << 40}),
            "no memory of this machine has 1099511627776 B at " + home.str());

  NeighbourEntry queue;
  queue.self = {0, 0, 0};
  queue.peer = queue.source = {1, 0, 0};
  queue.ring_base = PhysicalAddress::tcm(queue.self, 0);
  queue.peer_ring_base = PhysicalAddress::tcm(queue.peer, 0);
  EXPECT_EQ(fault(SfrWriteMessage{{queue}}), "");
  queue.slots = 0;
  EXPECT_EQ(fault(SfrWriteMessage{{queue}}), "a queue of sip0.cube0.pe0: 0 slots of 4096 B");
  queue.slots = 4;
  queue.source = {1, 0, 2};
  EXPECT_EQ(fault(SfrWriteMessage{{queue}}), "a queue of sip0.cube0.pe0: there is no sip1.cube0.pe2");
  EXPECT_EQ(fault(ProgramMessage{}), "there is no program");
}

TEST(HandMadeMessage, WithoutAKernelOrItsPlaceIsRefusedBeforeItIsSent) {
  MachineRun host(machine_of(1, 1, 1));
  const auto program = [](Context& ctx) {
    EXPECT_THAT(failure_of([&] { ctx.submit(LaunchMessage{}); }), HasSubstr("submit: there is no kernel"));
    EXPECT_THAT(failure_of([&] {
                  ctx.submit(MemoryReadMessage{PhysicalAddress::hbm({0, 3, 0}, 0), {}, 8});
                }),
                HasSubstr("submit: no memory of this machine has 8 B at sip0.cube3.pe0.hbm+0x0"));
    ctx.wait(ctx.submit(launch_on({{0, 0, 0}})));
  };
  EXPECT_EQ(failure_of([&] { host.runtime.spawn(program, std::tuple<>(), 1); }), "");
}

}  // namespace
}  // namespace kernbench::testing
