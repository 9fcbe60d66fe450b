#include "topology/plan/deadlock.h"

#include <gmock/gmock.h>

#include "tests/topology/machines.h"
#include "tlm/config/problems.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {
namespace {

using ::testing::HasSubstr;

/// No cycle with either coverage, and the representatives miss nothing (they add a few arrivals that do not occur).
void expect_free_of_cycles(const SystemSpec& spec) {
  const Plan plan(spec);
  const DeadlockStats all = check_deadlock(plan, Coverage::everything);
  const DeadlockStats some = check_deadlock(plan, Coverage::representatives);
  EXPECT_GT(all.dependencies, 0u);
  EXPECT_EQ(all.channels, some.channels);
  EXPECT_GE(some.dependencies, all.dependencies);
  EXPECT_LE(some.dependencies, all.dependencies + all.dependencies / 100);
}

TEST(Deadlock, CubesOfSixBySixRoutersAreFreeOfCycles) {
  SystemSpec spec = small_machine(1, 3, 3);
  spec.cube.noc.rows = spec.cube.noc.cols = 6;
  expect_free_of_cycles(spec);
}

TEST(Deadlock, MeshesWithHolesAreFreeOfCycles) {
  SystemSpec spec = small_machine(2, 4, 4);
  spec.cube = holey_cube();
  spec.cube.hbm.bytes = 1 << 30;
  expect_free_of_cycles(spec);
}

TEST(Deadlock, RingsAndToriAreFreeOfCyclesWithOneAndSeveralLinks) {
  for (const std::uint32_t links : {1u, 3u}) {
    SystemSpec ring = small_machine(5, 2, 1);
    ring.links.links_per_neighbour = links;
    expect_free_of_cycles(ring);
    SystemSpec torus = grid_machine(SipTopology::torus_2d, 4, 3, 1, 2);
    torus.links.links_per_neighbour = links;
    expect_free_of_cycles(torus);
  }
}

TEST(Deadlock, BrokenLinksKeepItFreeOfCycles) {
  SystemSpec spec = small_machine(4, 3, 3);
  spec.topology = SipTopology::fully_connected;
  spec.broken_sip_links = {{0, 1}, {2, 3}};
  spec.broken_cube_links = {{CubeCoord{0, 4}, 5}, {CubeCoord{0, 7}, 8}, {CubeCoord{2, 3}, 4}};
  expect_free_of_cycles(spec);
}

/// Sends E, S, W and N in a circle of four routers: what the check is there for.
class CircularRoutes final : public NetworkRoutes {
 public:
  explicit CircularRoutes(const Plan& plan) : plan_(plan) {}
  RouteDecision enter(NodeId destination, std::uint16_t, bool, std::uint8_t) const override {
    const Attachment& to = plan_.map.node(destination).at;
    const Spot north = plan_.layouts.front().ucie[0].front();
    return {to.cube == kIoChiplet ? Exit{north.router, north.port} : Exit{to.router, to.port}, 0, 0};
  }
  std::uint8_t next_port(std::uint16_t at, Exit exit) const override {
    constexpr std::uint8_t kClockwise[] = {kEastPort, kSouthPort, kNorthPort, kWestPort};
    return at == exit.router ? exit.port : kClockwise[at];
  }

 private:
  const Plan& plan_;
};

TEST(Deadlock, PrintsTheCycle) {
  SystemSpec spec = small_machine(1, 1, 1);
  spec.cube.noc.rows = spec.cube.noc.cols = 2;
  Plan plan(spec);
  const CircularRoutes routes(plan);
  plan.networks[0].routes = &routes;
  try {
    check_deadlock(plan, Coverage::everything);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("packets could wait for each other in a circle:"));
    EXPECT_THAT(error.what(), HasSubstr("\n  sip0.cube0.r0c0 output e, set 0"));
    EXPECT_THAT(error.what(), HasSubstr("\n  sip0.cube0.r1c1 output w, set 0"));
  }
}

}  // namespace
}  // namespace kernbench::topology
