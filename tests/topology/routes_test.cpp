#include "topology/plan/routes.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/topology/machines.h"
#include "tlm/config/problems.h"
#include "topology/plan/mesh_routes.h"
#include "topology/plan/plan.h"
#include "topology/plan/walk.h"
#include "topology/spec/neighbours.h"

namespace kernbench::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

unsigned manhattan(GridPoint a, GridPoint b) {
  return static_cast<unsigned>(std::abs(a.row - b.row) + std::abs(a.col - b.col));
}

/// Ports from one router to another; fails the test if the table runs in circles.
std::vector<std::uint8_t> ports(const CubeLayout& cube, const MeshRoutes& routes, std::uint16_t from,
                                std::uint16_t to) {
  std::vector<std::uint8_t> list;
  while (from != to && list.size() <= cube.routers.size()) {
    list.push_back(routes.port(from, to));
    from = cube.neighbours[from][list.back()];
  }
  EXPECT_EQ(from, to);
  return list;
}

/// Every pair of routers with its list of ports.
template <class Check>
void for_all_pairs(const CubeLayout& cube, const MeshRoutes& routes, const Check& check) {
  for (std::uint16_t from = 0; from < cube.routers.size(); ++from) {
    for (std::uint16_t to = 0; to < cube.routers.size(); ++to) check(from, to, ports(cube, routes, from, to));
  }
}

bool moves_along_x(std::uint8_t port) { return port == kEastPort || port == kWestPort; }

TEST(MeshRoutes, XyGoesMinimallyAlongXFirst) {
  const CubeLayout cube = layout(CubeSpec{});
  for_all_pairs(cube, route_mesh(cube, RoutingAlgorithm::xy), [&](auto from, auto to, const auto& way) {
    EXPECT_EQ(way.size(), manhattan(cube.routers[from], cube.routers[to]));
    for (std::size_t i = 1; i < way.size(); ++i) EXPECT_FALSE(!moves_along_x(way[i - 1]) && moves_along_x(way[i]));
  });
}

TEST(MeshRoutes, YxGoesMinimallyAlongYFirst) {
  const CubeLayout cube = layout(CubeSpec{});
  for_all_pairs(cube, route_mesh(cube, RoutingAlgorithm::yx), [&](auto from, auto to, const auto& way) {
    EXPECT_EQ(way.size(), manhattan(cube.routers[from], cube.routers[to]));
    for (std::size_t i = 1; i < way.size(); ++i) EXPECT_FALSE(moves_along_x(way[i - 1]) && !moves_along_x(way[i]));
  });
}

TEST(MeshRoutes, TableWithoutHolesIsMinimalAndNeverTurnsFromSouthOrEastToNorthOrWest) {
  const CubeLayout cube = layout(CubeSpec{});
  for_all_pairs(cube, route_mesh(cube, RoutingAlgorithm::table), [&](auto from, auto to, const auto& way) {
    EXPECT_EQ(way.size(), manhattan(cube.routers[from], cube.routers[to]));
    for (std::size_t i = 1; i < way.size(); ++i) {
      const bool descends = way[i - 1] == kSouthPort || way[i - 1] == kEastPort;
      EXPECT_FALSE(descends && (way[i] == kNorthPort || way[i] == kWestPort));
    }
  });
}

TEST(MeshRoutes, TableLeadsAroundHolesAndIsMinimalBetweenThePesOfThePythonKernBench) {
  const CubeSpec spec = holey_cube();
  const CubeLayout cube = layout(spec);
  const MeshRoutes routes = route_mesh(cube, RoutingAlgorithm::table);
  for_all_pairs(cube, routes, [&](auto, auto, const auto& way) { EXPECT_LE(way.size(), 14u); });
  for (const Spot from : cube.pes) {
    for (const Spot to : cube.pes) {
      EXPECT_EQ(ports(cube, routes, from.router, to.router).size(),
                manhattan(cube.routers[from.router], cube.routers[to.router]));
    }
  }
}

TEST(MeshRoutes, RefusesAMeshThatFallsApartAndDimensionOrderWithHoles) {
  CubeSpec spec;
  spec.noc.rows = spec.noc.cols = 3;
  spec.pes = 1;
  spec.placement.holes = {{0, 1}, {1, 0}};
  spec.placement.exclusion = {{0, 0}};
  const CubeLayout cube = layout(spec);
  EXPECT_THROW(route_mesh(cube, RoutingAlgorithm::xy), ConfigError);
  try {
    route_mesh(cube, RoutingAlgorithm::table);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cube.placement.holes cuts router r0c2 off from router r0c0"));
  }
}

std::string moves(const CubeTable& table, std::uint16_t w, std::uint16_t at, std::uint16_t to) {
  std::string text;
  while (at != to && text.size() < 100) {
    const Side side = table.next(at, to);
    text += letter(side);
    if (to == kIoChiplet && at < w && side == Side::north) return text;
    const int step = side == Side::north ? -w : side == Side::south ? w : side == Side::east ? 1 : -1;
    at = static_cast<std::uint16_t>(at + step);
  }
  return text;
}

TEST(CubeTable, GoesAlongXThenYAndStraightNorthToTheIoChiplet) {
  const CubeTable table(4, 4, {}, 0);
  EXPECT_EQ(moves(table, 4, 0, 15), "eeesss");
  EXPECT_EQ(moves(table, 4, 15, 0), "wwwnnn");
  EXPECT_EQ(moves(table, 4, 12, 3), "eeennn");
  EXPECT_EQ(moves(table, 4, 6, 6), "");
  EXPECT_EQ(moves(table, 4, 14, kIoChiplet), "nnnn");
}

TEST(CubeTable, GoesAroundABrokenEastWestLinkThroughTheRowAbove) {
  const CubeTable table(4, 4, {{5, 6}}, 0);
  EXPECT_EQ(moves(table, 4, 5, 6), "nes");
  EXPECT_EQ(moves(table, 4, 4, 7), "enees");
  EXPECT_EQ(moves(table, 4, 6, 5), "nws");
  EXPECT_EQ(moves(table, 4, 1, 14), "esss");
}

TEST(CubeTable, KnowsWhichWaysABrokenLinkMakesLonger) {
  const CubeTable table(4, 4, {{5, 6}}, 0), whole(4, 4, {}, 0);
  for (std::uint16_t at = 0; at < 16; ++at) {
    for (std::uint16_t to = 0; to <= 16; ++to) {
      const std::uint16_t target = to == 16 ? kIoChiplet : to;
      if (at == target) continue;
      const bool longer = moves(table, 4, at, target).size() > moves(whole, 4, at, target).size();
      EXPECT_EQ(table.detour(at, target), longer) << at << " to " << to;
      EXPECT_FALSE(whole.detour(at, target));
    }
  }
  EXPECT_TRUE(table.detour(5, 6));
}

TEST(CubeTable, RefusesABreakThatCannotBePassed) {
  try {
    CubeTable(4, 4, {{5, 9}}, 3);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sip3.io0 cannot reach sip3.cube9"));
    EXPECT_THAT(error.what(), HasSubstr("sip3.cube5-sip3.cube9"));
  }
  EXPECT_THROW(CubeTable(2, 1, {{0, 1}}, 0), ConfigError);
}

/// SIPs on the way, and the VC sets of the hops.
std::vector<std::uint16_t> sips(const SystemSpec& spec, const SipTable& table, std::uint16_t at, std::uint16_t to,
                                std::string* sets = nullptr) {
  std::vector<std::uint16_t> list;
  bool crossed = false;
  while (at != to && list.size() < 100) {
    const SipTable::Hop hop = table.next(at, to);
    if (sets != nullptr) *sets += (hop.by_dateline ? crossed : hop.vc_set != 0) ? '1' : '0';
    crossed = crossed || hop.dateline;
    at = sip_neighbours(spec, at).at(hop.link);
    list.push_back(at);
  }
  return list;
}

TEST(SipTable, TakesTheShorterWayRoundARingAndThePositiveOneOnATie) {
  const SystemSpec spec = small_machine(8, 1, 1);
  const SipTable table(spec);
  EXPECT_THAT(sips(spec, table, 0, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(sips(spec, table, 0, 5), ElementsAre(7, 6, 5));
  EXPECT_THAT(sips(spec, table, 0, 4), ElementsAre(1, 2, 3, 4));
  std::string sets;
  EXPECT_THAT(sips(spec, table, 6, 1, &sets), ElementsAre(7, 0, 1));
  EXPECT_EQ(sets, "110") << "set 1 until the wrap link has been crossed";
}

TEST(SipTable, TwoSipsHaveOneLinkAndNoWrap) {
  const SystemSpec spec = small_machine(2, 1, 1);
  EXPECT_THAT(sip_neighbours(spec, 0), ElementsAre(1));
  std::string sets;
  sips(spec, SipTable(spec), 0, 1, &sets);
  sips(spec, SipTable(spec), 1, 0, &sets);
  EXPECT_EQ(sets, "00");
  EXPECT_THAT(sip_neighbours(grid_machine(SipTopology::torus_2d, 4, 2), 0), ElementsAre(1, 3, 4));
}

TEST(SipTable, TorusGoesAlongXThenYAndChangesSetsAtTheWrapLinks) {
  const SystemSpec spec = grid_machine(SipTopology::torus_2d, 5, 5);
  const SipTable table(spec);
  std::string sets;
  EXPECT_THAT(sips(spec, table, 23, 5, &sets), ElementsAre(24, 20, 0, 5));
  EXPECT_EQ(sets, "1101");
}

TEST(SipTable, MeshDoesNotWrap) {
  const SystemSpec spec = grid_machine(SipTopology::mesh_2d_no_wrap, 4, 4);
  std::string sets;
  EXPECT_THAT(sips(spec, SipTable(spec), 3, 8, &sets), ElementsAre(2, 1, 0, 4, 8));
  EXPECT_EQ(sets, "00000");
}

TEST(SipTable, KnowsWhichWaysABrokenLinkMakesLonger) {
  SystemSpec ring = small_machine(5, 1, 1);
  const SipTable whole(ring);
  ring.broken_sip_links = {{0, 1}};
  const SipTable table(ring);
  for (std::uint16_t at = 0; at < 5; ++at) {
    for (std::uint16_t to = 0; to < 5; ++to) {
      if (at == to) continue;
      EXPECT_EQ(table.detour(at, to), sips(ring, table, at, to).size() > sips(ring, whole, at, to).size())
          << at << " to " << to;
      EXPECT_FALSE(whole.detour(at, to));
    }
  }
  EXPECT_TRUE(table.detour(0, 1));
  EXPECT_FALSE(table.detour(2, 3));
}

TEST(SipTable, PassesBrokenLinksTheOtherWayRoundOrOverAThirdSip) {
  SystemSpec ring = small_machine(5, 1, 1);
  ring.broken_sip_links = {{0, 1}};
  EXPECT_THAT(sips(ring, SipTable(ring), 0, 1), ElementsAre(4, 3, 2, 1));
  SystemSpec full = small_machine(4, 1, 1);
  full.topology = SipTopology::fully_connected;
  full.broken_sip_links = {{1, 2}};
  EXPECT_THAT(sips(full, SipTable(full), 1, 2), ElementsAre(0, 2));
  SystemSpec mesh = grid_machine(SipTopology::mesh_2d_no_wrap, 2, 2);
  mesh.broken_sip_links = {{0, 1}};
  try {
    const SipTable table(mesh);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sip0 cannot reach sip1: broken links cut sip0 from sip1 along x"));
  }
}

TEST(Walk, ReachesEveryNodeFromEveryNodeInEverySipTopology) {
  for (const SipTopology topology : {SipTopology::ring_1d, SipTopology::torus_2d, SipTopology::mesh_2d_no_wrap,
                                     SipTopology::switch_star, SipTopology::fully_connected}) {
    SystemSpec spec = grid_machine(topology, 3, 3, 2, 2);
    spec.cube.pes = 2;
    spec.links.links_per_neighbour = 2;
    const Plan plan(spec);
    const auto count = static_cast<std::uint32_t>(plan.map.nodes.size());
    for (std::uint32_t from = 0; from < count; from += 3) {
      for (std::uint32_t to = 0; to < count; ++to) {
        const auto steps = walk(plan, NodeId{from}, NodeId{to});
        EXPECT_EQ(steps.back().out_port, plan.map.nodes[to].at.port);
      }
    }
  }
}

TEST(Walk, ChoosesTheConnectionNearestToRowOrDestinationColumn) {
  const Plan plan(small_machine(1, 2, 2));
  const MachineMap& map = plan.map;
  const auto first_exit = [&](NodeId from, NodeId to) {
    for (const RouterStep& step : walk(plan, from, to)) {
      if (step.end != kNoEnd) return plan.end_name(step.end) + ":" + std::to_string(step.connection);
    }
    return std::string("none");
  };
  EXPECT_EQ(first_exit(map.pe({0, 0, 4}), map.pe({0, 1, 0})), "sip0.cube0.ucie_e:2");  // PE 4 is at r2c1
  EXPECT_EQ(first_exit(map.pe({0, 0, 0}), map.pe({0, 2, 1})), "sip0.cube0.ucie_s:3");  // PE 1 is at r0c3
  EXPECT_EQ(first_exit(map.pe({0, 0, 0}), map.pcie_ep(0)), "sip0.cube0.ucie_n:1");     // PE 0 is at r0c1
  EXPECT_EQ(first_exit(map.pcie_ep(0), map.pe({0, 2, 1})), "sip0.io0.ucie0:3");
}

TEST(Walk, TravelsOnSetOneInACubeFromTheFirstMoveSouthAndAfterAnIoChiplet) {
  const Plan plan(small_machine(1, 2, 2));
  const auto sets = [&](NodeId from, NodeId to) {
    std::string text;
    std::uint32_t network = kNoEnd;
    for (const RouterStep& step : walk(plan, from, to)) {
      if (step.network != network) text += static_cast<char>('0' + step.vc_set);
      network = step.network;
    }
    return text;
  };
  EXPECT_EQ(sets(plan.map.pe({0, 0, 0}), plan.map.pe({0, 3, 0})), "011");
  EXPECT_EQ(sets(plan.map.pe({0, 3, 0}), plan.map.pe({0, 0, 0})), "001");
  EXPECT_EQ(sets(plan.map.io_cpu(0), plan.map.m_cpu({0, 3})), "011");
  EXPECT_EQ(sets(plan.map.pe({0, 2, 0}), plan.map.io_cpu(0)), "000");
}

}  // namespace
}  // namespace kernbench::topology
