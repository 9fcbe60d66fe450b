#include "sc_main/explore/search/pareto.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernbench::search {
namespace {

TEST(Dominates, NeedsOneBetterAndNoneWorse) {
  EXPECT_TRUE(dominates({1, 2}, {1, 3}));
  EXPECT_FALSE(dominates({1, 2}, {1, 2}));
  EXPECT_FALSE(dominates({1, 2}, {0, 9}));
}

TEST(ParetoFront, KeepsWhatNothingDominates) {
  EXPECT_EQ(pareto_front({{3, 3}, {1, 4}, {2, 2}, {4, 1}, {4, 4}}), (std::vector<std::size_t>{1, 2, 3}));
}

TEST(ParetoFront, KeepsTheFirstOfEqualPoints) {
  EXPECT_EQ(pareto_front({{2, 2}, {1, 3}, {2, 2}}), (std::vector<std::size_t>{0, 1}));
}

TEST(ParetoFront, LeavesPointsWithoutFiguresOut) {
  EXPECT_EQ(pareto_front({{NAN, 0}, {1, 1}}), (std::vector<std::size_t>{1}));
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(ParetoFront, TakesAnyNumberOfObjectives) {
  EXPECT_EQ(pareto_front({{5}, {3}, {4}}), (std::vector<std::size_t>{1}));
  EXPECT_EQ(pareto_front({{1, 2, 3}, {3, 2, 1}, {3, 3, 3}, {2, 2, 2}}), (std::vector<std::size_t>{0, 1, 3}));
}

TEST(ReferencePoint, LiesATenthBeyondTheWorstOfTheFront) {
  EXPECT_EQ(nadir({{1, 20}, {10, 5}}), (Costs{10, 20}));
  const Costs reference = reference_point({10, 20});
  EXPECT_DOUBLE_EQ(reference[0], 11);
  EXPECT_DOUBLE_EQ(reference[1], 22);
}

TEST(ReferencePoint, OfAFigureToBeLargeLiesBelowIt) {
  // A bandwidth of 50 is a cost of -50: the reference is a bandwidth of 45.
  EXPECT_DOUBLE_EQ(reference_point({cost(50, Goal::maximize)})[0], -45);
}

TEST(Hypervolume, IsTheAreaUpToTheReference) {
  // Steps at x = 1, 2 and 3 of heights 4 - 3, 4 - 2 and 4 - 1: 1 + 2 + 3.
  EXPECT_DOUBLE_EQ(hypervolume({{1, 3}, {2, 2}, {3, 1}}, {4, 4}), 6);
}

TEST(Hypervolume, CountsNothingBeyondTheReference) {
  EXPECT_DOUBLE_EQ(hypervolume({{1, 5}}, {4, 4}), 0);
  EXPECT_DOUBLE_EQ(hypervolume({{1, 5}, {3, 3}}, {4, 4}), 1);
  EXPECT_DOUBLE_EQ(hypervolume({}, {4, 4}), 0);
}

TEST(Hypervolume, OfThreeObjectivesIsAVolume) { EXPECT_DOUBLE_EQ(hypervolume({{1, 1, 1}}, {3, 4, 5}), 24); }

}  // namespace
}  // namespace kernbench::search
