#include "sc_main/explore/report/sensitivity.h"

#include <gtest/gtest.h>

#include <functional>

namespace kernbench::report {
namespace {

using Formula = std::function<double(double, double)>;

/// Every pair of the values of two axes; the metric is a formula of both.
Study grid(const std::vector<double>& a, const std::vector<double>& b, const Formula& formula) {
  Study study;
  study.axes = {{"a", "", Column::Scale::linear, {}}, {"b", "", Column::Scale::linear, {}}};
  study.metrics = {{{"m", "", Column::Scale::linear, {}}, search::Goal::minimize, true}};
  for (const double x : a) {
    for (const double y : b) {
      Point point;
      point.status = "ok";
      point.axes = {x, y};
      point.labels = {"", ""};
      point.values = {formula(x, y)};
      study.points.push_back(point);
    }
  }
  return study;
}

TEST(Sensitivity, SharesOfASumAddUpToOne) {
  // Variance of {0, 2} is 1, of {0, 4} is 4.
  const Sensitivity s = sensitivity(grid({0, 2}, {0, 4}, [](double x, double y) { return x + y; }), 0);
  EXPECT_TRUE(s.balanced);
  ASSERT_EQ(s.effects.size(), 2U);
  EXPECT_NEAR(s.effects[0].share, 0.2, 1e-12);
  EXPECT_NEAR(s.effects[1].share, 0.8, 1e-12);
}

TEST(Sensitivity, LeavesInteractionToNoAxis) {
  const Sensitivity s = sensitivity(grid({-1, 1}, {-1, 1}, [](double x, double y) { return x * y; }), 0);
  EXPECT_NEAR(s.effects[0].share, 0, 1e-12);
  EXPECT_NEAR(s.effects[1].share, 0, 1e-12);
}

TEST(Sensitivity, OfAConstantIsNone) {
  const Sensitivity s = sensitivity(grid({1, 2}, {1, 2}, [](double, double) { return 5; }), 0);
  EXPECT_EQ(s.effects[0].share, 0);
}

TEST(Sensitivity, LevelsHoldMeanAndExtremes) {
  const Sensitivity s = sensitivity(grid({1, 2}, {10, 30}, [](double x, double y) { return x * y; }), 0);
  const Level& second = s.effects[0].levels.at(1);
  EXPECT_EQ(second.label, "2");
  EXPECT_EQ(second.points, 2U);
  EXPECT_DOUBLE_EQ(second.mean, 40);
  EXPECT_DOUBLE_EQ(second.lowest, 20);
  EXPECT_DOUBLE_EQ(second.highest, 60);
}

TEST(Sensitivity, OfARatioIsThatOfItsLogarithm) {
  // log m = log a + log b, with spans of 2 and 3 decades: shares 4 : 9.
  Study study = grid({1, 100}, {1, 1000}, [](double x, double y) { return x * y; });
  choose_scales(study);
  EXPECT_EQ(study.metrics[0].column.scale, Column::Scale::log);
  const Sensitivity s = sensitivity(study, 0);
  EXPECT_TRUE(s.log);
  EXPECT_NEAR(s.effects[0].share, 4.0 / 13, 1e-12);
  EXPECT_NEAR(s.effects[0].levels[1].mean, 100 * std::sqrt(1000), 1e-6);
}

TEST(Sensitivity, SkipsPointsThatFailed) {
  Study study = grid({0, 2}, {0, 4}, [](double x, double y) { return x + y; });
  study.points.back().status = "failed";
  study.points.back().values = {kNoFigure};
  const Sensitivity s = sensitivity(study, 0);
  EXPECT_FALSE(s.balanced);
  EXPECT_EQ(s.effects[0].levels[1].points, 1U);
  study.points.back().values = {1000};  // what it had measured when it failed counts for nothing
  EXPECT_EQ(sensitivity(study, 0).effects[0].levels[1].points, 1U);
  EXPECT_DOUBLE_EQ(sensitivity(study, 0).effects[0].levels[1].highest, 2);
}

TEST(Sensitivity, CutsManyValuesIntoRangesOfEquallyManyPoints) {
  std::vector<double> many;
  for (int i = 0; i < 80; ++i) many.push_back(i);
  const Sensitivity s = sensitivity(grid(many, {0}, [](double x, double) { return x; }), 0);
  ASSERT_EQ(s.effects[0].levels.size(), 8U);
  for (const Level& level : s.effects[0].levels) EXPECT_EQ(level.points, 10U);
  EXPECT_EQ(s.effects[0].levels[0].label, "0 to 9");
  EXPECT_DOUBLE_EQ(s.effects[0].levels[7].position, 74.5);
}

TEST(Sensitivity, DoesNotTellFromAPointPerLevel) {
  Study study = grid({1, 2, 3}, {1, 2, 3}, [](double x, double y) { return x + y; });
  study.points = {study.points[0], study.points[4], study.points[8]};  // the diagonal
  EXPECT_TRUE(std::isnan(sensitivity(study, 0).effects[0].share));
}

}  // namespace
}  // namespace kernbench::report
