#include "sc_main/explore/report/study.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kernbench::report {
namespace {

/// A wider range than this is drawn on a log scale.
constexpr double kLogSpan = 20;

Column::Scale scale_of(const std::vector<double>& values) {
  double low = INFINITY, high = -INFINITY;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return low > 0 && high / low >= kLogSpan ? Column::Scale::log : Column::Scale::linear;
}

}  // namespace

std::vector<std::size_t> Study::front() const {
  std::vector<search::Costs> costs;
  bool any = false;
  for (const Point& point : points) {
    search::Costs& mine = costs.emplace_back();
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      if (!metrics[m].objective) continue;
      any = true;
      mine.push_back(point.status == "ok" ? search::cost(point.values[m], metrics[m].goal) : kNoFigure);
    }
  }
  return any ? search::pareto_front(costs) : std::vector<std::size_t>{};
}

void choose_scales(Study& study) {
  const auto choose = [&](Column& column, auto&& value) {
    if (column.scale == Column::Scale::category) return;
    std::vector<double> values;
    for (const Point& point : study.points) values.push_back(value(point));
    column.scale = scale_of(values);
  };
  for (std::size_t a = 0; a < study.axes.size(); ++a)
    choose(study.axes[a], [a](const Point& point) { return point.axes[a]; });
  for (std::size_t m = 0; m < study.metrics.size(); ++m)
    choose(study.metrics[m].column, [m](const Point& point) { return point.values[m]; });
}

std::string unit_of(const std::string& name) {
  static constexpr std::pair<const char*, const char*> kEndings[] = {
      {"_gbps", "GB/s"},      {"_bytes", "B"},        {"_cycles", "cycles"},
      {"_tflops", "TFLOP/s"}, {"_gflops", "GFLOP/s"}, {"_fraction", "fraction"},
      {"_percent", "%"},      {"_pj", "pJ"},          {"_nj", "nJ"},
      {"_uj", "uJ"},          {"_mj", "mJ"},          {"_ns", "ns"},
      {"_us", "us"},          {"_ms", "ms"},          {"_ps", "ps"},
      {"_mm2", "mm2"},        {"_ghz", "GHz"},        {"_s", "s"}};
  for (const auto& [ending, unit] : kEndings) {
    const std::string text = ending;
    if (name.size() > text.size() && name.compare(name.size() - text.size(), text.size(), text) == 0) return unit;
  }
  return name == "bytes" ? "B" : "";
}

search::Goal usual_goal(const std::string& name) {
  const std::string unit = unit_of(name);
  const bool rate = unit == "GB/s" || unit == "TFLOP/s" || unit == "GFLOP/s" || unit == "fraction";
  return rate ? search::Goal::maximize : search::Goal::minimize;
}

}  // namespace kernbench::report
