#include "ccl/schedule/ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ccl/schedule/estimate.h"
#include "ccl/schedule/level_cost.h"
#include "ccl/schedule/machine.h"
#include "ccl/schedule/plan.h"
#include "tests/ccl/schedule_support.h"
#include "tests/topology/machines.h"
#include "topology/plan/plan.h"

namespace kernbench::ccl {
namespace {
using ::testing::ElementsAre;

topology::SystemSpec ring_with_broken(std::uint16_t sips, std::uint16_t a, std::uint16_t b) {
  topology::SystemSpec spec = topology::small_machine(sips, 1, 1);
  spec.broken_sip_links = {{a, b}};
  return spec;
}

std::vector<std::uint16_t> all_sips(const MachineMap& map) {
  std::vector<std::uint16_t> sips(map.sips);
  std::iota(sips.begin(), sips.end(), std::uint16_t{0});
  return sips;
}

std::shared_ptr<const Ways> ways_of(const topology::SystemSpec& spec) {
  const topology::Plan plan(spec);
  return sip_ways(plan.map, all_sips(plan.map));
}

TEST(Ways, OfAMachineWithoutBrokenLinksNeedNotBeSaid) {
  for (const SipTopology topology : {SipTopology::ring_1d, SipTopology::torus_2d, SipTopology::mesh_2d_no_wrap,
                                     SipTopology::switch_star, SipTopology::fully_connected}) {
    for (const auto& [w, h] : {std::pair{2, 1}, std::pair{2, 2}, std::pair{3, 2}}) {
      topology::SystemSpec spec =
          topology::grid_machine(topology, static_cast<std::uint16_t>(w), static_cast<std::uint16_t>(h), 2, 2);
      const topology::Plan plan(spec);
      EXPECT_EQ(sip_ways(plan.map, all_sips(plan.map)), nullptr) << to_string(topology) << w << h;
      EXPECT_EQ(cube_ways(plan.map, all_sips(plan.map)), nullptr) << to_string(topology) << w << h;
    }
  }
}

TEST(Ways, PassABrokenLinkTheOtherWayRoundOrOverAThirdSip) {
  const auto ring = ways_of(ring_with_broken(5, 0, 1));
  EXPECT_THAT(ring->at({0, 1}), ElementsAre(0, 4, 3, 2, 1));
  EXPECT_THAT(ring->at({1, 0}), ElementsAre(1, 2, 3, 4, 0));
  EXPECT_THAT(ring->at({1, 3}), ElementsAre(1, 2, 3));
  topology::SystemSpec torus = topology::grid_machine(SipTopology::torus_2d, 4, 4);
  torus.broken_sip_links = {{4, 5}};
  // As long as the other way to the opposite SIP of the row, and then along the column.
  EXPECT_THAT(ways_of(torus)->at({4, 10}), ElementsAre(4, 7, 6, 10));
  topology::SystemSpec full = topology::small_machine(4, 1, 1);
  full.topology = SipTopology::fully_connected;
  full.broken_sip_links = {{1, 2}};
  EXPECT_THAT(ways_of(full)->at({1, 2}), ElementsAre(1, 0, 2));
  EXPECT_THAT(ways_of(full)->at({1, 3}), ElementsAre(1, 3));
}

/// Ranks 0 and 1 are SIPs 0 and 2: between them lies a SIP of no rank.
TEST(Ways, OfPartOfAMachineLeadThroughTheRest) {
  const topology::Plan plan(ring_with_broken(5, 0, 4));
  EXPECT_THAT(sip_ways(plan.map, {0, 2})->at({0, 1}), ElementsAre(0, 1, 2));
}

TEST(Ways, ParallelConnectionsAreOneLink) {
  topology::SystemSpec spec = ring_with_broken(4, 0, 1);
  spec.links.links_per_neighbour = 3;
  EXPECT_THAT(ways_of(spec)->at({0, 1}), ElementsAre(0, 3, 2, 1));
}

TEST(Ways, BetweenCubesGoRoundABrokenLinkOfTheirSipOnly) {
  topology::SystemSpec spec = topology::small_machine(2, 2, 2);
  spec.broken_cube_links = {{{1, 2}, 3}};
  const topology::Plan plan(spec);
  const auto ways = cube_ways(plan.map, all_sips(plan.map));
  EXPECT_THAT(ways->at({6, 7}), ElementsAre(6, 4, 5, 7));
  EXPECT_THAT(ways->at({4, 5}), ElementsAre(4, 5));
  EXPECT_EQ(ways->count({2, 3}), 0U);
  PlanRequest request = test::machine(CollectiveOp::all_reduce, kRing1d, 2, 1, 2, 2);
  request.cube_ways = ways;
  EXPECT_THAT(cube_way(request, 6, 7), ElementsAre(6, 4, 5, 7));
  EXPECT_THAT(cube_way(request, 2, 3), ElementsAre(2, 3));
}

/// They are of a link that there is: which one is broken is all the same.
TEST(LevelCosts, AreThoseOfTheWholeMachineWhicheverLinkIsBroken) {
  const topology::Plan intact(topology::small_machine(5, 2, 2));
  PlanRequest whole;
  describe_machine(intact.map, whole);
  for (std::uint16_t sip = 0; sip < 5; ++sip) {
    topology::SystemSpec spec = topology::small_machine(5, 2, 2);
    spec.broken_sip_links = {std::minmax(sip, static_cast<std::uint16_t>((sip + 1) % 5))};
    const topology::Plan broken(spec);
    PlanRequest request;
    describe_machine(broken.map, request);
    EXPECT_EQ(request.sip.hop_seconds, whole.sip.hop_seconds) << sip;
    EXPECT_EQ(request.sip.pass_seconds, whole.sip.pass_seconds) << sip;
    EXPECT_EQ(request.row_skew_seconds, whole.row_skew_seconds) << sip;
  }
}

/// Where every SIP has a link to every other one there are no two links in a row, but for detours.
TEST(LevelCosts, OfASecondLinkAreKnownWhereOnlyDetoursTakeOne) {
  for (const SipTopology topology : {SipTopology::ring_1d, SipTopology::fully_connected}) {
    topology::SystemSpec spec = topology::small_machine(3, 1, 1);
    spec.topology = topology;
    spec.broken_sip_links = {{0, 1}};
    const topology::Plan plan(spec);
    PlanRequest request;
    describe_machine(plan.map, request);
    EXPECT_GE(request.sip.pass_seconds, 400e-9) << to_string(topology) << ": a link's latency";
    EXPECT_LT(request.sip.pass_seconds, request.sip.hop_seconds) << to_string(topology);
  }
}

/// A message of rank 0 for rank `peer`.
PlanRequest message(std::int32_t ranks, std::int32_t peer, std::int64_t bytes) {
  PlanRequest request = test::machine(CollectiveOp::send_recv, kRing1d, ranks, 1);
  request.root = 0;
  request.peer = peer;
  request.bytes = bytes;
  request.sip.pass_seconds = 0.5e-6;
  return request;
}

/// Four links instead of one: three more to pass, which is all that an idle network adds.
TEST(Estimates, OfAMessageRoundABrokenLinkAddTheLatencyOfTheDetour) {
  PlanRequest request = message(5, 1, 1024);
  const double direct = plan_direct("direct", request).seconds;
  request.sip_ways = ways_of(ring_with_broken(5, 0, 1));
  EXPECT_NEAR(plan_direct("direct", request).seconds - direct, 3 * request.sip.pass_seconds, 1e-12);
}

/// In a ring all links carry the same load L each way. Those of a broken link go over all others the other way, which
/// then carry 2 L.
TEST(Estimates, OfARingWithABrokenLinkCountTwiceTheLoadOfItsLinks) {
  PlanRequest request = test::machine(CollectiveOp::all_gather, kRing1d, 5, 1);
  request.bytes = 1 << 20;
  request.most_seconds = 1e-9;  // then the load of the busiest link is the answer
  const double load = plan_grid("ring", request).seconds;
  request.sip_ways = ways_of(ring_with_broken(5, 1, 2));
  EXPECT_NEAR(plan_grid("ring", request).seconds, 2 * load, 1e-12);
}

/// A ring looks the same from everywhere.
TEST(Estimates, DoNotDependOnWhichLinkOfARingIsBroken) {
  PlanRequest request = test::machine(CollectiveOp::all_to_all, kRing1d, 5, 1);
  request.bytes = 64 << 10;
  request.sip.pass_seconds = 0.5e-6;
  std::vector<double> seconds;
  for (std::uint16_t sip = 0; sip < 4; ++sip) {
    request.sip_ways = ways_of(ring_with_broken(5, sip, static_cast<std::uint16_t>(sip + 1)));
    seconds.push_back(plan_direct("direct", request).seconds);
  }
  for (const double one : seconds) EXPECT_NEAR(one / seconds.front(), 1, 0.02);
}

}  // namespace
}  // namespace kernbench::ccl
