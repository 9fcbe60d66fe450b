#include "ccl/data/lanes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "ccl/schedule/build.h"
#include "tests/ccl/collective_case.h"

namespace kernbench::test {
namespace {

using Elements = std::pair<std::int64_t, std::int64_t>;  ///< [first, second)

/// Cubes in a column, cube `top` next to the IO chiplet, one PE each: 100 ns between neighbouring cubes and between the
/// SIPs.
MachineMap column(int cubes, int top = 0) {
  MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 1, cubes, 1);
  std::vector<PeCoord> coords(1 + static_cast<std::size_t>(map.pe({1, static_cast<std::uint16_t>(cubes - 1), 0})));
  for (std::uint16_t sip = 0; sip < 2; ++sip) {
    for (const PeCoord pe : map.pes(sip)) coords.at(static_cast<std::size_t>(map.pe(pe))) = pe;
  }
  map.packet_latency = [coords, top](NodeId from, NodeId to, std::uint32_t) -> Ps {
    const PeCoord a = coords.at(static_cast<std::size_t>(from)), b = coords.at(static_cast<std::size_t>(to));
    if (a.sip == b.sip) return 100'000 * std::abs(a.cube - b.cube);
    return 100'000 * (std::abs(a.cube - top) + 1 + 1 + std::abs(b.cube - top));
  };
  return map;
}

LaunchMessage::TensorArg row(std::int64_t columns, int cubes, Va base) {
  LaunchMessage::TensorArg tensor{base, {}, {1, columns}};
  const std::int64_t each = columns / cubes;
  for (int cube = 0; cube < cubes; ++cube) {
    tensor.shards.push_back({{0, static_cast<std::uint16_t>(cube), 0},
                             static_cast<std::uint64_t>(cube * each * 4),
                             static_cast<std::uint64_t>(each * 4),
                             1,
                             each,
                             0,
                             cube * each});
  }
  return tensor;
}

/// What each cube's lane works on, by region.
std::map<int, std::map<int, std::vector<Elements>>> dealt(const MachineMap& map, CollectiveOp op, std::int64_t in,
                                                          std::int64_t out) {
  const int cubes = static_cast<int>(map.cubes_per_sip());
  const ccl::CallMaps maps =
      ccl::make_call_maps(map, op, Scope::sip, 2, row(in, cubes, 0x1000), row(out, cubes, 0x80000), 4);
  const ccl::Lanes lanes(map, maps, op, false, 4);
  std::map<int, std::map<int, std::vector<Elements>>> found;
  for (const auto& [id, lane] : lanes.all()) {
    for (const auto& [region, intervals] : lane.regions) {
      for (const auto& interval : intervals)
        found[id.first][region].push_back({interval.begin, interval.begin + interval.count});
    }
  }
  return found;
}

// Element 1 of block 0 comes from cube 1 and goes to cube 0; element 0 of block 1 the other way: both pass the other
// SIP's cube 0 anyway.
TEST(Lanes, LittleDataGoesToThePeNearestToItsWay) {
  const auto lanes = dealt(column(2), CollectiveOp::all_gather, 2, 4);
  EXPECT_EQ(lanes.at(0).at(0), (std::vector<Elements>{{0, 2}}));
  EXPECT_EQ(lanes.at(0).at(1), (std::vector<Elements>{{0, 1}}));
  EXPECT_EQ(lanes.at(1).at(1), (std::vector<Elements>{{1, 2}}));
  EXPECT_EQ(lanes.at(1).count(0), 0u);
}

TEST(Lanes, MoreThanAPacketForEachPeIsDealtToItsHolders) {
  const MachineMap map = column(2);
  const std::int64_t little = 2 * 256 / 4;  // elements of the larger side: 256 B for each of two PEs
  EXPECT_EQ(dealt(map, CollectiveOp::all_gather, little / 2, little).at(1).count(0), 0u);
  const auto lanes = dealt(map, CollectiveOp::all_gather, little, 2 * little);
  EXPECT_EQ(lanes.at(1).at(0), (std::vector<Elements>{{little / 2, little}}));
}

/// First elements of a cube's row in the order in which it works on them: an all_to_all of three cubes on two SIPs, an
/// element to each.
std::vector<std::int64_t> order_of(const MachineMap& map, int cube) {
  const ccl::CallMaps maps =
      ccl::make_call_maps(map, CollectiveOp::all_to_all, Scope::cube, 2, row(18, 3, 0x1000), row(18, 3, 0x80000), 4);
  ccl::Lanes lanes(map, maps, CollectiveOp::all_to_all, false, 4);
  lanes.cut(maps, ccl::direct_schedule({CollectiveOp::all_to_all}, 2, 1, 0, false), 4096, 1);
  std::vector<std::int64_t> order;
  for (const auto& segment : lanes.all().at({cube, 0}).segments) order.push_back(segment.begin);
  return order;
}

// The cube next to the IO chiplet has its own three elements and one of the cube two further down, which it loads from
// there: its own are ready before.
TEST(Lanes, WhatIsReadyGoesBeforeWhatHasToBeLoadedFromElsewhere) {
  EXPECT_EQ(order_of(column(3), 0), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(order_of(column(3, 2), 2), (std::vector<std::int64_t>{1, 0}));
}

/// The part of PE `pe` of `pes` of a cube's tile of `tile` elements of 4 B; tiles stand one after the other.
void add_shard(LaunchMessage::TensorArg& tensor, std::uint16_t cube, std::uint16_t pe, int pes, std::int64_t tile) {
  const std::int64_t begin = tile * pe / pes, end = tile * (pe + 1) / pes, at = cube * tile + begin;
  tensor.shards.push_back({{0, cube, pe},
                           static_cast<std::uint64_t>(at) * 4,
                           static_cast<std::uint64_t>(end - begin) * 4,
                           1,
                           end - begin,
                           0,
                           at});
}

// 16 SIPs of four cubes: each PE would have 64 blocks of one rank to store.
TEST(Lanes, TwoPesShareWhatManyContributorsSend) {
  const MachineMap ring = make_map(SipTopology::ring_1d, 16, 0, 0, 4, 1, 4),
                   few = make_map(SipTopology::ring_1d, 15, 0, 0, 4, 1, 4);
  for (const MachineMap* map : {&ring, &few}) {
    const int p = map->sips * 4;
    const auto tiles = [&](Va base) {
      LaunchMessage::TensorArg tensor{base, {}, {1, 4 * p}};
      for (std::uint16_t cube = 0; cube < 4; ++cube) {
        for (std::uint16_t pe = 0; pe < 4; ++pe) add_shard(tensor, cube, pe, 4, p);
      }
      return tensor;
    };
    const ccl::CallMaps maps =
        ccl::make_call_maps(*map, CollectiveOp::all_to_all, Scope::cube, map->sips, tiles(0x1000), tiles(0x80000), 4);
    const ccl::Lanes lanes(*map, maps, CollectiveOp::all_to_all, false, 4);
    std::vector<int> pes;  // that work on what cube 1 has for rank 0
    for (const auto& [id, lane] : lanes.all()) {
      if (id.first == 1 && lane.regions.count(0)) pes.push_back(id.second);
    }
    EXPECT_EQ(pes, map == &ring ? (std::vector<int>{0, 2}) : (std::vector<int>{0}));
  }
}

TEST(Lanes, SharedBlocksArrive) {
  const DPPolicy sharded = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
  for (const int pes : {2, 3}) {
    CollectiveCase c;
    c.op = CollectiveOp::all_to_all;
    c.scope = Scope::cube;
    c.in = c.out = sharded;
    c.rows = false;
    for (const std::int64_t count : {1, 2, 3}) {
      c.count = count;
      EXPECT_EQ(run_collective(make_map(SipTopology::ring_1d, 16, 0, 0, 2, 2, pes), c), "")
          << pes << " PEs, count " << count;
    }
  }
}

ccl::PlanRequest request() {
  ccl::PlanRequest request;
  request.op = CollectiveOp::reduce_scatter;
  request.ranks = request.sip_w = 2;
  request.sip_h = 1;
  request.cube_w = 2;
  return request;
}

/// Two SIPs, two cubes in a row, three PEs: a reduce_scatter of scope cube.
struct Bundled {
  explicit Bundled(std::int64_t count) {
    const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 3);
    LaunchMessage::TensorArg in{0x1000, {}, {1, 8 * count}}, out{0x80000, {}, {1, 2 * count}};
    for (std::uint16_t cube = 0; cube < 2; ++cube) {
      for (std::uint16_t pe = 0; pe < 3; ++pe) {
        add_shard(in, cube, pe, 3, 4 * count);
        add_shard(out, cube, pe, 3, count);
      }
    }
    maps = ccl::make_call_maps(map, CollectiveOp::reduce_scatter, Scope::cube, 2, in, out, 4);
    lanes = std::make_unique<ccl::Lanes>(map, maps, CollectiveOp::reduce_scatter, false, 4);
    lanes->bundle(map, maps);
  }
  ccl::CallMaps maps;
  std::unique_ptr<ccl::Lanes> lanes;
};

// Four regions of five elements on three PEs: borders of PEs lie within regions.
TEST(Lanes, BundlesAreDealtToTheHoldersOfTheInput) {
  const Bundled bundled(5);
  const std::vector<Elements> expected = {{0, 6}, {6, 13}, {13, 20}};
  ASSERT_EQ(bundled.lanes->all().size(), 3u);
  for (const auto& [id, lane] : bundled.lanes->all()) {
    ASSERT_EQ(lane.bundle.size(), 1u);
    const auto& row = lane.bundle.front();
    EXPECT_EQ(Elements(row.begin, row.begin + row.count), expected[static_cast<std::size_t>(id.second)]);
  }
}

TEST(Lanes, RoundsOfBundlesCutTheRowOfAllRegions) {
  Bundled bundled(5);
  bundled.lanes->cut(bundled.maps, ccl::funnel_schedule(request(), false), 4 * 4, 1);
  for (const auto& [id, lane] : bundled.lanes->all()) {
    EXPECT_EQ(lane.segments.size(), 1u);  // contiguous on one PE, whatever the region
    EXPECT_EQ(lane.rounds(), 2);          // of six or seven elements at most four at a time
  }
}

/// Rounds of each lane of an all_to_all of three blocks of `block` elements on four PEs, messages of 64 elements.
std::vector<std::int64_t> rounds_of(std::int64_t block) {
  const MachineMap map = make_map(SipTopology::ring_1d, 3, 0, 0, 1, 1, 4);
  const auto tensor = [&](Va base) {
    LaunchMessage::TensorArg tensor{base, {}, {1, 3 * block}};
    for (std::uint16_t pe = 0; pe < 4; ++pe) add_shard(tensor, 0, pe, 4, 3 * block);
    return tensor;
  };
  constexpr CollectiveOp op = CollectiveOp::all_to_all;
  const ccl::CallMaps maps = ccl::make_call_maps(map, op, Scope::sip, 3, tensor(0x1000), tensor(0x80000), 4);
  ccl::Lanes lanes(map, maps, op, false, 4);
  lanes.cut(maps, ccl::direct_schedule({op}, 3, 1, 0, false), 64 * 4, 1);
  std::vector<std::int64_t> rounds;
  for (const auto& [id, lane] : lanes.all()) rounds.push_back(lane.rounds());
  return rounds;
}

// A tile of 3/4 block: its borders in a block are the lanes' where the block divides by four, else beside them.
TEST(Lanes, BordersBetweenPesAddNoRounds) {
  EXPECT_EQ(rounds_of(4 * 640), std::vector<std::int64_t>(4, 10));
  EXPECT_EQ(rounds_of(4 * 640 - 3), std::vector<std::int64_t>(4, 10));
}

constexpr CollectiveOp kLaneOps[] = {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_to_all,
                                     CollectiveOp::gather, CollectiveOp::scatter};

TEST(Lanes, LittleDataArrivesWhateverTheWay) {
  const MachineMap map = column(3);
  const DPPolicy sharded = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
  const DPPolicy rows = DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::column_wise);
  for (const CollectiveOp op : kLaneOps) {
    for (const auto& [in, out] : {std::pair{sharded, sharded}, {sharded, rows}, {rows, sharded}}) {
      for (const std::int64_t count : {1, 5, 18}) {
        for (const Scope scope : {Scope::sip, Scope::cube}) {
          if (scope == Scope::cube && (in.cube() != CubeSplit::column_wise || out.cube() != CubeSplit::column_wise))
            continue;
          for (const bool in_place : {false, true}) {
            if (in_place && (scope == Scope::cube || in.cube() != out.cube())) continue;
            CollectiveCase c;
            c.op = op;
            c.scope = scope;
            c.in = in;
            c.out = out;
            c.in_place = in_place;
            c.count = scope == Scope::cube ? 6 * count : count;
            c.rows = scope == Scope::sip;
            EXPECT_EQ(run_collective(map, c), "") << to_string(op) << " scope " << to_string(scope) << " count "
                                                  << count << (in_place ? " in place" : "");
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kernbench::test
