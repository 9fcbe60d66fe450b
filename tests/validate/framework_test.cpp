#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <stdexcept>

#include "runtime/errors.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/run_forked.h"
#include "sc_main/validate/plot.h"
#include "sc_main/validate/validate.h"

namespace kernbench::validate {
namespace {
using ::testing::HasSubstr;
using Runs = std::vector<std::function<std::vector<double>()>>;

TEST(Case, ErrorIsRelativeAndTheLimitHoldsOnBothSides) {
  EXPECT_NEAR(judge("c", "m", 100, 105, 0.05).error, 0.05, 1e-12);
  EXPECT_TRUE(judge("c", "m", 100, 95, 0.05 + 1e-12).within());
  EXPECT_FALSE(judge("c", "m", 100, 94.9, 0.05).within());
  EXPECT_FALSE(judge("c", "m", 100, 105.1, 0.05).within());
  EXPECT_TRUE(judge("c", "m", 17, 17, 0).within());
  EXPECT_FALSE(judge("c", "m", 17, 17.001, 0).within());
  EXPECT_TRUE(judge("c", "m", 0, 0, 0).within());
  EXPECT_FALSE(judge("c", "m", 0, 1, 0.5).within());
  EXPECT_FALSE(judge("c", "m", 1, std::nan(""), 0.5).within());
  EXPECT_FALSE(judge("c", "m", 1, 2, 0.5, "why").judged);
}

TEST(Case, DeviatesOnBothSidesUnlessTheModelMayBeBetter) {
  Case one = judge("c", "m", 100, 75, 0.1);
  EXPECT_EQ(one.deviation(), 0.25);
  EXPECT_FALSE(one.within());
  one.less_is_fine = true;
  EXPECT_EQ(one.deviation(), 0);
  EXPECT_TRUE(one.within());
  one.error = 0.25;
  EXPECT_EQ(one.deviation(), 0.25);
  EXPECT_FALSE(one.within());
}

TEST(ProcessPool, ReturnsFiguresInTheOrderOfTheRuns) {
  Runs runs;
  for (int i = 0; i < 20; ++i) {
    runs.push_back([i] {
      if (i % 3 == 0) ::usleep(20'000);  // the first ones end last
      return std::vector<double>{static_cast<double>(i), static_cast<double>(::getpid() != 0)};
    });
  }
  const std::atomic<bool> stop{false};
  std::size_t calls = 0;
  const auto figures = run_forked(runs, 4, stop, [&](std::size_t finished) { EXPECT_EQ(finished, ++calls); });
  ASSERT_EQ(figures.size(), runs.size());
  for (std::size_t i = 0; i < figures.size(); ++i) EXPECT_EQ(figures[i].at(0), static_cast<double>(i));
  EXPECT_EQ(calls, runs.size());
}

TEST(ProcessPool, LongResultsArriveWhole) {
  const std::atomic<bool> stop{false};
  const auto figures = run_forked({[] { return std::vector<double>(100'000, 1.5); }}, 1, stop);
  EXPECT_EQ(figures.front(), std::vector<double>(100'000, 1.5));
}

TEST(ProcessPool, FailuresOfARunEndThePool) {
  const std::atomic<bool> stop{false};
  const auto run = [&](const std::function<std::vector<double>()>& failing) {
    run_forked({[] { return std::vector<double>{1}; }, failing}, 2, stop);
  };
  EXPECT_THROW(run([]() -> std::vector<double> { throw std::invalid_argument("x"); }), std::invalid_argument);
  EXPECT_THROW(run([]() -> std::vector<double> { throw std::logic_error("x"); }), std::runtime_error);
  const auto code = [&](const std::function<std::vector<double>()>& failing, const std::string& said) {
    try {
      run(failing);
    } catch (const RunEnded& error) {
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
      return error.code;
    }
    return ExitCode::success;
  };
  using Figures = std::vector<double>;
  EXPECT_EQ(code([]() -> Figures { throw HostShortage("needs 768 MiB"); }, "needs 768 MiB"), ExitCode::environment);
  const auto in_a_rank = [](const std::exception_ptr& error) { return SpawnError("rank 1 of 2", {{1, error}}); };
  EXPECT_EQ(code([&]() -> Figures { throw in_a_rank(std::make_exception_ptr(std::bad_alloc())); }, "rank 1 of 2"),
            ExitCode::environment);
  EXPECT_EQ(code([&]() -> Figures { throw in_a_rank(std::make_exception_ptr(std::runtime_error("x"))); }, "rank 1"),
            ExitCode::program_failed);
  EXPECT_EQ(code([]() -> Figures { throw std::filesystem::filesystem_error("no folder", {}); }, "no folder"),
            ExitCode::environment)
      << "no shortage of memory";
  EXPECT_THROW(run([]() -> std::vector<double> { ::_exit(3); }), std::runtime_error);
  EXPECT_THROW(run([]() -> std::vector<double> { std::raise(SIGKILL), ::_exit(0); }), std::runtime_error);
}

TEST(ProcessPool, EndsWhenItIsStopped) {
  const std::atomic<bool> stop{true};
  EXPECT_THROW(run_forked({[]() -> std::vector<double> { return {}; }}, 1, stop), RunsUnfinished);
}

TEST(ProcessPool, WhatEndedBeforeItWasStoppedIsKept) {
  std::atomic<bool> stop{false};
  const Runs runs{[] { return std::vector<double>{1}; }, [] { return std::vector<double>{2}; }};
  try {
    run_forked(runs, 1, stop, [&](std::size_t) { stop = true; });
    FAIL() << "nothing was thrown";
  } catch (const RunsUnfinished& left) {
    EXPECT_EQ(left.results, (std::vector<std::vector<double>>{{1}, {}}));
    EXPECT_EQ(left.ended, (std::vector<bool>{true, false}));
  }
}

TEST(Plot, HasTitleAxesWithUnitsLegendAndEveryPoint) {
  Plot plot;
  plot.title = "a < b";
  plot.x_label = "load [flits]";
  plot.y_label = "latency [cycles]";
  plot.log_y = true;
  plot.series = {{"reference", {{0.1, 20}, {0.2, 200}}, true, 0}, {"measured", {{0.1, 21}, {0.2, 190}}, false, 0}};
  const std::string svg = to_svg(plot);
  for (const char* text : {"a &lt; b", "load [flits]", "latency [cycles]", ">reference<", ">measured<", "<polyline"})
    EXPECT_THAT(svg, HasSubstr(text));
  std::size_t circles = 0;
  for (std::size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++circles;
  EXPECT_EQ(circles, 4U + 2U);  // points, and the legend's
}

TEST(Plot, SurvivesPointsThatCannotBeDrawn) {
  Plot plot;
  plot.log_y = true;
  plot.series = {{"none", {{0.1, 0}, {0.2, std::nan("")}}, false, 0}};
  EXPECT_THAT(to_svg(plot), ::testing::Not(HasSubstr("nan")));
}

TEST(ErrorPlot, HasTheJudgedCasesOfEachMetricBetweenTheirLimits) {
  const Plot plot = error_plot("links", {judge("a", "ns", 100, 101, 0.01), judge("b", "gbps", 10, 9.5, 0.05),
                                         judge("c", "ns", 1, 2, 0.01, "why"), judge("d", "ns", 100, 98, 0.03)});
  EXPECT_EQ(plot.file, "links_errors");
  ASSERT_EQ(plot.series.size(), 6u);  // per metric: errors, and the two limits
  EXPECT_EQ(plot.series[0].label, "ns");
  ASSERT_EQ(plot.series[0].points.size(), 2u);
  EXPECT_NEAR(plot.series[0].points[0].second, 1, 1e-9);
  EXPECT_NEAR(plot.series[0].points[1].second, -2, 1e-9);
  EXPECT_EQ(plot.series[1].points, (std::vector<std::pair<double, double>>{{1, 1}, {2, 3}}));
  EXPECT_EQ(plot.series[2].points, (std::vector<std::pair<double, double>>{{1, -1}, {2, -3}}));
  EXPECT_EQ(plot.series[3].label, "gbps");
}

}  // namespace
}  // namespace kernbench::validate
