// In which order a lane reads memories that all lanes need, and how far ahead of its list.
#include "ccl/data/load_windows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace kernbench::ccl {
namespace {

TEST(MemoryTurns, LanesBeginAtDifferentPlacesAndDoEverything) {
  for (std::size_t lane = 0; lane < 4; ++lane) {
    std::vector<int> windows(8);
    std::iota(windows.begin(), windows.end(), 0);
    begin_staggered(windows.begin(), windows.end(), {lane, 4});
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(windows[i], static_cast<int>((i + 2 * lane) % 8));
  }
  std::vector<int> none;
  begin_staggered(none.begin(), none.end(), {3, 4});
  EXPECT_TRUE(none.empty());
}

/// `count` values, value i of region i % regions, first used by entry 10 i.
std::vector<FirstUse> uses(std::uint32_t count, std::uint32_t regions) {
  std::vector<FirstUse> made;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto region = static_cast<std::int32_t>(i % regions);
    made.push_back({i, region, region, 10 * i});
  }
  return made;
}

/// Ends of the windows: where all loads so far are those of the first uses.
std::vector<std::size_t> windows_of(const LoadPlan& plan) {
  std::vector<std::size_t> ends;
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < plan.loads.size(); ++i) {
    most = std::max(most, plan.loads[i]);
    if (most == i) ends.push_back(i + 1);
  }
  return ends;
}

TEST(MemoryTurns, TheFirstWindowHasSomethingOfEveryRegionAndLaterOnesGrowByAnEighth) {
  // The last lane's first load of a window is its last value, so that no shorter part of it is complete.
  const LoadPlan plan = plan_loads(uses(40, 3), {10, 10}, {15, 16});
  EXPECT_EQ(windows_of(plan), (std::vector<std::size_t>{3, 7, 12, 18, 25, 33, 40}));
  EXPECT_EQ(windows_of(plan_loads(uses(60, 16), {16, 32}, {31, 32})), (std::vector<std::size_t>{16, 34, 55, 60}));
}

TEST(MemoryTurns, TheFirstWindowCountsMemoriesNotRegions) {
  // 64 regions, four to a memory; the 16th value is the first of the last memory.
  std::vector<FirstUse> list;
  for (std::uint32_t i = 0; i < 64; ++i) {
    const auto region = static_cast<std::int32_t>(i % 16 * 4 + i / 16);
    list.push_back({i, region, region / 4, i});
  }
  EXPECT_EQ(windows_of(plan_loads(list, {64, 64}, {15, 16})).front(), 16U);
  for (FirstUse& use : list) use.memory = use.region;
  EXPECT_EQ(windows_of(plan_loads(list, {64, 64}, {15, 16})).front(), 64U);
}

TEST(MemoryTurns, NoWindowIsLongerThanItMayBe) {
  EXPECT_EQ(windows_of(plan_loads(uses(40, 30), {10, 10}, {15, 16})), (std::vector<std::size_t>{10, 20, 30, 40}));
  EXPECT_EQ(windows_of(plan_loads(uses(40, 30), {4, 7}, {15, 16})),
            (std::vector<std::size_t>{4, 9, 15, 22, 29, 36, 40}));
}

TEST(MemoryTurns, EveryValueIsLoadedOnceAndBeforeItsUse) {
  for (std::size_t lane = 0; lane < 16; ++lane) {
    const auto list = uses(100, 7);
    const LoadPlan plan = plan_loads(list, {16, 16}, {lane, 16});
    EXPECT_EQ(std::set<std::uint32_t>(plan.loads.begin(), plan.loads.end()).size(), 100U);
    ASSERT_EQ(plan.loads.size(), 100U);
    std::size_t reached = 0, begun = 0;
    std::set<std::uint32_t> loaded;
    for (const FirstUse& use : list) {
      for (; reached < plan.from.size() && plan.from[reached].entry <= use.entry; ++reached) {
        EXPECT_GE(plan.from[reached].until, begun);
        for (; begun < plan.from[reached].until; ++begun) loaded.insert(plan.loads[begun]);
      }
      EXPECT_TRUE(loaded.count(use.value)) << "lane " << lane << ", value " << use.value;
      // At most this window and the next.
      EXPECT_LE(begun, use.value + 2 * 16U);
    }
    EXPECT_EQ(begun, 100U);
  }
}

TEST(MemoryTurns, LanesThatKeepPaceMeetAtNoRegion) {
  // 16 regions, one window of each: at every step each lane is at another one.
  for (std::size_t step = 0; step < 16; ++step) {
    std::set<std::uint32_t> at;
    for (std::size_t lane = 0; lane < 16; ++lane) at.insert(plan_loads(uses(16, 16), {16, 16}, {lane, 16}).loads[step]);
    EXPECT_EQ(at.size(), 16U);
  }
}

TEST(MemoryTurns, AListThatReadsNothingLoadsNothing) {
  const LoadPlan plan = plan_loads({}, {16, 16}, {0, 1});
  EXPECT_TRUE(plan.loads.empty());
  EXPECT_TRUE(plan.from.empty());
}

}  // namespace
}  // namespace kernbench::ccl
