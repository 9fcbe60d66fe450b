#include <gtest/gtest.h>

#include "ccl/contract/error.h"
#include "ccl/schedule/build.h"
#include "ccl/schedule/check.h"
#include "tests/ccl/schedule_support.h"

namespace kernbench::ccl {
namespace {

/// Two nodes that exchange their vectors and add: the smallest schedule with all there is to break.
Schedule pair() {
  Schedule s;
  s.algorithm = "pair";
  s.nodes = 2;
  s.length = 2;
  s.blocks = {{kEveryNode, kEveryNode, 0, 0, 0, 1}};
  s.links = {{0, 1, 1, 0, 1}};
  for (std::int32_t node = 0; node < 2; ++node) {
    s.steps.push_back({{0, 1 - node, 0, StepKind::send, false}, {1, 1 - node, 0, StepKind::receive_reduce, true}});
  }
  return s;
}

void expect_refused(const Schedule& schedule, const std::string& why, int slots = 0) {
  try {
    check(schedule, slots);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "schedule 'pair' (" + std::string(to_string(schedule.op)) + ", 2 nodes): " + why);
  }
}

TEST(ScheduleCheck, AcceptsWhatIsRight) { EXPECT_NO_THROW(check(pair())); }

TEST(ScheduleCheck, RefusesAListThatLacksAContribution) {
  Schedule s = pair();
  s.steps[0].pop_back();
  s.steps[1].erase(s.steps[1].begin());
  expect_refused(s, "block 0 on node 0 lacks node 1's contribution");
}

TEST(ScheduleCheck, RefusesAContributionAddedTwice) {
  Schedule s = pair();
  s.links[0].slots = 2;
  s.steps[0].insert(s.steps[0].begin(), s.steps[0][0]);
  s.steps[1].push_back({2, 0, 0, StepKind::receive_reduce, true});
  expect_refused(s, "step 2 of node 1 (receive_reduce of block 0, node 0) adds a contribution twice");
}

TEST(ScheduleCheck, RefusesMessagesThatNobodyReceives) {
  Schedule s = pair();
  s.links[0].slots = 2;
  s.steps[1].pop_back();
  expect_refused(s, "2 messages from node 0 to node 1 are never received");  // one in each of two rounds
}

TEST(ScheduleCheck, RefusesListsThatWaitForEachOther) {
  Schedule s = pair();
  for (auto& steps : s.steps) {
    std::swap(steps[0], steps[1]);
    steps[0].time = 0;
  }
  expect_refused(s,
                 "deadlock: step 0 of node 0 (receive_reduce of block 0, node 1) waits in round 0, step 0 of node 1 "
                 "(receive_reduce of block 0, node 0) waits in round 0");
}

TEST(ScheduleCheck, ADeadlockIsToldFromTheNodeThatIsLeastFar) {
  Schedule s = pair();  // as a star: 1 gives its part to 0, which does not send the sum back
  s.steps[0] = {{1, 1, 0, StepKind::receive_reduce, true}};
  s.steps[1] = {{0, 0, 0, StepKind::send, false}, {2, 0, 0, StepKind::receive_copy, false}};
  expect_refused(s,
                 "deadlock: step 1 of node 1 (receive_copy of block 0, node 0) waits in round 0, step 0 of node 0 "
                 "(receive_reduce of block 0, node 1) waits in round 1");
}

TEST(ScheduleCheck, RefusesLinksThatCannotBe) {
  const auto refused = [](std::int32_t a, std::int32_t b, std::int32_t slots, const std::string& what) {
    Schedule s = pair();
    s.links[0].a = a;
    s.links[0].b = b;
    s.links[0].slots = slots;
    expect_refused(s, what);
  };
  refused(0, 1, 0, "the link between nodes 0 and 1 has 0 slots; give at least 1");
  refused(0, 2, 1, "a link between nodes 0 and 2; give two of its nodes, the lower one first");
  refused(1, 0, 1, "a link between nodes 1 and 0; give two of its nodes, the lower one first");
  refused(-1, 1, 1, "a link between nodes -1 and 1; give two of its nodes, the lower one first");
}

TEST(ScheduleCheck, RefusesAListOutOfOrder) {
  Schedule s = pair();
  std::swap(s.steps[0][0], s.steps[0][1]);
  expect_refused(s, "step 1 of node 0 (send of block 0, node 1) is out of order");
}

TEST(ScheduleCheck, RefusesAnUnlistedLink) {
  Schedule s = pair();
  s.links.clear();
  expect_refused(s, "step 0 of node 0 (send of block 0, node 1) uses a link that is not listed");
}

TEST(ScheduleCheck, RefusesMessagesOfAnotherLength) {
  Schedule s = pair();
  s.units = 2;
  s.blocks[0].end = 2;
  s.blocks.push_back({kEveryNode, kNobody, 0, kNoRegion, 0, 1});
  s.steps[0][0].block = 1;
  expect_refused(s, "step 1 of node 1 (receive_reduce of block 0, node 0) expects 2 units and gets 1");
}

TEST(ScheduleCheck, RefusesToAddOtherData) {
  Schedule s = pair();
  s.units = 2;
  s.blocks.push_back({kEveryNode, kEveryNode, 0, 0, 1, 2});
  s.steps[0][0].block = 1;
  expect_refused(
      s,
      "step 1 of node 1 (receive_reduce of block 0, node 0) adds other data: units 1 to 2 of region 0 to units "
      "0 to 1 of region 0");
}

TEST(ScheduleCheck, RefusesOutputThatIsMissing) {
  Schedule s = pair();
  s.units = 2;
  expect_refused(s, "region 0 of the output of node 0: units from 1 are missing");
}

TEST(ScheduleCheck, RefusesOutputStoredTwice) {
  Schedule s = pair();
  s.blocks.push_back(s.blocks[0]);
  expect_refused(s, "region 0 of the output of node 0: units from 0 are stored twice");
}

TEST(ScheduleCheck, RefusesAValueThatIsNotThere) {
  Schedule s = pair();
  s.blocks[0].contributor = 1;
  expect_refused(s, "step 0 of node 0 (send of block 0, node 1) sends a block that it does not have");
}

TEST(ScheduleCheck, RefusesAWrongCompletion) {
  Schedule s = pair();
  s.steps[1][1].completes = false;
  expect_refused(
      s, "step 1 of node 1 (receive_reduce of block 0, node 0) has 2 of 2 contributions and is not marked as complete");
}

TEST(ScheduleCheck, RefusesFewerSlotsThanTheAssumedLatencyNeeds) {
  for (int lambda = 1; lambda <= 5; ++lambda) {
    const Lattice ring{8, 1, true};
    for (const Schedule& schedule : {packing_schedule(ring, lambda, 2), packing_schedule({4, 4}, lambda, 2)}) {
      EXPECT_LE(schedule.slots(), slots_for(lambda, 1));
      EXPECT_NO_THROW(check(schedule, schedule.slots()));
      EXPECT_THROW(check(schedule, schedule.slots() - 1), Error) << lambda;
    }
    // The busiest link of a long list is never idle: it has all the messages in flight that the latency allows.
    const Schedule list = comb_gather_schedule({CollectiveOp::all_gather}, ring, 8, lambda);
    EXPECT_EQ(list.slots(), slots_for(lambda, 1));
    EXPECT_NO_THROW(check(list, list.slots()));
    EXPECT_THROW(check(list, list.slots() - 1), Error);
  }
}

/// Two nodes that exchange what they have for both of them, cut out of a bundle.
Schedule pair_of_bundles() {
  Schedule s;
  s.algorithm = "pair";
  s.op = CollectiveOp::reduce_scatter;
  s.nodes = 2;
  s.length = 2;
  s.bundles = true;
  s.blocks = {{kEveryNode, kNobody, 0, kNoRegion, 0, 1, 2}, {kNobody, 0, 0, 0, 0, 1}, {kNobody, 1, 1, 0, 0, 1}};
  s.links = {{0, 1, 1, 0, 1}};
  for (std::int32_t node = 0; node < 2; ++node) {
    s.steps.push_back({{0, 0, 1, StepKind::copy, false},
                       {0, 0, 2, StepKind::copy, false},
                       {0, 1 - node, 2 - node, StepKind::send, false},
                       {1, 1 - node, 1 + node, StepKind::receive_reduce, true}});
  }
  return s;
}

TEST(ScheduleCheck, AcceptsBundles) { EXPECT_NO_THROW(check(pair_of_bundles())); }

TEST(ScheduleCheck, RefusesBundlesThatAreStoredOrOfPartsOfRegions) {
  Schedule s = pair_of_bundles();
  s.blocks[0].holder = 0;
  s.blocks[0].out_region = 0;
  expect_refused(s, "block 0 is 2 regions, which is for bundles that nobody stores");
  s = pair_of_bundles();
  s.units = 2;
  expect_refused(s, "block 0 is 2 regions, which is for bundles that nobody stores");
  s = pair_of_bundles();
  s.bundles = false;
  expect_refused(s, "block 0 is 2 regions, which is for bundles that nobody stores");
}

TEST(ScheduleCheck, RefusesABundleBeyondTheRegions) {
  Schedule s = pair_of_bundles();
  s.blocks[0].in_region = 1;
  expect_refused(s, "block 0 lies in an unknown region");
}

TEST(ScheduleCheck, RefusesToCutOutWhatIsNotThere) {
  Schedule s = pair_of_bundles();
  s.steps[0][0].peer = 2;
  s.steps[0][0].time = s.steps[0][1].time = 0;
  std::swap(s.steps[0][0], s.steps[0][1]);
  expect_refused(s, "step 1 of node 0 (copy of block 1, block 2) is no part of the other block");
}

TEST(ScheduleCheck, RefusesAMessageOfAnotherBundle) {
  Schedule s = pair_of_bundles();
  s.steps[0][2].block = 0;
  expect_refused(s, "step 3 of node 1 (receive_reduce of block 2, node 0) gets 2 regions");
}

TEST(ScheduleCheck, NamesTheSlotsThatAreMissing) {
  Schedule s = pair();
  s.links[0].slots = 3;
  s.links[0].lambda = 2;
  expect_refused(
      s,
      "the queues between nodes 0 and 1 need 3 slots and have 2: with fewer, lists that count on a latency of 2 "
      "ticks may deadlock; raise pe.ipcq.slots",
      2);
}

}  // namespace
}  // namespace kernbench::ccl
