#include <gtest/gtest.h>

#include <algorithm>

#include "tests/topology/machines.h"
#include "tlm/machine/names.h"
#include "topology/plan/event_rates.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench::topology {
namespace {

TEST(MachineMap, HasEveryUnitUnderItsName) {
  const Plan plan(small_machine(2, 2, 1));
  const MachineMap& map = plan.map;
  EXPECT_EQ(map.name(map.pe({1, 1, 7})), "sip1.cube1.pe7");
  EXPECT_EQ(map.name(map.hbm_port({1, 0, 3})), "sip1.cube0.hbm.pe3");
  EXPECT_EQ(map.name(map.sram_of({0, 1})), "sip0.cube1.sram");
  EXPECT_EQ(map.name(map.m_cpu({0, 1})), "sip0.cube1.m_cpu");
  EXPECT_EQ(map.name(map.io_cpu(1)), "sip1.io0.io_cpu");
  EXPECT_EQ(map.name(map.pcie_ep(0)), "sip0.io0.pcie_ep");
  EXPECT_EQ(map.nodes.size(), 2u * (2u * (8 + 8 + 2) + 2));
  EXPECT_THROW(map.pe({0, 2, 0}), std::out_of_range);
}

TEST(MachineMap, ResolvesAddressesToTheirMemories) {
  const Plan plan(small_machine(2, 2, 1));
  const MachineMap& map = plan.map;
  const PeCoord pe{1, 1, 5};
  EXPECT_EQ(map.resolve(PhysicalAddress::hbm(pe, 0)), map.hbm_port(pe));
  EXPECT_EQ(map.resolve(PhysicalAddress::hbm(pe, map.hbm_slice.bytes - 1)), map.hbm_port(pe));
  EXPECT_EQ(map.resolve(PhysicalAddress::hbm(pe, map.hbm_slice.bytes)), kNoNode);
  EXPECT_EQ(map.resolve(PhysicalAddress::tcm(pe, 64)), map.pe(pe));
  EXPECT_EQ(map.resolve(PhysicalAddress::sram({1, 0}, 64)), map.sram_of({1, 0}));
  EXPECT_EQ(map.resolve(PhysicalAddress::host(1, 64)), map.pcie_ep(1));
  EXPECT_EQ(map.resolve(PhysicalAddress::hbm({2, 0, 0}, 0)), kNoNode);
  EXPECT_EQ(map.resolve(PhysicalAddress::hbm({0, 2, 0}, 0)), kNoNode);
  EXPECT_EQ(map.resolve(PhysicalAddress::hbm({0, 0, 8}, 0)), kNoNode);
}

TEST(MachineMap, AMissingPeLeavesItsHbmSlice) {
  SystemSpec spec = small_machine(1, 1, 1);
  spec.missing_pes = {{0, 0, 3}};
  const Plan plan(spec);
  const MachineMap& map = plan.map;
  EXPECT_FALSE(map.has({0, 0, 3}));
  EXPECT_EQ(map.pes(0).size(), 7u);
  EXPECT_EQ(map.resolve(PhysicalAddress::tcm({0, 0, 3}, 0)), kNoNode);
  EXPECT_EQ(map.resolve(PhysicalAddress::hbm({0, 0, 3}, 0)), map.hbm_port({0, 0, 3}));
}

TEST(Capacity, IsTheSumOfWhatComponentsOfTheSipsDoInASecond) {
  SystemSpec spec = small_machine(4, 2, 1);
  spec.missing_pes = {{0, 0, 3}};
  PeConfig wide = spec.pe_at({1, 0, 0});
  wide.gemm.rows = 64;
  spec.pes[{1, 0, 0}] = wide;
  const Plan plan(spec);
  auto most = most_per_second(plan, 2);
  const GemmConfig& gemm = spec.cube.pe.gemm;
  const double array = static_cast<double>(gemm.rows) * gemm.cols * static_cast<double>(gemm.clock_hz);
  EXPECT_DOUBLE_EQ(most["pe.energy.mac_16bit"], (2 * 2 * 8 - 1 + 1) * array * gemm.f16_rate);
  EXPECT_DOUBLE_EQ(most["pe.energy.mac_32bit"], 32 * array / gemm.f32_cycles);
  const auto peak = static_cast<double>(spec.cube.hbm.pseudo_channel_peak().bytes_per_second());
  EXPECT_DOUBLE_EQ(most["cube.hbm.energy_per_bit"], 8 * 2 * 2 * 8 * 4 * peak);
  double ucie = 0, links = 0;  // of the two SIPs, each way
  for (const LinkEnd& end : plan.ends) {
    if (plan.networks[end.network].sip >= 2) continue;
    const double rate = 8.0 * static_cast<double>(end.link.bytes_per_second) * static_cast<double>(end.spots->size());
    if (end.kind->edge == EdgeKind::inter_sip) links += rate;
    if (end.kind->edge == EdgeKind::ucie && plan.networks[end.network].kind == NetworkKind::cube) ucie += rate;
  }
  EXPECT_GT(links, 0);
  EXPECT_DOUBLE_EQ(most["cube.ucie.energy_per_bit"], ucie);
  EXPECT_DOUBLE_EQ(most["system.links.energy_per_bit"], links);
  EXPECT_GT(most["cube.noc.energy_per_bit"], 2 * 2 * 8 * 2 * 8e9 * spec.cube.noc.flit_bytes * 0.1);
  const double whole = most_per_second(plan, 4)["cube.noc.energy_per_bit"];
  EXPECT_GT(whole, 2 * most["cube.noc.energy_per_bit"]) << "SIP 0 lacks a PE, and its port";
}

/// A switch's ports towards a SIP count for the SIP.
TEST(Capacity, OfASwitchedSystemHasBothWaysOfEachLink) {
  SystemSpec spec = small_machine(3, 1, 1);
  spec.topology = SipTopology::switch_star;
  const Plan plan(spec);
  const double one = most_per_second(plan, 1)["system.links.energy_per_bit"];
  EXPECT_DOUBLE_EQ(one,
                   2 * 8.0 * static_cast<double>(spec.links.link.bytes_per_second) * spec.links.links_per_neighbour);
  EXPECT_DOUBLE_EQ(most_per_second(plan, 3)["system.links.energy_per_bit"], 3 * one);
}

TEST(MachineMap, CapacitiesFollowFromTheSpec) {
  SystemSpec spec = small_machine(2, 2, 2);
  spec.links.links_per_neighbour = 3;
  spec.links.link.bytes_per_second = 68'000'000'000;
  spec.links.link.header_bytes = 16;
  const Plan plan(spec);
  const MachineMap& map = plan.map;
  EXPECT_EQ(map.hbm_slice.bytes, spec.cube.hbm.bytes / 8);
  EXPECT_EQ(map.hbm_slice.peak.bytes_per_second(), 4 * spec.cube.hbm.pseudo_channel_peak().bytes_per_second());
  EXPECT_EQ(map.pe_port.bytes_per_second(), spec.cube.noc.clock_hz * spec.cube.noc.flit_bytes);
  ASSERT_EQ(map.sip_links.size(), 1u);
  EXPECT_EQ(map.sip_links[0].capacity.bytes_per_second(), 3 * 64'000'000'000u);  // 256 of 272 bytes
  EXPECT_EQ(map.cube_links.size(), map.sips * (4u + 2u));                        // inside, and to the IO chiplet
}

TEST(MachineMap, RatesOfAPeFollowItsOverrides) {
  SystemSpec spec = small_machine(2, 2, 2);
  spec.cubes[{1, 3}] = spec.cube;
  spec.cubes[{1, 3}].noc.clock_hz *= 2;
  spec.pes[{0, 0, 5}] = spec.cube.pe;
  spec.pes[{0, 0, 5}].tcm.bytes_per_second /= 4;
  const Plan plan(spec);
  const MachineMap& map = plan.map;
  EXPECT_EQ(map.rates({0, 0, 4}).port.bytes_per_second(), map.pe_port.bytes_per_second());
  EXPECT_EQ(map.rates({1, 3, 0}).port.bytes_per_second(), 2 * map.pe_port.bytes_per_second());
  EXPECT_EQ(map.rates({0, 0, 5}).tcm.bytes_per_second() * 4, map.tcm.peak.bytes_per_second());
  EXPECT_EQ(map.rates({0, 0, 5}).port.bytes_per_second(), map.pe_port.bytes_per_second());
}

TEST(MachineMap, EnginesAreThoseOfTheSpec) {
  SystemSpec spec = small_machine(1, 1, 1);
  spec.cube.pe.cpu.dispatch = 7'000;
  spec.cube.pe.dma.outstanding = 8;
  spec.cube.pe.dma.burst_bytes = 128;
  spec.cube.pe.math.lanes = 64;
  spec.cube.pe.math.queue_depth = 3;
  spec.cube.hbm.controller_latency = 20'000;
  spec.cube.hbm.ck_hz = 1'000'000'000;
  spec.cube.hbm.timing.t_cl = 20;
  spec.cube.hbm.timing.t_rcd_rd = 31;
  spec.pes[{0, 0, 5}] = spec.cube.pe;
  spec.pes[{0, 0, 5}].cpu.dispatch = 9'000;
  const Plan plan(spec);
  const PeEngines& engines = plan.map.engines;
  EXPECT_EQ(engines.dispatch, 7'000u);
  EXPECT_EQ(engines.dma_bytes, 8u * 128u);
  EXPECT_EQ(engines.math_lanes, 64u);
  EXPECT_EQ(engines.math_queue, 3u);
  EXPECT_EQ(engines.hbm_hit, 20'000u + 20'000u + 1'000u * spec.cube.hbm.burst_ck);
  EXPECT_EQ(plan.map.rates({0, 0, 4}).engines.dispatch, 7'000u);
  EXPECT_EQ(plan.map.rates({0, 0, 5}).engines.dispatch, 9'000u);
}

TEST(MachineMap, TheFingerprintIsOfWhatMovesTimesOfCollectives) {
  const auto of = [](const std::string& change) {
    return Plan(resolve("minimal", change.empty() ? std::vector<std::string>() : std::vector{change}).spec)
        .map.fingerprint;
  };
  const std::string here = of("");
  EXPECT_EQ(here.size(), 16u);
  EXPECT_EQ(of(""), here);
  for (const char* moves :
       {"pe.cpu.dispatch=3 ns", "pe.math.clock=3.2 GHz", "cube.hbm.timing.t_rp=27", "cube.noc.vcs_per_set=3",
        "overrides=[{match: sip0.cube0.pe0, pe: {dma: {outstanding: 9}}}]"})
    EXPECT_NE(of(moves), here) << moves;
  for (const char* moves_not : {"pe.energy.math=2 pJ", "cube.hbm.energy_per_bit=7 pJ", "pe.gemm.rows=64",
                                "sip.io.pcie.latency=251 ns", "overrides=[]"})
    EXPECT_EQ(of(moves_not), here) << moves_not;
  EXPECT_EQ(resolve_text("extends: minimal", "another.yaml").spec.fingerprint, here);
}

TEST(MachineMap, EverySipHasItsOwnCubeLinks) {
  SystemSpec spec = small_machine(2, 2, 2);
  spec.broken_cube_links.insert({CubeCoord{1, 2}, 3});
  const Plan plan(spec);
  const auto inside = [&](std::uint16_t sip) {
    return std::count_if(plan.map.cube_links.begin(), plan.map.cube_links.end(), [&](const LinkBundle& link) {
      return link.sip == sip && link.a != kIoChiplet && link.b != kIoChiplet;
    });
  };
  EXPECT_EQ(inside(0), 4);
  EXPECT_EQ(inside(1), 3);
}

// One network: injection takes a cycle and the link; each router its pipeline and the link behind it; then the flits.
TEST(MachineMap, LatencyInsideACubeIsThatOfTheReferenceRouter) {
  const Plan plan(small_machine(1, 1, 1));
  const MachineMap& map = plan.map;
  const NocConfig& noc = plan.spec.cube.noc;
  const Clock clock(noc.clock_hz);
  // PE 0 at r0c1, PE 4 at r2c1, PE 7 at r3c2.
  EXPECT_EQ(map.packet_latency(map.pe({0, 0, 0}), map.hbm_port({0, 0, 0}), 0), clock.at(6));
  EXPECT_EQ(map.packet_latency(map.pe({0, 0, 0}), map.pe({0, 0, 4}), 64), clock.at(6 + 4 * 2));
  EXPECT_EQ(map.packet_latency(map.pe({0, 0, 0}), map.pe({0, 0, 7}), 256), clock.at(6 + 4 * 4 + 3));
}

TEST(MachineMap, LatencyToTheNextCubeAddsTheWire) {
  SystemSpec spec = small_machine(1, 2, 1);
  const Plan plan(spec);
  const MachineMap& map = plan.map;
  const NocConfig& noc = spec.cube.noc;
  const Clock clock(noc.clock_hz);
  const LinkConfig link = spec.cube.ucie.link();
  // r1c2 -> r1c3 -> wire -> r1c0: two routers, the wire, one router.
  const Ps at_port = clock.at(2 + 2 * 4);
  const Ps over = at_port + link.latency + link.flit_time();  // a flit of its own, passed on when it is checked
  const Ps expected = clock.after(over, 2 + 4);
  EXPECT_EQ(map.packet_latency(map.pe({0, 0, 3}), map.pe({0, 1, 2}), 16), expected);
}

TEST(MachineMap, LatencyGrowsWithDistance) {
  const Plan plan(small_machine(2, 4, 4));
  const MachineMap& map = plan.map;
  const NodeId from = map.pe({0, 0, 0});
  Ps last = 0;
  for (const NodeId to : {map.hbm_port({0, 0, 0}), map.hbm_port({0, 0, 1}), map.hbm_port({0, 1, 0}),
                          map.hbm_port({0, 15, 7}), map.hbm_port({1, 15, 7})}) {
    const Ps now = map.packet_latency(from, to, 256);
    EXPECT_GT(now, last);
    last = now;
  }
}

TEST(MachineMap, WorstCommandLatencyCoversEveryPe) {
  const Plan plan(small_machine(2, 4, 4));
  const MachineMap& map = plan.map;
  for (const PeCoord pe : map.pes(1)) {
    const Ps zero_load = map.packet_latency(map.io_cpu(1), map.m_cpu(pe.in_cube()), 64) +
                         map.packet_latency(map.m_cpu(pe.in_cube()), map.pe(pe), 64);
    EXPECT_GT(map.worst_command_latency, zero_load);
  }
  EXPECT_LT(map.worst_command_latency, 3'000'000u) << "a bound that costs microseconds a launch helps nobody";
}

TEST(Names, OfNetworkInterfacesAndTheFabric) {
  EXPECT_EQ(names::network_interface("sip0.cube3.hbm.pe5"), "sip0.cube3.ni_hbm5");
  EXPECT_EQ(names::network_interface("sip0.cube3.pe5"), "sip0.cube3.ni_pe5");
  EXPECT_EQ(names::network_interface("sip0.io0.pcie_ep"), "sip0.io0.ni_pcie_ep");
  EXPECT_EQ(names::fabric_link(3), "fabric.link3");
}

TEST(MachineMap, SaysWhatTheReceiversOfABundleHoldAndHowFarTheyAre) {
  SystemSpec spec = small_machine(2, 1, 1);
  spec.links.links_per_neighbour = 3;
  spec.links.link.buffer_packets = 7;
  const Ps header = spec.links.link.rate().time_for(16);
  EXPECT_EQ(Plan(spec).map.sip_links.at(0).packets, 3U * 7U);
  EXPECT_EQ(Plan(spec).map.sip_links.at(0).latency, 400'000 + header);
  spec.topology = SipTopology::switch_star;
  spec.links.switch_latency = 200'000;  // on the way from the switch only
  EXPECT_EQ(Plan(spec).map.sip_links.at(0).latency, 500'000 + header);
  // There, with one header, and back: a credit has none.
  EXPECT_EQ(Plan(spec).map.sip_links.at(0).round_trip, 1'000'000 + spec.links.link.rate().time_for(256 + 16));
}

TEST(MachineMap, ABundleCarriesNoMoreThanTheRouterPortsAtItsEnds) {
  SystemSpec spec = small_machine(2, 1, 1);
  const std::uint64_t wire = spec.links.link.payload_rate().bytes_per_second();
  EXPECT_EQ(Plan(spec).map.sip_links[0].capacity.bytes_per_second(), wire);
  spec.sip.io.crossbar.clock_hz = 1'000'000'000;  // 64 B a cycle
  EXPECT_EQ(Plan(spec).map.sip_links[0].capacity.bytes_per_second(), 64'000'000'000U);
  spec.sip.io.crossbar.flit_bytes = 96;  // a packet of 256 B takes three
  EXPECT_EQ(Plan(spec).map.sip_links[0].capacity.bytes_per_second(), std::uint64_t{1'000'000'000} * 256 / 3);
}

}  // namespace
}  // namespace kernbench::topology
