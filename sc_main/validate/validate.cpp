#include "sc_main/validate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

namespace kernbench::validate {
namespace fs = std::filesystem;

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

fs::path reference_folder(const std::string& given, const std::string& domain_folder) {
  std::error_code ignored;
  if (!given.empty()) {
    fs::path folder = given;
    if (!fs::is_directory(folder, ignored))
      throw std::invalid_argument(fmt::format("--reference '{}' is not a folder", given));
    return fs::is_directory(folder / domain_folder, ignored) ? folder / domain_folder : folder;
  }
  const fs::path tool = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  constexpr std::array<const char*, 2> kPlaces{KERNBENCH_BUILD_REFERENCE, KERNBENCH_INSTALLED_REFERENCE};
  for (const char* place : kPlaces) {
    fs::path folder = (tool / place / domain_folder).lexically_normal();
    if (fs::is_directory(folder, ignored)) return folder;
  }
  throw std::invalid_argument(fmt::format(
      "the reference tables of '{}' are not beside this tool\n  hint: give --reference DIR", domain_folder));
}

}  // namespace kernbench::validate
