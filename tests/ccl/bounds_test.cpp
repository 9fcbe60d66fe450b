#include "ccl/bounds/bounds.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ccl/contract/grid.h"
#include "tests/ccl/fake_machine.h"

namespace kernbench::test {
namespace {

constexpr std::uint64_t kLink = 100'000'000'000;  // bytes per second
constexpr std::uint64_t kBytes = 1'000'000;       // 10 us of one link

MachineMap linked(SipTopology topology, int sips, int w, int h) {
  MachineMap map = make_map(topology, sips, w, h, 1, 1, 1);
  map.pe_port = map.hbm_slice.peak = Rate{kLink * 1000};
  if (topology == SipTopology::switch_star) {
    for (std::uint16_t s = 0; s < sips; ++s)
      map.sip_links.push_back({s, static_cast<std::uint16_t>(sips), Rate{kLink}, 0});
    return map;
  }
  if (topology == SipTopology::fully_connected) {
    for (std::uint16_t a = 0; a < sips; ++a) {
      for (std::uint16_t b = static_cast<std::uint16_t>(a + 1); b < sips; ++b)
        map.sip_links.push_back({a, b, Rate{kLink}, 0});
    }
    return map;
  }
  const ccl::Grid grid = ccl::Grid::sips(static_cast<std::int32_t>(topology), w, h, sips);
  for (int a = 0; a < sips; ++a) {
    for (const Side side : {Side::east, Side::south}) {
      const auto b = grid.neighbour(a, side);
      const bool again = b && grid.neighbour(*b, side) == a && *b < a;  // a dimension of two has one link
      if (b && !again)
        map.sip_links.push_back({static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(*b), Rate{kLink}, 0});
    }
  }
  return map;
}

double bound(const MachineMap& map, const char* name, Scope scope = Scope::sip) {
  ccl::BoundInput input{kBytes, scope, std::vector<std::uint16_t>(map.sips), {}};
  std::iota(input.sips.begin(), input.sips.end(), std::uint16_t{0});
  for (const ccl::Bound& b : ccl::collective_bounds(map, input)) {
    if (b.name == name) return b.ns / 10'000;  // in units of S/B
  }
  return -1;
}

// bench/reference/collectives/bounds.md, section 4: worked values and formulas, in units of S/B.
TEST(Bounds, SipPartitionHasTheWorkedValues) {
  EXPECT_NEAR(bound(linked(SipTopology::ring_1d, 2, 0, 0), "sip_partition"), 1.0, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::ring_1d, 4, 0, 0), "sip_partition"), 0.750, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::ring_1d, 8, 0, 0), "sip_partition"), 0.875, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::ring_1d, 16, 0, 0), "sip_partition"), 0.9375, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::torus_2d, 16, 4, 4), "sip_partition"), 15.0 / 32, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::torus_2d, 64, 8, 8), "sip_partition"), 63.0 / 128, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::mesh_2d_no_wrap, 4, 2, 2), "sip_partition"), 0.750, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::mesh_2d_no_wrap, 8, 4, 2), "sip_partition"), 0.700, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::mesh_2d_no_wrap, 16, 4, 4), "sip_partition"), 0.625, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::mesh_2d_no_wrap, 64, 8, 8), "sip_partition"), 63.0 / 112, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::mesh_2d_no_wrap, 5, 5, 1), "sip_partition"), 1.0, 1e-9);  // a line
  EXPECT_NEAR(bound(linked(SipTopology::switch_star, 8, 0, 0), "sip_partition"), 2.0 * 7 / 8, 1e-9);
  EXPECT_NEAR(bound(linked(SipTopology::fully_connected, 8, 0, 0), "sip_partition"), 2.0 / 8, 1e-9);
}

TEST(Bounds, ABrokenLinkMakesTheRingALine) {
  MachineMap map = linked(SipTopology::ring_1d, 6, 0, 0);
  map.sip_links.pop_back();
  EXPECT_NEAR(bound(map, "sip_partition"), 1.0, 1e-9);
}

TEST(Bounds, IoPortsCarryEverythingThatEntersASip) {
  MachineMap map = linked(SipTopology::ring_1d, 4, 0, 0);
  for (std::uint16_t sip = 0; sip < 4; ++sip) map.cube_links.push_back({0, kIoChiplet, Rate{kLink / 2}, 0, sip});
  EXPECT_NEAR(bound(map, "io_ports"), 2 * (2 * 3.0 / 4), 1e-9);
}

TEST(Bounds, TheSlowestSipsIoPortsCount) {
  MachineMap map = linked(SipTopology::ring_1d, 4, 0, 0);
  for (std::uint16_t sip = 0; sip < 4; ++sip)
    map.cube_links.push_back({0, kIoChiplet, Rate{sip == 2 ? kLink / 4 : kLink / 2}, 0, sip});
  EXPECT_NEAR(bound(map, "io_ports"), 4 * (2 * 3.0 / 4), 1e-9);
}

TEST(Bounds, TheSlowestPortAndSliceCount) {
  MachineMap map = linked(SipTopology::ring_1d, 2, 0, 0);
  map.odd_pes[{1, 0, 0}] = {Rate{kLink / 4}, map.tcm.peak, Rate{kLink / 2}};  // the other SIP's only PE
  EXPECT_NEAR(bound(map, "hbm"), 8.0, 1e-9);
  EXPECT_NEAR(bound(map, "pe_port"), 2.0, 1e-9);
}

TEST(Bounds, CubePartitionOfOneMeshIsTheTreePacking) {
  MachineMap map = make_map(SipTopology::ring_1d, 1, 0, 0, 4, 4, 1);
  map.pe_port = map.hbm_slice.peak = Rate{kLink * 1000};
  const ccl::Grid grid = ccl::Grid::mesh(4, 16);
  for (int a = 0; a < 16; ++a) {
    for (const Side side : {Side::east, Side::south}) {
      if (const auto b = grid.neighbour(a, side))
        map.cube_links.push_back({static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(*b), Rate{kLink}, 0});
    }
  }
  EXPECT_NEAR(bound(map, "cube_partition", Scope::cube), 0.625, 1e-9);
}

TEST(Bounds, MemoryIsReadOnceAndWrittenOnce) {
  MachineMap map = linked(SipTopology::ring_1d, 2, 0, 0);
  map.hbm_slice.peak = Rate{kLink / 4};
  EXPECT_NEAR(bound(map, "hbm"), 8.0, 1e-9);
}

TEST(Bounds, OneContributionHasNothingToCombine) {
  const auto bounds = ccl::collective_bounds(linked(SipTopology::ring_1d, 1, 0, 0), {kBytes, Scope::sip, {0}, {}});
  ASSERT_EQ(bounds.size(), 1u);
  EXPECT_EQ(bounds[0].name, "none");
  EXPECT_EQ(bounds[0].ns, 0);
}

// ---- The other operations ----

double bound_of(CollectiveOp op, const MachineMap& map, const char* name = "sip_cut", int root = 0) {
  ccl::BoundInput input{kBytes, Scope::sip, std::vector<std::uint16_t>(map.sips), {}};
  std::iota(input.sips.begin(), input.sips.end(), std::uint16_t{0});
  input.op = op;
  input.root = root;
  return ccl::named(ccl::collective_bounds(map, input), name).ns / 10'000;
}
MachineMap ring(int n) { return linked(SipTopology::ring_1d, n, 0, 0); }
MachineMap torus(int w, int h) { return linked(SipTopology::torus_2d, w * h, w, h); }
MachineMap mesh(int w, int h) { return linked(SipTopology::mesh_2d_no_wrap, w * h, w, h); }

TEST(Bounds, AllGatherAndReduceScatterHaveTheWorkedValues) {
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    EXPECT_NEAR(bound_of(op, ring(2)), 1.0 / 2, 1e-9);
    EXPECT_NEAR(bound_of(op, ring(4)), 3.0 / 8, 1e-9);
    EXPECT_NEAR(bound_of(op, ring(8)), 7.0 / 16, 1e-9);
    EXPECT_NEAR(bound_of(op, ring(16)), 15.0 / 32, 1e-9);
    EXPECT_NEAR(bound_of(op, torus(4, 4)), 15.0 / 64, 1e-9);
    EXPECT_NEAR(bound_of(op, torus(8, 8)), 63.0 / 256, 1e-9);
    EXPECT_NEAR(bound_of(op, mesh(2, 2)), 3.0 / 8, 1e-9);
    EXPECT_NEAR(bound_of(op, mesh(4, 2)), 7.0 / 16, 1e-9);
    EXPECT_NEAR(bound_of(op, mesh(4, 4)), 15.0 / 32, 1e-9);
    EXPECT_NEAR(bound_of(op, mesh(8, 8)), 63.0 / 128, 1e-9);
    EXPECT_NEAR(bound_of(op, mesh(5, 1)), 4.0 / 5, 1e-9);  // a line
    EXPECT_NEAR(bound_of(op, linked(SipTopology::switch_star, 8, 0, 0)), 7.0 / 8, 1e-9);
    EXPECT_NEAR(bound_of(op, linked(SipTopology::fully_connected, 8, 0, 0)), 1.0 / 8, 1e-9);
  }
}

TEST(Bounds, AllToAllHasTheWorkedValues) {
  const CollectiveOp op = CollectiveOp::all_to_all;
  EXPECT_NEAR(bound_of(op, ring(4)), 0.5, 1e-9);
  EXPECT_NEAR(bound_of(op, ring(5)), 24.0 / 40, 1e-9);  // by volume: (p^2 - 1) / (8 p)
  EXPECT_NEAR(bound_of(op, ring(8)), 1.0, 1e-9);
  EXPECT_NEAR(bound_of(op, ring(16)), 2.0, 1e-9);
  EXPECT_NEAR(bound_of(op, torus(4, 4)), 0.5, 1e-9);
  EXPECT_NEAR(bound_of(op, torus(8, 8)), 1.0, 1e-9);
  EXPECT_NEAR(bound_of(op, mesh(2, 2)), 0.5, 1e-9);
  EXPECT_NEAR(bound_of(op, mesh(4, 2)), 1.0, 1e-9);
  EXPECT_NEAR(bound_of(op, mesh(4, 4)), 1.0, 1e-9);
  EXPECT_NEAR(bound_of(op, mesh(8, 8)), 2.0, 1e-9);
  EXPECT_NEAR(bound_of(op, mesh(2, 8)), 2.0, 1e-9);  // tall as well as wide
  EXPECT_NEAR(bound_of(op, mesh(8, 2)), 2.0, 1e-9);
  EXPECT_NEAR(bound_of(op, linked(SipTopology::switch_star, 8, 0, 0)), 7.0 / 8, 1e-9);
  EXPECT_NEAR(bound_of(op, linked(SipTopology::fully_connected, 8, 0, 0)), 1.0 / 8, 1e-9);
}

TEST(Bounds, RootedOperationsCrossTheLeastCut) {
  for (const CollectiveOp op : {CollectiveOp::broadcast, CollectiveOp::reduce}) {
    EXPECT_NEAR(bound_of(op, ring(8)), 1.0 / 2, 1e-9);
    EXPECT_NEAR(bound_of(op, mesh(4, 4), "sip_cut", 5), 1.0 / 2, 1e-9);  // a corner has two links
    EXPECT_NEAR(bound_of(op, mesh(5, 1), "sip_cut", 2), 1.0, 1e-9);
    EXPECT_NEAR(bound_of(op, torus(4, 4)), 1.0 / 4, 1e-9);
  }
  for (const CollectiveOp op : {CollectiveOp::gather, CollectiveOp::scatter}) {
    EXPECT_NEAR(bound_of(op, ring(8)), 7.0 / 16, 1e-9);
    EXPECT_NEAR(bound_of(op, mesh(5, 1), "sip_cut", 0), 4.0 / 5, 1e-9);
    EXPECT_NEAR(bound_of(op, mesh(5, 1), "sip_cut", 2), 2.0 / 5, 1e-9);  // from two sides
  }
  EXPECT_NEAR(bound_of(CollectiveOp::send_recv, ring(8)), 1.0 / 2, 1e-9);  // the other way round is as good
}

TEST(Bounds, ASubGroupHasTheLinksOfTheWholeMachine) {
  const MachineMap map = ring(8);
  ccl::BoundInput input{kBytes, Scope::sip, {0, 4}, {}};
  EXPECT_NEAR(ccl::named(ccl::collective_bounds(map, input), "sip_partition").ns, 5'000, 1e-6);
  input.op = CollectiveOp::all_gather;
  EXPECT_NEAR(ccl::named(ccl::collective_bounds(map, input), "sip_cut").ns, 2'500, 1e-6);
}

TEST(Bounds, MemoryReadsWhatARankGivesAndWritesWhatItGets) {
  MachineMap map = ring(4);
  map.hbm_slice.peak = Rate{kLink / 4};
  EXPECT_NEAR(bound_of(CollectiveOp::all_reduce, map, "hbm"), 8.0, 1e-9);
  EXPECT_NEAR(bound_of(CollectiveOp::all_gather, map, "hbm"), 4.0, 1e-9);  // the own block is there
  EXPECT_NEAR(bound_of(CollectiveOp::reduce_scatter, map, "hbm"), 4 * 1.25, 1e-9);
  EXPECT_NEAR(bound_of(CollectiveOp::all_to_all, map, "hbm"), 8.0, 1e-9);
  EXPECT_NEAR(bound_of(CollectiveOp::broadcast, map, "hbm"), 8.0, 1e-9);  // the root writes its own output too
  EXPECT_NEAR(bound_of(CollectiveOp::gather, map, "hbm"), 4.0, 1e-9);
}

TEST(Bounds, EveryPeWithATileOfItsOwnLoadsAndStoresIt) {
  MachineMap map = make_map(SipTopology::ring_1d, 1, 0, 0, 1, 1, 4);
  map.pe_port = Rate{kLink};
  map.hbm_slice.peak = Rate{kLink * 1000};
  ccl::BoundInput input{kBytes, Scope::pe, {0}, {}};
  const auto bounds = ccl::collective_bounds(map, input);
  EXPECT_NEAR(ccl::named(bounds, "pe_port").ns, 10'000, 1e-6);
}

TEST(Bounds, BytesThatLinksMustCarry) {
  const MachineMap map = ring(4);
  const auto bytes = [&](CollectiveOp op) {
    ccl::BoundInput input{kBytes, Scope::sip, {0, 1, 2, 3}, {}};
    input.op = op;
    return ccl::sip_link_bytes(map, input) / kBytes;
  };
  EXPECT_NEAR(bytes(CollectiveOp::all_reduce), 6, 1e-9);
  EXPECT_NEAR(bytes(CollectiveOp::all_gather), 3, 1e-9);
  EXPECT_NEAR(bytes(CollectiveOp::all_to_all), 4, 1e-9);  // 4 ranks x (1 + 1 + 2) links x a quarter
  EXPECT_NEAR(bytes(CollectiveOp::gather), 1, 1e-9);
  EXPECT_NEAR(bytes(CollectiveOp::send_recv), 4, 1e-9);
}

// Of many SIPs only some are looked at; of a transfer each has one partner, which is none of these.
TEST(Bounds, LatencyOfATransferKnowsThePartnersOfLargeGroups) {
  const auto latency = [](int sips) {
    MachineMap map = ring(sips);
    const std::vector<Node> nodes = map.nodes;
    map.packet_latency = [nodes](NodeId from, NodeId to, std::uint32_t) -> Ps {
      return nodes[index(from)].at.sip != nodes[index(to)].at.sip ? 100'000 : 10'000;
    };
    ccl::BoundInput input{kBytes, Scope::sip, std::vector<std::uint16_t>(map.sips), {}};
    std::iota(input.sips.begin(), input.sips.end(), std::uint16_t{0});
    input.op = CollectiveOp::send_recv;
    return ccl::named(ccl::collective_bounds(map, input), "latency").ns;
  };
  EXPECT_EQ(latency(8), 100 + 2 * 20);  // a way, a load and a store
  EXPECT_EQ(latency(70), latency(8));
}

// A virtual network sends what its receiver holds, and the first place of that is known to be free a round trip after
// it began: of D bytes the last begins no sooner than D / W - 1 round trips after the first.
TEST(Bounds, CreditsOfALinkCountWhereTheyAreSlowerThanTheWire) {
  const auto with_room = [](SipTopology topology, int sips, std::uint32_t packets) {
    MachineMap map = linked(topology, sips, 0, 0);
    for (LinkBundle& link : map.sip_links) {
      link.packets = packets;
      link.round_trip = 1'000'000;
    }
    return map;
  };
  const double round_trip = 1000e-9, window = 256 * 100;  // 25 of the wire's 100 GB/s
  const double all = 14.0 * kBytes, ports = 8;            // into eight parts, over a port each
  EXPECT_NEAR(bound(with_room(SipTopology::switch_star, 8, 100), "sip_partition"),
              (all - ports * window) / (ports * window / round_trip) * 1e9 / 10'000, 1e-9);
  EXPECT_NEAR(bound(with_room(SipTopology::switch_star, 8, 1000), "sip_partition"), 14.0 / 8, 1e-9) << "room enough";
  // On a ring data take two sets of channels, each with its own room. Two parts: 2 S over one link, both ways.
  EXPECT_NEAR(bound(with_room(SipTopology::ring_1d, 2, 100), "sip_partition"),
              (2.0 * kBytes - 4 * window) / (4 * window / round_trip) * 1e9 / 10'000, 1e-9);
}

// The first byte comes to the links after a load and a way, the last has a way to go and a store.
TEST(Bounds, WhatPassesBetweenSipsHasTheShortestWayToGoBesides) {
  MachineMap map = ring(8);
  const std::vector<Node> nodes = map.nodes;
  map.packet_latency = [nodes](NodeId from, NodeId to, std::uint32_t) -> Ps {
    const int a = nodes[index(from)].at.sip, b = nodes[index(to)].at.sip, apart = std::min((a - b) & 7, (b - a) & 7);
    return static_cast<Ps>(10'000 + 90'000 * apart);
  };
  ccl::BoundInput input{kBytes, Scope::sip, std::vector<std::uint16_t>(map.sips), {}};
  std::iota(input.sips.begin(), input.sips.end(), std::uint16_t{0});
  const auto bounds = ccl::collective_bounds(map, input);
  const double links = ccl::named(bounds, "sip_partition").ns;
  // One hop, a load and a store; less what clocks may round, and a packet that the way has already.
  EXPECT_NEAR(ccl::named(bounds, "sip_passage").ns, links + 100 + 2 * 20 - 2 - 256e9 / kLink, 1e-6);
  EXPECT_NEAR(ccl::named(bounds, "latency").ns, 370 + 2 * 20, 1e-6) << "to the SIP opposite";
  input.sips = {0, 2, 4};  // no neighbours
  const auto apart = ccl::collective_bounds(map, input);
  EXPECT_NEAR(ccl::named(apart, "sip_passage").ns,
              ccl::named(apart, "sip_partition").ns + 190 + 2 * 20 - 2 - 256e9 / kLink, 1e-6);
  map.odd_pes[{1, 0, 0}] = {map.hbm_slice.peak, map.tcm.peak, map.pe_port};  // links are not alike any more
  EXPECT_EQ(ccl::named(ccl::collective_bounds(map, input), "sip_passage").ns, 0);
}

}  // namespace
}  // namespace kernbench::test
