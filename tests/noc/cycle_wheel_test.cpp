#include "models/noc/cycle_wheel.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace kernbench {
namespace {

using Wheel = CycleWheel<int>;
using Entries = std::vector<std::pair<int, Cycle>>;

Entries run(Wheel& wheel, Cycle now) {
  Entries entries;
  wheel.run(
      now, [&](int entry, Cycle at) { entries.emplace_back(entry, at); }, [](int) {}, [](int) {});
  return entries;
}

TEST(CycleWheel, EntriesOfACycleComeInTheOrderInWhichTheyWereAskedFor) {
  Wheel wheel;
  wheel.push(1, 7, 0);
  wheel.push(2, 5, 0);
  wheel.push(3, 7, 0);
  EXPECT_EQ(wheel.next(0), 5U);
  EXPECT_EQ(run(wheel, 5), (Entries{{2, 5}}));
  EXPECT_EQ(wheel.next(5), 7U);
  EXPECT_EQ(run(wheel, 7), (Entries{{1, 7}, {3, 7}}));
  EXPECT_EQ(wheel.next(7), kNoCycle);
}

TEST(CycleWheel, WhatIsAddedForThePresentCycleRunsInIt) {
  Wheel wheel;
  wheel.push(3, 9, 9);
  std::vector<int> entries;
  wheel.run(
      9,
      [&](int entry, Cycle) {
        entries.push_back(entry);
        if (entry != 0) wheel.push(entry - 1, 9, 9);
      },
      [](int) {}, [](int) {});
  EXPECT_EQ(entries, (std::vector<int>{3, 2, 1, 0}));
  EXPECT_EQ(wheel.next(9), kNoCycle);
}

TEST(CycleWheel, FindsTheNextCycleAcrossTheEndOfTheRing) {
  for (const Cycle now : {Cycle{0}, Cycle{63}, Cycle{64}, Cycle{255}, Cycle{1000}}) {
    for (const Cycle ahead : {Cycle{0}, Cycle{1}, Cycle{64}, Cycle{200}, Cycle{255}}) {
      Wheel wheel;
      wheel.push(1, now + ahead, now);
      EXPECT_EQ(wheel.next(now), now + ahead) << now;
      EXPECT_EQ(run(wheel, now + ahead), (Entries{{1, now + ahead}})) << now;
    }
  }
}

TEST(CycleWheel, EntriesBeyondItsReachComeBackEarlyWithTheirCycle) {
  Wheel wheel;
  wheel.push(1, 1000, 10);
  EXPECT_EQ(wheel.next(10), 10 + Wheel::kSlots - 1);
  EXPECT_EQ(run(wheel, 10 + Wheel::kSlots - 1), (Entries{{1, 1000}}));
}

TEST(CycleWheel, TellsOfTheEntriesAheadOfTheirTurn) {
  Wheel wheel;
  for (int entry = 1; entry <= 4; ++entry) wheel.push(entry, 2, 0);
  std::vector<int> soon, next;
  wheel.begin(2, [&](int entry) { soon.push_back(entry); });
  EXPECT_EQ(soon, (std::vector<int>{1, 2}));
  wheel.run(
      2, [](int, Cycle) {}, [&](int entry) { soon.push_back(entry); }, [&](int entry) { next.push_back(entry); });
  EXPECT_EQ(soon, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(next, (std::vector<int>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace kernbench
