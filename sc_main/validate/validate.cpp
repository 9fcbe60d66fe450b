#include "sc_main/validate/validate.h"

#include <algorithm>

#include <limits>
#include <utility>

namespace kernbench::validate {

Case judge(std::string name, std::string metric, double reference, double measured, double limit, std::string reason) {
  const bool judged = reason.empty();
  Case result{std::move(name), std::move(metric), reference, measured, 0, limit, judged, std::move(reason), false};
  if (measured != reference)
    result.error = reference == 0 ? std::numeric_limits<double>::infinity() : measured / reference - 1;
  return result;
}

Plot error_plot(const std::string& domain, const std::vector<Case>& cases) {
  Plot plot;
  plot.file = domain + "_errors";
  plot.title = domain + ": error of every judged case";
  plot.x_label = "case, in order of the tables";
  plot.y_label = "measured / reference - 1 [%]";
  std::vector<std::string> metrics;
  for (const Case& one : cases) {
    if (one.judged && std::find(metrics.begin(), metrics.end(), one.metric) == metrics.end())
      metrics.push_back(one.metric);
  }
  for (unsigned i = 0; i < metrics.size(); ++i) {
    Series errors{metrics[i], {}, true, i};
    Series above{"its limit", {}, false, i, true};
    Series below{"", {}, false, i, true};
    double number = 0;
    for (const Case& one : cases) {
      if (!one.judged || one.metric != metrics[i]) continue;
      errors.points.emplace_back(++number, 100 * one.error);
      // Limits differ by table: a step where one ends.
      above.points.emplace_back(number, 100 * one.limit);
      below.points.emplace_back(number, -100 * one.limit);
    }
    plot.series.push_back(std::move(errors));
    plot.series.push_back(std::move(above));
    plot.series.push_back(std::move(below));
  }
  return plot;
}

}  // namespace kernbench::validate
