#include "sc_main/explore/report/study.h"

#include <gtest/gtest.h>

#include "tests/report/sample_study.h"

namespace kernbench::report {
namespace {

TEST(Unit, IsTheEndingOfAFiguresName) {
  EXPECT_EQ(unit_of("time_ns"), "ns");
  EXPECT_EQ(unit_of("row3.busbw_gbps"), "GB/s");
  EXPECT_EQ(unit_of("energy_pj"), "pJ");
  EXPECT_EQ(unit_of("ranks"), "");
  EXPECT_EQ(unit_of("_ns"), "");
}

TEST(UsualGoal, IsMoreOfRatesAndLessOfAllElse) {
  EXPECT_EQ(usual_goal("busbw_gbps"), search::Goal::maximize);
  EXPECT_EQ(usual_goal("bound_fraction"), search::Goal::maximize);
  EXPECT_EQ(usual_goal("time_ns"), search::Goal::minimize);
  EXPECT_EQ(usual_goal("mismatches"), search::Goal::minimize);
}

TEST(Scale, IsLogarithmicFromAFactorOfTwentyOn) {
  Study study;
  study.axes = {{"below", "", Column::Scale::linear, {}},
                {"at", "", Column::Scale::linear, {}},
                {"zero", "", Column::Scale::linear, {}},
                {"name", "", Column::Scale::category, {"x", "y"}}};
  Point low, high;
  low.axes = {1, 1, 0, 0};
  high.axes = {19.9, 20, 1000, 1};
  study.points = {low, high};
  choose_scales(study);
  EXPECT_EQ(study.axes[0].scale, Column::Scale::linear);
  EXPECT_EQ(study.axes[1].scale, Column::Scale::log);
  EXPECT_EQ(study.axes[2].scale, Column::Scale::linear);
  EXPECT_EQ(study.axes[3].scale, Column::Scale::category);
}

TEST(StudyFront, TakesObjectivesAloneAndPointsWithFigures) {
  Study study = sample_study();
  const std::vector<std::size_t> front = study.front();
  EXPECT_FALSE(front.empty());
  for (const std::size_t i : front) EXPECT_EQ(study.points[i].status, "ok");
  for (Metric& metric : study.metrics) metric.objective = false;
  EXPECT_TRUE(study.front().empty());
}

}  // namespace
}  // namespace kernbench::report
