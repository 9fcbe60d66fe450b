#include "topology/plan/layout.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/topology/machines.h"
#include "tlm/config/problems.h"

namespace kernbench::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Layout, SpreadsPesAsACheckerboardWithHbmPortsBesideThem) {
  const CubeLayout cube = layout(CubeSpec{});
  EXPECT_EQ(to_string(cube.mesh.pes), "[r0c1, r0c3, r1c0, r1c2, r2c1, r2c3, r3c0, r3c2]");
  EXPECT_EQ(cube.mesh.hbm_ports, cube.mesh.pes);
  for (std::size_t pe = 0; pe < cube.pes.size(); ++pe) {
    EXPECT_EQ(cube.pes[pe].router, cube.hbm_ports[pe].router);
    EXPECT_NE(cube.pes[pe].port, cube.hbm_ports[pe].port);
  }
}

TEST(Layout, GivesEveryColumnAndRowAPeBeforeASecond) {
  for (const std::uint16_t side : {2, 3, 4, 5, 8}) {
    for (std::uint16_t pes = 1; pes <= side * side; ++pes) {
      CubeSpec spec;
      spec.noc.rows = spec.noc.cols = side;
      spec.pes = pes;
      std::vector<unsigned> in_column(side), in_row(side);
      std::set<GridPoint> routers;
      for (const GridPoint pe : place(spec).pes) {
        ++in_column[pe.col];
        ++in_row[pe.row];
        EXPECT_TRUE(routers.insert(pe).second) << pes << " PEs on " << side << ": two at " << to_string(pe);
      }
      const auto uneven = [](const std::vector<unsigned>& line) {
        const auto [least, most] = std::minmax_element(line.begin(), line.end());
        return *most - *least;
      };
      EXPECT_LE(uneven(in_column), 1u) << pes << " PEs on " << side << " columns";
      EXPECT_LE(uneven(in_row), 1u) << pes << " PEs on " << side << " rows";
    }
  }
}

TEST(Layout, MovesThePesOfNeighbouringRowsApart) {
  CubeSpec spec;
  const auto pes = [&](std::uint16_t count) {
    spec.pes = count;
    return to_string(place(spec).pes);
  };
  EXPECT_EQ(pes(1), "[r2c3]");
  EXPECT_EQ(pes(2), "[r1c3, r3c1]");
  EXPECT_EQ(pes(4), "[r0c3, r1c1, r2c2, r3c0]");
}

TEST(Layout, GivesNoRouterASecondPeBeforeAllHaveOne) {
  CubeSpec spec = holey_cube();
  spec.placement.pes.clear();
  spec.placement.exclusion = {{0, 0}, {0, 1}, {1, 1}};
  spec.pes = 29;
  const auto pes = place(spec).pes;
  EXPECT_EQ(std::set<GridPoint>(pes.begin(), pes.end()).size(), 29u);
  spec.pes = 58;
  const auto twice = place(spec).pes;
  for (const GridPoint pe : pes) EXPECT_EQ(std::count(twice.begin(), twice.end(), pe), 2) << to_string(pe);
}

TEST(Layout, PutsCpuAndSramNearTheMiddleWhereLeastIsAttached) {
  const CubeLayout cube = layout(CubeSpec{});
  EXPECT_EQ(to_string(cube.mesh.m_cpu), "r1c1");
  EXPECT_EQ(to_string(cube.mesh.sram), "r2c2");
}

TEST(Layout, SpreadsUcieConnectionsOverTheEdges) {
  CubeSpec spec;
  spec.ucie.connections = 2;
  const CubeLayout cube = layout(spec);
  EXPECT_EQ(to_string(cube.mesh.ucie[0]), "[r0c1, r0c3]");
  EXPECT_EQ(to_string(cube.mesh.ucie[1]), "[r3c1, r3c3]");
  EXPECT_EQ(to_string(cube.mesh.ucie[2]), "[r1c3, r3c3]");
  EXPECT_EQ(to_string(cube.mesh.ucie[3]), "[r1c0, r3c0]");
}

TEST(Layout, HonoursHints) {
  CubeSpec spec = holey_cube();
  spec.placement.m_cpu = {{0, 2}};
  const CubeLayout cube = layout(spec);
  EXPECT_EQ(cube.routers.size(), 32u);
  EXPECT_EQ(cube.mesh.pes, spec.placement.pes);
  EXPECT_EQ(to_string(cube.mesh.m_cpu), "r0c2");
}

TEST(Layout, KeepsTheExclusionZoneFreeOfAttachmentsButNotOfRouters) {
  CubeSpec spec;
  spec.placement.exclusion = {{0, 0}, {0, 1}, {1, 1}};
  const CubeLayout cube = layout(spec);
  EXPECT_EQ(cube.routers.size(), 16u);
  for (const GridPoint point : spec.placement.exclusion)
    EXPECT_TRUE(cube.locals[cube.at(point)].empty()) << to_string(point);
  EXPECT_EQ(to_string(cube.mesh.ucie[0]), "[r0c2, r0c2, r0c3, r0c3]");
}

TEST(Layout, NumbersPortsWithoutGapsAndNeighboursBothWays) {
  const CubeLayout cube = layout(holey_cube());
  for (std::uint16_t router = 0; router < cube.routers.size(); ++router) {
    for (int port = 0; port < kSides; ++port) {
      const std::uint16_t next = cube.neighbours[router][static_cast<std::size_t>(port)];
      if (next == kNoRouter) continue;
      EXPECT_EQ(cube.neighbours[next][static_cast<std::size_t>(opposite(static_cast<Side>(port)))], router);
    }
  }
  std::set<std::pair<std::uint16_t, std::uint8_t>> used;
  std::size_t locals = 0;
  const auto take = [&](Spot spot) {
    EXPECT_TRUE(used.insert({spot.router, spot.port}).second);
    EXPECT_LT(spot.port, cube.ports(spot.router));
  };
  for (const Spot spot : cube.pes) take(spot);
  for (const Spot spot : cube.hbm_ports) take(spot);
  for (const auto& side : cube.ucie) {
    for (const Spot spot : side) take(spot);
  }
  take(cube.m_cpu);
  take(cube.sram);
  for (const auto& list : cube.locals) locals += list.size();
  EXPECT_EQ(used.size(), locals);
}

TEST(Layout, FindsTheNearestConnectionAndTheLowerOfTwo) {
  CubeSpec spec;
  spec.noc.rows = 5;
  spec.noc.cols = 5;
  spec.ucie.connections = 2;
  const CubeLayout cube = layout(spec);  // connections at rows or columns 1 and 3
  EXPECT_EQ(cube.nearest_connection(Side::east, 0), 0);
  EXPECT_EQ(cube.nearest_connection(Side::east, 2), 0);
  EXPECT_EQ(cube.nearest_connection(Side::west, 4), 1);
  EXPECT_EQ(cube.nearest_connection(Side::north, 3), 1);
}

TEST(Layout, RefusesACubeWhoseEdgeCannotTakeUcie) {
  CubeSpec spec;
  spec.placement.exclusion = {{0, 0}, {0, 1}, {0, 2}, {0, 3}};
  try {
    layout(spec);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no router of a cube's n edge can take its UCIe connections"));
  }
}

TEST(Layout, TellsOfEveryEdgeThatCannotTakeUcie) {
  CubeSpec spec;
  for (std::uint16_t col = 0; col < spec.noc.cols; ++col) {
    spec.placement.exclusion.push_back({0, col});
    spec.placement.exclusion.push_back({static_cast<std::uint16_t>(spec.noc.rows - 1), col});
  }
  try {
    layout(spec);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no router of a cube's n edge"));
    EXPECT_THAT(error.what(), HasSubstr("no router of a cube's s edge"));
  }
}

TEST(Determinants, ChangeWithTheFiveThingsAndWithNothingElse) {
  const CubeSpec base;
  const std::string hash = determinants(base).hash();
  const auto changed = [&](auto change) {
    CubeSpec spec = base;
    change(spec);
    return determinants(spec).hash() != hash;
  };
  EXPECT_TRUE(changed([](CubeSpec& s) { s.noc.rows = 5; }));
  EXPECT_TRUE(changed([](CubeSpec& s) { s.placement.holes = {{1, 1}}; }));
  EXPECT_TRUE(changed([](CubeSpec& s) { s.pes = 4; }));
  EXPECT_TRUE(changed([](CubeSpec& s) { s.placement.exclusion = {{1, 1}}; }));
  EXPECT_TRUE(changed([](CubeSpec& s) { s.placement.sram = {{1, 1}}; }));
  EXPECT_TRUE(changed([](CubeSpec& s) { s.ucie.connections = 2; }));
  EXPECT_FALSE(changed([](CubeSpec& s) { s.noc.flit_bytes = 32; }));
  EXPECT_FALSE(changed([](CubeSpec& s) { s.hbm.channels = 8; }));
  EXPECT_FALSE(changed([](CubeSpec& s) { s.noc.routing = RoutingAlgorithm::yx; }));
}

}  // namespace
}  // namespace kernbench::topology
