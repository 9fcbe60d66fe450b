#include "runtime/replay_kind.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernbench::testing {
namespace {

std::vector<ReplayTimes> took(Ps time) { return {{0, time, time}}; }

TEST(ReplayKind, TakesTheMeanAndKnowsByHowMuchItIsOff) {
  ReplayKind equal("equal", 1);
  equal.add(took(1'000));
  for (unsigned i = 1; i < ReplayKind::kLeast; ++i) {
    EXPECT_FALSE(equal.known()) << "few occurrences say nothing of how they differ";
    equal.add(took(1'000));
  }
  EXPECT_TRUE(equal.known());
  EXPECT_EQ(equal.mean().front().completed, 1'000u);
  equal.repeat(100);
  EXPECT_EQ(equal.error(), 0);

  ReplayKind spread("spread", 2);
  for (const Ps time : {5'000, 900, 1'100, 900, 1'100}) spread.add(took(time));
  EXPECT_EQ(spread.mean().front().completed, 1'000u) << "the first, which finds rows closed, is not in it";
  spread.repeat(100);
  // Deviation of the four: 100 sqrt(4/3); of their mean half of that; the hundred all take it.
  EXPECT_NEAR(spread.error(), 100 * 100 * std::sqrt(4.0 / 3) / 2, 1e-6);
}

/// Of a length of k + f intervals every f-th occurrence meets one refresh more: a variance of f (1 - f).
TEST(ReplayKind, IsOffByWhatRefreshesMayMakeOfItThoughItsOccurrencesWereEqual) {
  const ReplayRefresh refresh{4'000'000, 300'000};
  ReplayKind half("half", 1, refresh), whole("whole", 2, refresh);
  for (int i = 0; i < 5; ++i) {
    half.add({{0, 0, 6'000'000}});
    whole.add({{0, 0, 8'000'000}});
  }
  half.repeat(10);
  whole.repeat(10);
  // Four that were equal, and what refreshes may make, which says as much as four.
  EXPECT_DOUBLE_EQ(half.error(), 10 * 0.5 * 300'000 * std::sqrt(4.0 / 7) / std::sqrt(4.0));
  EXPECT_DOUBLE_EQ(whole.error(), 0);
  for (int i = 5; i < 101; ++i) half.add({{0, 0, 6'000'000}});
  EXPECT_DOUBLE_EQ(half.error(), 10 * 0.5 * 300'000 * std::sqrt(4.0 / 103) / std::sqrt(100.0)) << "many say it";
}

TEST(ReplayKind, ScattersByWhatItsOccurrencesDifferBeyondRefreshes) {
  ReplayKind once("once", 1), spread("spread", 2), half("half", 3, {4'000'000, 300'000});
  once.add(took(1'000));
  EXPECT_EQ(once.scatter().share(), 0);
  for (const Ps time : {5'000, 900, 1'100, 900, 1'100}) spread.add(took(time));
  EXPECT_NEAR(spread.scatter().share(), 0.1 * std::sqrt(4.0 / 3), 1e-12);
  // Refreshes make a variance of (150 ns)^2; what there is beyond that scatters.
  for (const Ps time : {9'000'000, 5'900'000, 6'100'000}) half.add(took(time));
  EXPECT_EQ(half.scatter().share(), 0);
  for (const Ps time : {5'700'000, 6'300'000}) half.add(took(time));
  const double beyond = (2 * 0.1 * 0.1 + 2 * 0.3 * 0.3) / 3 - 0.15 * 0.15;
  EXPECT_NEAR(half.scatter().share(), std::sqrt(beyond) / 6, 1e-9);
  ReplayScatter both = spread.scatter();
  both += half.scatter();
  EXPECT_NEAR(both.share(), half.scatter().share(), 1e-6) << "long work says most";
  both += -half.scatter();
  EXPECT_NEAR(both.share(), spread.scatter().share(), 1e-3);
}

/// Of two the mean of the larger is 1 / sqrt(pi), of three 3 / (2 sqrt(pi)).
TEST(ReplayKind, TheLastOfManyIsSoManyDeviationsBehindTheirMean) {
  EXPECT_EQ(last_of(1), 0);
  EXPECT_NEAR(last_of(2), 1 / std::sqrt(M_PI), 1e-4);
  EXPECT_NEAR(last_of(3), 1.5 / std::sqrt(M_PI), 0.015 * last_of(3));
  EXPECT_NEAR(last_of(8), 1.4236, 1e-9);
  EXPECT_GT(last_of(100'000), last_of(4096));
}

TEST(ReplayKind, IsRefusedWhenASampleLiesBeyondTheToleranceAndItsSpread) {
  ReplayKind equal("equal", 1);
  for (int i = 0; i < 4; ++i) equal.add(took(1'000'000));
  equal.check(1'004'000);
  EXPECT_TRUE(equal.known()) << "0.4 %";
  equal.check(1'006'000);
  EXPECT_FALSE(equal.known()) << "0.6 %";

  ReplayKind spread("spread", 2);
  for (unsigned i = 0; i < 33; ++i) spread.add(took(i % 2 == 0 ? 900'000 : 1'100'000));
  spread.check(1'150'000);
  EXPECT_TRUE(spread.known()) << "as far as others are from each other";
  EXPECT_NEAR(spread.difference(), 0.15, 1e-12);
  for (int i = 0; i < 40; ++i) spread.check(1'150'000);
  EXPECT_TRUE(spread.refused()) << "all of them on one side";

  // Three occurrences say little of how far the next one may lie: 10 % is no reason here, 90 % is.
  ReplayKind few("few", 3);
  for (const Ps time : {9'000'000, 1'000'000, 1'001'000, 1'000'500}) few.add(took(time));
  few.check(1'100'000);
  EXPECT_FALSE(few.refused());
  few.check(1'900'000);
  EXPECT_TRUE(few.refused());
}

/// Of whole refreshes, as here of two, another one is met as soon as anything comes a little later.
TEST(ReplayKind, IsNotRefusedForOneRefreshMore) {
  const ReplayRefresh refresh{4'000'000, 300'000};
  for (const auto& [sample, refused] : {std::pair(8'300'000, false), {7'700'000, false}, {8'700'000, true}}) {
    ReplayKind whole("whole", 1, refresh);
    for (int i = 0; i < 5; ++i) whole.add({{0, 0, 8'000'000}});
    whole.check(sample);
    EXPECT_EQ(whole.refused(), refused) << sample;
  }
}

TEST(ReplayKind, OfShortWorkOccurrencesCountAfreshFromTheSecondOn) {
  ReplayKind brief("brief", 1), lasting("lasting", 1);
  EXPECT_FALSE(brief.add(took(99)));
  EXPECT_TRUE(brief.add(took(10)));
  EXPECT_FALSE(brief.add(took(10)));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(lasting.add(took(10'000'000)));
}

}  // namespace
}  // namespace kernbench::testing
