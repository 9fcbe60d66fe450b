#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ccl/import/entry.h"
#include "ccl/schedule/check.h"
#include "ccl/schedule/plan.h"
#include "tests/ccl/schedule_support.h"

namespace kernbench::ccl {
namespace {

constexpr CollectiveOp kOps[] = {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                                 CollectiveOp::reduce,     CollectiveOp::broadcast,  CollectiveOp::all_to_all,
                                 CollectiveOp::gather,     CollectiveOp::scatter,    CollectiveOp::send_recv};

bool over_cubes(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce || op == CollectiveOp::reduce_scatter ||
         op == CollectiveOp::broadcast;
}

/// Largest message of one lane.
double largest_message(const Plan& plan, const PlanRequest& request) {
  const Schedule& s = *plan.schedule;
  const std::int64_t regions = std::max(regions_in(s.op, s.nodes), regions_out(s.op, s.nodes));
  std::int32_t units = 0;
  for (const Block& block : s.blocks) units = std::max(units, block.end - block.begin);
  return static_cast<double>(request.bytes) / request.lanes / static_cast<double>(regions * plan.rounds * s.units) *
         units;
}

void expect_sound(const Algorithm& algorithm, const PlanRequest& request) {
  SCOPED_TRACE(testing::Message() << algorithm.name << ": " << to_string(request.op) << ", kind " << request.kind
                                  << ", " << request.sip_w << " x " << request.sip_h << " SIPs of " << request.cubes()
                                  << " cubes, " << request.bytes << " B, " << request.slots << " slots");
  const Plan plan = algorithm.plan(request);
  ASSERT_EQ(plan.schedule->op, request.op);
  ASSERT_EQ(plan.schedule->nodes, request.nodes());
  EXPECT_NO_THROW(check(*plan.schedule, request.slots));
  EXPECT_LE(largest_message(plan, request), request.slot_bytes * 1.0001);
  EXPECT_GE(plan.seconds, 0);
  PlanRequest shape = request;
  shape.op = CollectiveOp::all_reduce;
  shape.bytes = 0;
  const NodePairs links = algorithm.links(shape);
  const std::set<std::pair<std::int32_t, std::int32_t>> offered(links.begin(), links.end());
  for (const ScheduleLink& link : plan.schedule->links) {
    EXPECT_TRUE(offered.count({link.a, link.b})) << link.a << "-" << link.b;
  }
}

std::vector<const Algorithm*> schedule_modules(std::vector<std::shared_ptr<const Algorithm>>& keep) {
  std::vector<const Algorithm*> found;
  for (const std::string& name : builtin_algorithms()) {
    keep.push_back(load_module("kernbench.ccl." + name));
    if (keep.back()->plan) found.push_back(keep.back().get());
  }
  return found;
}

TEST(Plans, EveryModuleKeepsToSlotsLinksAndMessages) {
  std::vector<std::shared_ptr<const Algorithm>> keep;
  for (const Algorithm* algorithm : schedule_modules(keep)) {
    for (const CollectiveOp op : kOps) {
      if (!(algorithm->operations & bit(op))) continue;
      for (std::int32_t kind = kRing1d; kind <= kFullyConnected; ++kind) {
        if (!(algorithm->topologies & topology_bit(kind))) continue;
        for (const auto& [w, h] : {std::pair{1, 1}, {2, 1}, {3, 1}, {5, 1}, {3, 2}}) {
          for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1000}, std::int64_t{4} << 20}) {
            PlanRequest request = test::machine(op, kind, w, h);
            request.bytes = bytes;
            request.lanes = 8;
            request.slots = bytes == 1000 ? 1 : 4;
            expect_sound(*algorithm, request);
          }
        }
      }
    }
  }
}

TEST(Plans, EveryModuleServesCubesWhereItSaysSo) {
  std::vector<std::shared_ptr<const Algorithm>> keep;
  for (const Algorithm* algorithm : schedule_modules(keep)) {
    if (!(algorithm->scopes & bit(Scope::cube))) continue;
    for (const CollectiveOp op : kOps) {
      if (!(algorithm->operations & bit(op)) || !over_cubes(op)) continue;
      for (std::int32_t kind = kRing1d; kind <= kFullyConnected; ++kind) {
        if (!(algorithm->topologies & topology_bit(kind))) continue;
        PlanRequest request = test::machine(op, kind, 3, 1, 3, 2);
        request.bytes = 1 << 20;
        request.lanes = 8;
        expect_sound(*algorithm, request);
      }
    }
  }
}

TEST(Plans, EveryOperationIsServedOnEveryTopology) {
  std::vector<std::shared_ptr<const Algorithm>> keep;
  const auto modules = schedule_modules(keep);
  for (const CollectiveOp op : kOps) {
    for (std::int32_t kind = kRing1d; kind <= kFullyConnected; ++kind) {
      EXPECT_TRUE(std::any_of(modules.begin(), modules.end(),
                              [&](const Algorithm* algorithm) {
                                return (algorithm->operations & bit(op)) &&
                                       (algorithm->topologies & topology_bit(kind)) && algorithm->scopes == kAllScopes;
                              }))
          << to_string(op) << " on kind " << kind;
    }
  }
}

/// A machine: 512 GB/s, 35 ns per hop, 2 ns to send, 4 ns + b / 512 GB/s to receive, 8 lanes.
double fraction(const char* module, CollectiveOp op, std::int32_t kind, int w, int h, double bound,
                std::int64_t bytes) {
  PlanRequest request = test::machine(op, kind, w, h);
  request.bytes = bytes;
  request.lanes = 8;
  request.sip = {512e9, 35e-9, 0};
  request.send_seconds = 2e-9;
  request.receive_seconds = 12e-9;
  return bound * static_cast<double>(bytes) / 512e9 /
         load_module(std::string("kernbench.ccl.") + module)->plan(request).seconds;
}

TEST(Plans, LargeDataReachesTheBoundOnTheReferenceMachine) {
  const std::int64_t large = std::int64_t{64} << 20;
  EXPECT_GT(fraction("ring", CollectiveOp::all_reduce, kRing1d, 8, 1, 7.0 / 8, large), 0.98);
  EXPECT_GT(fraction("torus_2d", CollectiveOp::all_reduce, kTorus2d, 4, 4, 15.0 / 32, large), 0.98);
  EXPECT_GT(fraction("mesh_2d", CollectiveOp::all_reduce, kMesh2d, 4, 4, 15.0 / 24, large), 0.95);
  EXPECT_GT(fraction("direct", CollectiveOp::all_reduce, kFullyConnected, 4, 1, 2.0 / 4, large), 0.97);
  EXPECT_GT(fraction("direct", CollectiveOp::all_reduce, kSwitch, 8, 1, 14.0 / 8, large), 0.98);
  EXPECT_GT(fraction("mesh_2d", CollectiveOp::all_gather, kMesh2d, 4, 4, 15.0 / 32, large), 0.98);
  EXPECT_GT(fraction("torus_2d", CollectiveOp::reduce_scatter, kTorus2d, 4, 4, 15.0 / 64, large), 0.98);
  EXPECT_GT(fraction("ring", CollectiveOp::all_to_all, kRing1d, 8, 1, 1.0, large), 0.98);
  EXPECT_GT(fraction("torus_2d", CollectiveOp::all_to_all, kTorus2d, 4, 4, 0.5, large), 0.95);
}

TEST(Plans, EnginesLimitNodesWithManyLinks) {
  // 7 links: 8 lanes of 4 KiB take 64 ns on a link, a lane's 7 messages 84 ns to be received, and are sent beside that.
  EXPECT_NEAR(fraction("direct", CollectiveOp::all_reduce, kFullyConnected, 8, 1, 2.0 / 8, std::int64_t{64} << 20),
              64.0 / 84, 0.01);
}

TEST(Plans, OneDirectionReachesHalfOfWhatBothDo) {
  const std::int64_t large = std::int64_t{64} << 20;
  EXPECT_NEAR(fraction("ring_one_direction", CollectiveOp::all_reduce, kRing1d, 8, 1, 7.0 / 8, large), 0.5, 0.01);
}

/// Plans with a limit and without it: how many, and of how many of them `seconds` is only the least that they take.
struct Limited {
  int all = 0, least = 0;
};

/// With a limit a plan takes what it does without one, or says that it takes at least what it says.
void expect_limit_kept(const Algorithm& algorithm, PlanRequest request, double takes, double limit, Limited& count) {
  request.most_seconds = limit;
  const Plan plan = algorithm.plan(request);
  ++count.all;
  if (!plan.at_least) {
    EXPECT_DOUBLE_EQ(plan.seconds, takes);
    return;
  }
  ++count.least;
  EXPECT_LT(limit, takes);
  EXPECT_GT(plan.seconds, limit);
  EXPECT_LE(plan.seconds, takes * (1 + 1e-9));
}

/// Of 3 x 2 SIPs of cubes x cubes contributors and 8 lanes each, with columns that are slower than the links.
Limited limited_plans(CollectiveOp op, const std::vector<std::int32_t>& kinds, int cubes, std::int64_t bytes,
                      const std::vector<double>& shares) {
  std::vector<std::shared_ptr<const Algorithm>> keep;
  Limited count;
  for (const Algorithm* algorithm : schedule_modules(keep)) {
    if (!(algorithm->operations & bit(op)) || !(algorithm->scopes & bit(cubes > 1 ? Scope::cube : Scope::sip)))
      continue;
    for (const std::int32_t kind : kinds) {
      if (!(algorithm->topologies & topology_bit(kind))) continue;
      SCOPED_TRACE(testing::Message() << algorithm->name << ": " << to_string(op) << ", kind " << kind << ", "
                                      << cubes * cubes << " cubes, " << bytes << " B");
      PlanRequest request = test::machine(op, kind, 3, 2, cubes, cubes);
      request.bytes = bytes;
      request.lanes = 8;
      request.column_bytes_per_second = 50e9;
      request.columns = 2;
      request.row_skew_seconds = 20e-9;
      const Plan plan = algorithm->plan(request);
      EXPECT_FALSE(plan.at_least);
      for (const double share : shares)
        expect_limit_kept(*algorithm, request, plan.seconds, share * plan.seconds, count);
    }
  }
  return count;
}

TEST(Plans, AreNotEstimatedWhereTheirLinksAloneTakeTooLong) {
  const std::vector<std::int32_t> kKinds{kRing1d, kTorus2d, kMesh2d, kSwitch, kFullyConnected};
  for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_to_all, CollectiveOp::broadcast}) {
    for (const int cubes : {1, 2}) {
      if (cubes > 1 && !over_cubes(op)) continue;
      const Limited large = limited_plans(op, kKinds, cubes, std::int64_t{4} << 20, {0.9, 0.5, 1.0});
      EXPECT_GT(large.least, 0) << to_string(op);
      EXPECT_LE(large.least, large.all * 2 / 3) << to_string(op);
      // Links take next to no time for little data: all is estimated, however far above the limit it is.
      EXPECT_EQ(limited_plans(op, kKinds, cubes, 1024, {0.5}).least, 0) << to_string(op);
    }
  }
}

/// Of many rounds the last ones are extrapolated.
TEST(Plans, AreNoShorterThanTheirLinksTakeForManyRounds) {
  for (const int cubes : {1, 2})
    EXPECT_GT(limited_plans(CollectiveOp::all_reduce, {kMesh2d, kFullyConnected}, cubes, 64 << 20, {0.1}).least, 0);
}

TEST(Plans, RefuseWhatTheyCannotDo) {
  PlanRequest request = test::machine(CollectiveOp::gather, kRing1d, 4, 1, 2, 2);
  try {
    load_module("kernbench.ccl.ring")->plan(request);
    FAIL() << "not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "algorithm 'ring' does not serve gather of cubes");
  }
}

/// 128 lanes of a SIP with seven links of 128 GB/s.
PlanRequest seven_links(std::int32_t kind, std::int64_t bytes) {
  PlanRequest request;
  request.op = CollectiveOp::all_gather;
  request.kind = kind;
  request.sip_w = request.ranks = 8;
  request.sip_h = 1;
  request.lanes = 128;
  request.bytes = bytes;
  request.sip.hop_seconds = 0.75e-6;
  return request;
}

Plan connected(std::int32_t kind, std::int64_t bytes) { return plan_direct("direct", seven_links(kind, bytes)); }

TEST(Plans, LanesThatWouldCrowdTheLinksKeepPace) {
  // 96 kB cover a link, six times that are under way: 7 x 576 kB over 128 lanes are 7.7 messages of 4 KiB each.
  const Plan large = connected(kFullyConnected, 64 << 20);
  EXPECT_EQ(large.schedule->outstanding, 8);
  EXPECT_EQ(large.schedule->variants.size(), 6U);
  // 128 lanes with 4 messages of 1,125 B for each partner would have 576,000 B on each link.
  EXPECT_GT(connected(kFullyConnected, std::int64_t{128} * 8 * 4 * 1126).schedule->outstanding, 0);
  const Plan small = connected(kFullyConnected, std::int64_t{128} * 8 * 4 * 1124);
  EXPECT_EQ(small.schedule->outstanding, 0);
  EXPECT_TRUE(small.schedule->variants.empty());
  EXPECT_EQ(connected(kSwitch, 64 << 20).schedule->outstanding, 0);
}

TEST(Plans, LevelsOfRanksAloneThatAreAllConnectedAreTheirPairsForLargeData) {
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    PlanRequest request = seven_links(kFullyConnected, 64 << 20);
    request.op = op;
    const Plan levels = plan_hierarchical("hierarchical", request), pairs = plan_direct("direct", request);
    EXPECT_EQ(levels.schedule->algorithm, "hierarchical");
    EXPECT_EQ(levels.schedule->outstanding, 8);
    EXPECT_EQ(levels.schedule->variants.size(), pairs.schedule->variants.size());
    EXPECT_EQ(levels.seconds, pairs.seconds);
    // 128 lanes with four messages of 4 KiB for each of 8 ranks are 16 MiB; with fewer, the limit costs more than it
    // brings.
    request.bytes = 16 << 20;
    EXPECT_GT(plan_hierarchical("hierarchical", request).schedule->outstanding, 0);
    request.bytes = (16 << 20) - 1024;
    EXPECT_EQ(plan_hierarchical("hierarchical", request).schedule->outstanding, 0);
  }
}

TEST(Plans, ADivisionWithARestMakesNoFifthPiece) {
  // 128 lanes with 5,461.33 B for each of 3 ranks, and with 5,461 B.
  for (const std::int64_t bytes : {std::int64_t{2} << 20, std::int64_t{128} * 3 * 5461}) {
    PlanRequest request = seven_links(kFullyConnected, bytes);
    request.op = CollectiveOp::all_gather;
    request.ranks = 3;
    EXPECT_EQ(plan_direct("direct", request).schedule->blocks.size(), 3U * 4) << bytes;
  }
}

/// 16 lanes of each of 16 SIPs with links of 128 GB/s.
Plan of_16_lanes(const char* algorithm, CollectiveOp op, std::int32_t kind, std::int64_t bytes, std::int32_t slots = 4,
                 std::int64_t slot_bytes = 4096) {
  PlanRequest request;
  request.op = op;
  request.kind = kind;
  request.sip_w = request.sip_h = 4;
  request.ranks = request.lanes = 16;
  request.bytes = bytes;
  request.slots = slots;
  request.slot_bytes = slot_bytes;
  const std::string name = algorithm;
  return name == "hierarchical" ? plan_hierarchical(algorithm, request) : plan_grid(algorithm, request);
}

/// SIPs of a 4 x 4 mesh whose links take 0.85 us.
Plan on_mesh(std::int32_t lanes, std::int64_t bytes) {
  PlanRequest request = test::machine(CollectiveOp::all_reduce, kMesh2d, 4, 4);
  request.lanes = lanes;
  request.bytes = bytes;
  request.sip.hop_seconds = 0.85e-6;
  return plan_grid("mesh_2d", request);
}

TEST(Plans, ManyLanesOfAMeshCarryOneTreeEach) {
  constexpr std::int64_t kLarge = 64 << 20;
  const Plan many = on_mesh(128, kLarge);
  EXPECT_EQ(many.schedule->variants.size(), 7U);
  EXPECT_EQ(many.rounds, 128);  // of a whole slot: 512 KiB of a lane on its tree
  // 24 links carry 15 parts of 64 MiB each way.
  EXPECT_GT(kLarge * 15.0 / 24 / 128e9 / many.seconds, 0.95);
  // Half of the slots of 10 lanes on a link do not cover its latency.
  EXPECT_TRUE(on_mesh(16, kLarge).schedule->variants.empty());
  // A tree up and down takes longer than all trees of short messages.
  EXPECT_TRUE(on_mesh(128, 1 << 20).schedule->variants.empty());
  EXPECT_TRUE(on_mesh(7, kLarge).schedule->variants.empty());
}

std::int32_t lambda_of(const Plan& plan) { return plan.schedule->links.front().lambda; }

TEST(Plans, PeriodicListsOfManyFullSlotsLeaveHalfOfTheSlotsFree) {
  // 8 trees: 8 rounds of slots of 4 KiB on 16 lanes are 4 MiB.
  const std::int64_t many = std::int64_t{8} * 8 * 16 * 4096;
  EXPECT_EQ(lambda_of(of_16_lanes("hierarchical", CollectiveOp::all_reduce, kMesh2d, many)), 1);
  EXPECT_EQ(lambda_of(of_16_lanes("hierarchical", CollectiveOp::all_reduce, kMesh2d, many - 4096)), 2);
  EXPECT_LE(lambda_of(of_16_lanes("hierarchical", CollectiveOp::all_reduce, kMesh2d, many, 8)), 3);
}

TEST(Plans, LongSlotsAreNotFilledWhereThatLeavesFewPieces) {
  // A region of a lane is 64 KiB, half of it on each kind of comb: two slots of 16 KiB, or eight pieces of 4 KiB.
  const auto blocks = [](CollectiveOp op, std::int64_t bytes, std::int32_t slots) {
    return of_16_lanes("torus_2d", op, kTorus2d, bytes, slots, 16384).schedule->blocks.size();
  };
  constexpr std::int64_t kBytes = 16 << 20;
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    EXPECT_EQ(blocks(op, kBytes, 4), 16U * 2 * 8) << to_string(op);
    EXPECT_EQ(blocks(op, 4 * kBytes, 4), 16U * 2 * 8) << to_string(op);   // as many slots
    EXPECT_EQ(blocks(op, 8 * kBytes, 4), 16U * 2 * 16) << to_string(op);  // twice as many slots
    EXPECT_EQ(blocks(op, kBytes / 4, 4), 16U * 2 * 2) << to_string(op);   // not below 4 KiB
  }
  // An all_to_all's blocks go in four parts of 16 KiB.
  EXPECT_EQ(blocks(CollectiveOp::all_to_all, kBytes, 4), 16U * 16 * 4 * 4);
  // With two slots, a piece is twice as long.
  EXPECT_EQ(blocks(CollectiveOp::all_gather, kBytes, 2), 16U * 2 * 4);
  // An all_reduce takes slots whole, however few pieces that leaves.
  for (const int slots : {2, 4}) EXPECT_EQ(blocks(CollectiveOp::all_reduce, kBytes, slots), 16U * 2 * 2) << slots;
}

/// Diagonals (x + y) mod 4 of the roots of the first `count` pieces that node 0 of 8 x 8 SIPs reads.
std::set<int> first_diagonals(const Plan& plan, std::size_t count) {
  std::set<std::int32_t> read;
  std::set<int> diagonals;
  for (const Step& step : plan.schedule->steps[0]) {
    if (read.size() == count || !read.insert(step.block).second) continue;
    const std::int32_t root = plan.schedule->blocks[static_cast<std::size_t>(step.block)].in_region;
    diagonals.insert((root % 8 + root / 8) % 4);
  }
  return diagonals;
}

bool any_odd(const std::set<int>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(), [](int number) { return number % 2 != 0; });
}

TEST(Plans, LargeToriOfFewLanesGoByDiagonals) {
  PlanRequest request = test::machine(CollectiveOp::reduce_scatter, kTorus2d, 8, 8);
  request.bytes = 64 << 20;
  request.slot_bytes = 32 << 10;
  request.lanes = 16;  // a quarter of the ranks' regions lies on as many PEs
  EXPECT_EQ(first_diagonals(plan_grid("torus_2d", request), 8), (std::set<int>{0}));
  EXPECT_EQ(plan_grid("torus_2d", request).schedule->blocks.size(), 64U * 2 * 8);
  request.lanes = 32;  // half of them
  EXPECT_EQ(first_diagonals(plan_grid("torus_2d", request), 8), (std::set<int>{0, 2}));
  request.lanes = 33;
  EXPECT_TRUE(any_odd(first_diagonals(plan_grid("torus_2d", request), 16)));
  request.lanes = 16;
  request.bytes = 4 << 20;  // pieces of 1 KiB
  EXPECT_TRUE(any_odd(first_diagonals(plan_grid("torus_2d", request), 16)));
  // An all_gather's pieces are twice as long then.
  request.op = CollectiveOp::all_gather;
  request.bytes = 64 << 20;
  EXPECT_EQ(plan_grid("torus_2d", request).schedule->blocks.size(), 64U * 2 * 4);
  request.lanes = 33;
  request.bytes = std::int64_t{64} * 33 * 2 * 32768;
  EXPECT_EQ(plan_grid("torus_2d", request).schedule->blocks.size(), 64U * 2 * 8);
}

TEST(Plans, ListsByDiagonalsAreSoundWithAnySlots) {
  std::vector<std::shared_ptr<const Algorithm>> keep{load_module("kernbench.ccl.torus_2d")};
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    for (std::int32_t slots = 1; slots <= 8; ++slots) {
      PlanRequest request = test::machine(op, kTorus2d, 8, 8);
      request.bytes = 16 << 20;
      request.slot_bytes = 32 << 10;
      request.lanes = 16;
      request.slots = slots;
      expect_sound(*keep.front(), request);
    }
  }
}

TEST(Plans, PaceChangesNoEstimate) {
  // Lanes together hide the latency that lists of their own would count on.
  EXPECT_NEAR(connected(kFullyConnected, 64 << 20).seconds, 65.5e-6, 3e-6);
}

}  // namespace
}  // namespace kernbench::ccl
