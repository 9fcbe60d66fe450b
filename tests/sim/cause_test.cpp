#include "tlm/observe/cause.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace kernbench {
namespace {

using Segment = CauseLog::Segment;

void expect_segment(const Segment& got, Ps begin, Ps end, Spent spent, std::uint32_t place) {
  EXPECT_EQ(got.begin, begin);
  EXPECT_EQ(got.end, end);
  EXPECT_EQ(got.spent, spent);
  EXPECT_EQ(got.place, place);
}

TEST(CauseLog, AChainIsToldFromAnyInstantOnAndAddsUp) {
  CauseLog log;
  const Cause cause = log.step(Spent::memory, 3, 250, log.step(Spent::wire, 2, 100, log.step(Spent::host, 1, 40, {})));
  const auto all = log.chain(cause);
  ASSERT_EQ(all.size(), 3U);
  expect_segment(all[0], 0, 40, Spent::host, 1);
  expect_segment(all[1], 40, 100, Spent::wire, 2);
  expect_segment(all[2], 100, 250, Spent::memory, 3);
  const auto cut = log.chain(cause, 70);  // within the second
  ASSERT_EQ(cut.size(), 2U);
  expect_segment(cut[0], 70, 100, Spent::wire, 2);
  expect_segment(cut[1], 100, 250, Spent::memory, 3);
  EXPECT_EQ(log.chain(cause, 100).size(), 1U);
  EXPECT_TRUE(log.chain(cause, 250).empty());
}

// A packet goes on while its tail is still on the wire.
TEST(CauseLog, AStepOfNoLengthIsNoneAndWhatLiesBeyondItsEndIsCut) {
  CauseLog log;
  const Cause host = log.step(Spent::host, 1, 40, {}), wire = log.step(Spent::wire, 2, 100, host);
  EXPECT_EQ(log.chain(log.step(Spent::memory, 3, 100, wire)).size(), 2U) << "it ends where the wire does";
  const auto earlier = log.chain(log.step(Spent::memory, 3, 60, wire));  // the wire ends later
  ASSERT_EQ(earlier.size(), 2U);
  expect_segment(earlier[0], 0, 40, Spent::host, 1);
  expect_segment(earlier[1], 40, 60, Spent::wire, 2);
  const auto before = log.chain(log.step(Spent::memory, 3, 30, wire));
  ASSERT_EQ(before.size(), 1U);
  expect_segment(before[0], 0, 30, Spent::host, 1);
}

TEST(CauseLog, TimeInANetworkIsWaitingFirstAndNotMoreThanThereIs) {
  CauseLog log;
  const Cause begun = log.step(Spent::host, 1, 40, {});
  const auto some = log.chain(log.travelled(begun, 25, 7, 100), 40);
  ASSERT_EQ(some.size(), 2U);
  expect_segment(some[0], 40, 65, Spent::noc_wait, 7);
  expect_segment(some[1], 65, 100, Spent::noc, 7);
  const auto all = log.chain(log.travelled(begun, 500, 7, 100), 40);
  ASSERT_EQ(all.size(), 1U);
  expect_segment(all[0], 40, 100, Spent::noc_wait, 7);
}

// A sender waits from 40 on; what ended that has stood behind others on a wire and in a network meanwhile.
TEST(CauseLog, AWaitIsForThePlaceButWhereWhatEndedItQueuedOnItsWay) {
  CauseLog log;
  const Cause begun = log.step(Spent::host, 1, 40, {});
  const Cause on_wire = log.step(Spent::wire_wait, 5, 60, log.step(Spent::math, 4, 30, {}));
  const Cause ended = log.step(Spent::wire_latency, 5, 120, log.travelled(on_wire, 20, 6, 90));
  const auto told = log.chain(log.waited_for(ended, Spent::slots, 9, 130, begun), 40);
  ASSERT_EQ(told.size(), 3U);
  expect_segment(told[0], 40, 60, Spent::wire_wait, 5);
  expect_segment(told[1], 60, 80, Spent::noc_wait, 6);
  expect_segment(told[2], 80, 130, Spent::slots, 9);
  const auto early = log.chain(log.waited_for(ended, Spent::slots, 9, 50, begun), 40);
  ASSERT_EQ(early.size(), 1U);
  expect_segment(early[0], 40, 50, Spent::wire_wait, 5);
}

TEST(CauseLog, ALaunchHasWhatItTookSinceItsSubmissionAndSinceItsStart) {
  CauseLog log;
  const Cause cause = log.step(Spent::memory, 3, 250, log.step(Spent::wire, 2, 100, log.step(Spent::host, 1, 40, {})));
  log.heard(cause, "kernel", 5, 70, 80);
  ASSERT_EQ(log.launches().size(), 1U);
  const CauseLog::Launch& launch = log.launches().front();
  EXPECT_EQ(launch.kernel, "kernel");
  EXPECT_EQ(launch.sip, 5);
  EXPECT_EQ(launch.completed - launch.submitted, 180U);
  ASSERT_EQ(launch.largest.size(), 2U);
  expect_segment(launch.largest[0], 0, 150, Spent::memory, 3);
  expect_segment(launch.largest[1], 0, 30, Spent::wire, 2);
  ASSERT_EQ(launch.running.size(), 2U);
  expect_segment(launch.running[0], 0, 150, Spent::memory, 3);
  expect_segment(launch.running[1], 0, 20, Spent::wire, 2);
}

TEST(CauseLog, OfTheSmallestPartsOnlyThePlaceIsLost) {
  CauseLog log;
  Cause cause;
  Ps end = 0;
  for (std::uint32_t place = 1; place <= 40; ++place)
    cause = log.step(place % 2 == 0 ? Spent::wire : Spent::noc, place, end += place, cause);
  const auto parts = CauseLog::largest(log.chain(cause));
  ASSERT_EQ(parts.size(), CauseLog::kMostParts + 2) << "a rest of each kind";
  Ps sum = 0;
  for (const Segment& part : parts) sum += part.end;
  EXPECT_EQ(sum, end);
  // Of places 1 to 16: they are more than any that is named.
  expect_segment(parts[0], 0, 2 + 4 + 6 + 8 + 10 + 12 + 14 + 16, Spent::wire, 0);
  expect_segment(parts[1], 0, 1 + 3 + 5 + 7 + 9 + 11 + 13 + 15, Spent::noc, 0);
  expect_segment(parts[2], 0, 40, Spent::wire, 40);
  expect_segment(parts.back(), 0, 17, Spent::noc, 17);
}

TEST(CauseLog, KeepsOnlyWhatSomethingComesFrom) {
  CauseLog log;
  {
    Cause cause;
    for (Ps time = 10; time <= 1000; time += 10) cause = log.step(Spent::gemm, 0, time, cause);
    EXPECT_EQ(log.most_steps(), 100U);
    EXPECT_EQ(log.chain(cause).size(), 100U);
  }
  Cause other;
  for (Ps time = 10; time <= 1000; time += 10) other = log.step(Spent::math, 0, time, other);
  EXPECT_EQ(log.most_steps(), 100U) << "the places of the first chain are taken again";
  Cause branch = log.step(Spent::tcm, 0, 1500, other);
  other = Cause();
  const auto chain = log.chain(branch, 995);
  ASSERT_EQ(chain.size(), 2U);
  EXPECT_EQ(chain[0].begin, 995U);
  EXPECT_EQ(chain[1].begin, 1000U);
  EXPECT_EQ(chain[1].end, 1500U);
}

/// Chains that come and go: what is under way is right, and no more is kept than was under way at once.
TEST(CauseLog, KeepsNoStepThatNothingUnderWayComesFrom) {
  CauseLog log;
  std::mt19937 random(1);
  std::vector<Cause> under_way(8);
  std::size_t most = 0;  // steps of all that is under way, each chain's for itself
  for (Ps now = 1; now <= 20'000; ++now) {
    Cause& cause = under_way[random() % under_way.size()];
    cause = random() % 4 == 0 ? under_way[random() % under_way.size()] : Cause();
    for (unsigned i = 0; i < 3; ++i) cause = log.step(Spent::wire, 1 + i, CauseLog::end_of(cause) + 1 + i, cause);
    Ps at = 0;
    for (const Segment& segment : log.chain(cause)) {
      EXPECT_EQ(segment.begin, at);
      EXPECT_EQ(segment.end - segment.begin, segment.place);
      at = segment.end;
    }
    EXPECT_EQ(at, CauseLog::end_of(cause));
    std::size_t steps = 0;
    for (const Cause& one : under_way) steps += log.chain(one).size();
    most = std::max(most, steps);
  }
  EXPECT_LE(log.most_steps(), most);
  EXPECT_LT(most, 2000U) << "of 60,000 that were made";
}

}  // namespace
}  // namespace kernbench
