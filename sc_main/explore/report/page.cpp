#include "sc_main/explore/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <kainjow/mustache.hpp>
#include <map>
#include <utility>

#include "sc_main/explore/report/resources.h"
#include "sc_main/explore/report/script_text.h"
#include "sc_main/explore/report/sensitivity.h"

namespace kernbench::report {
namespace {
namespace mustache = kainjow::mustache;
using nlohmann::ordered_json;

const char* name_of(Column::Scale scale) {
  switch (scale) {
    case Column::Scale::linear:
      return "linear";
    case Column::Scale::log:
      return "log";
    case Column::Scale::category:
      return "category";
  }
  return "";
}
const char* name_of(search::Goal goal) { return goal == search::Goal::minimize ? "minimize" : "maximize"; }

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }
ordered_json numbers(const std::vector<double>& values) {
  ordered_json out = ordered_json::array();
  for (const double value : values) out.push_back(number(value));
  return out;
}

ordered_json to_json(const Column& column) {
  return {{"name", column.name},
          {"unit", column.unit},
          {"scale", name_of(column.scale)},
          {"categories", column.categories}};
}

ordered_json to_json(const Energy& energy) {
  if (energy.dynamic_pj.empty()) return nullptr;
  return {{"dynamic_pj", numbers(energy.dynamic_pj)},
          {"static_pj", numbers(energy.static_pj)},
          {"counts", numbers(energy.counts)},
          {"operation_pj", numbers(energy.operation_pj)}};
}

/// RFC 7396: what turns `base` into `wanted`. A resolved configuration holds no null of its own.
ordered_json merge_patch_between(const ordered_json& base, const ordered_json& wanted) {
  if (!base.is_object() || !wanted.is_object()) return wanted;
  ordered_json patch = ordered_json::object();
  for (const auto& [key, value] : base.items()) {
    if (!wanted.contains(key)) patch[key] = nullptr;
  }
  for (const auto& [key, value] : wanted.items()) {
    if (!base.contains(key))
      patch[key] = value;
    else if (base[key] != value)
      patch[key] = merge_patch_between(base[key], value);
  }
  return patch;
}

ordered_json to_json(const Sensitivity& one, std::size_t metric) {
  ordered_json effects = ordered_json::array();
  for (const Effect& effect : one.effects) {
    ordered_json levels = ordered_json::array();
    for (const Level& level : effect.levels) {
      levels.push_back({{"label", level.label},
                        {"position", level.position},
                        {"points", level.points},
                        {"mean", level.mean},
                        {"lowest", level.lowest},
                        {"highest", level.highest}});
    }
    effects.push_back({{"axis", effect.axis}, {"share", number(effect.share)}, {"levels", std::move(levels)}});
  }
  return {{"metric", metric}, {"log", one.log}, {"balanced", one.balanced}, {"effects", std::move(effects)}};
}

ordered_json to_json(const SearchRun& run) {
  ordered_json generations = ordered_json::array();
  for (const SearchRun::Generation& g : run.generations) {
    generations.push_back({{"number", g.number},
                           {"evaluated", g.evaluated},
                           {"front", g.front},
                           {"hypervolume", number(g.hypervolume)},
                           {"share", number(g.share)}});
  }
  return {{"algorithm", run.algorithm}, {"seed", run.seed}, {"generations", std::move(generations)}};
}

/// What the page's script reads.
ordered_json to_json(const Study& study) {
  ordered_json json;
  json["axes"] = ordered_json::array();
  for (const Column& axis : study.axes) json["axes"].push_back(to_json(axis));
  json["metrics"] = ordered_json::array();
  for (const Metric& metric : study.metrics) {
    ordered_json one = to_json(metric.column);
    one["goal"] = name_of(metric.goal);
    one["objective"] = metric.objective;
    json["metrics"].push_back(std::move(one));
  }
  json["texts"] = study.texts;
  json["config"] = study.points.empty() ? ordered_json::object() : study.points.front().config;
  json["points"] = ordered_json::array();
  for (const Point& point : study.points) {
    json["points"].push_back({{"index", json["points"].size()},
                              {"key", point.key},
                              {"status", point.status},
                              {"axes", numbers(point.axes)},
                              {"values", numbers(point.values)},
                              {"labels", point.labels},
                              {"texts", point.texts},
                              {"energy", to_json(point.energy)},
                              {"config", merge_patch_between(json["config"], point.config)},
                              {"command", point.command},
                              {"error", point.error},
                              {"exit_code", point.exit_code}});
  }
  json["components"] = study.components;
  json["operations"] = ordered_json::array();
  for (const EnergyOperation& one : study.operations)
    json["operations"].push_back({{"key", one.key}, {"unit", one.unit}, {"component", one.component}});
  json["front"] = study.front();
  json["sensitivity"] = ordered_json::array();
  for (std::size_t m = 0; m < study.metrics.size(); ++m)
    json["sensitivity"].push_back(to_json(sensitivity(study, m), m));
  json["searches"] = ordered_json::array();
  for (const SearchRun& run : study.searches) json["searches"].push_back(to_json(run));
  return json;
}

/// Six digits; from 10^7 on with a letter for the power, as the page's axes have.
std::string figure(double value) {
  if (std::isnan(value)) return "-";
  constexpr std::pair<double, const char*> kLetters[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}};
  for (const auto& [power, letter] : kLetters) {
    const double size = std::abs(value);
    if (size >= 1e7 && size >= power && size < 1e15) return fmt::format("{:.6g}{}", value / power, letter);
  }
  return fmt::format("{:.6g}", value);
}
std::string titled(const Column& column) {
  return column.unit.empty() ? column.name : fmt::format("{} ({})", column.name, column.unit);
}

std::string axis_text(const Point& point, std::size_t axis) {
  return point.labels[axis].empty() ? "-" : point.labels[axis];
}

mustache::data tiles(const Study& study) {
  std::map<std::string, std::size_t> by_status;
  for (const Point& point : study.points) ++by_status[point.status];
  mustache::data out(mustache::data::type::list);
  const auto tile = [&](std::size_t count, const std::string& what) {
    out.push_back(mustache::object{{"figure", std::to_string(count)}, {"what", what}});
  };
  tile(study.points.size(), "points");
  for (const auto& [status, count] : by_status) tile(count, status == "ok" ? "with figures" : status);
  tile(study.axes.size(), study.axes.size() == 1 ? "axis" : "axes");
  if (const std::size_t front = study.front().size(); front > 0) tile(front, "on the Pareto front");
  if (!study.searches.empty()) tile(study.searches.size(), study.searches.size() == 1 ? "search" : "searches");
  return out;
}

/// Where a point lies: "rows = 4, clock = 1 GHz".
std::string place_text(const Study& study, const Point& point) {
  std::string text;
  for (std::size_t axis = 0; axis < study.axes.size(); ++axis)
    text += fmt::format("{}{} = {}", axis == 0 ? "" : ", ", study.axes[axis].name, axis_text(point, axis));
  return text;
}

mustache::data bests(const Study& study) {
  mustache::data out(mustache::data::type::list);
  for (std::size_t m = 0; m < study.metrics.size(); ++m) {
    const Metric& metric = study.metrics[m];
    if (!metric.objective) continue;
    std::vector<std::pair<double, std::size_t>> costs;
    for (std::size_t p = 0; p < study.points.size(); ++p) {
      const Point& point = study.points[p];
      if (point.status == "ok" && !std::isnan(point.values[m]))
        costs.emplace_back(search::cost(point.values[m], metric.goal), p);
    }
    if (costs.empty()) continue;
    std::sort(costs.begin(), costs.end());
    const auto value = [&](std::size_t rank) { return figure(study.points[costs[rank].second].values[m]); };
    const Point& best = study.points[costs.front().second];
    out.push_back(mustache::object{{"name", titled(metric.column)},
                                   {"goal", name_of(metric.goal)},
                                   {"best", value(0)},
                                   {"median", value(costs.size() / 2)},
                                   {"worst", value(costs.size() - 1)},
                                   {"key", best.key},
                                   {"at", place_text(study, best)}});
  }
  return out;
}

mustache::data axes(const Study& study) {
  mustache::data out(mustache::data::type::list);
  for (std::size_t axis = 0; axis < study.axes.size(); ++axis) {
    std::map<double, std::string> values;
    for (const Point& point : study.points) {
      if (!std::isnan(point.axes[axis])) values.emplace(point.axes[axis], axis_text(point, axis));
    }
    out.push_back(mustache::object{{"name", titled(study.axes[axis])},
                                   {"count", std::to_string(values.size())},
                                   {"from", values.empty() ? "-" : values.begin()->second},
                                   {"to", values.empty() ? "-" : values.rbegin()->second}});
  }
  return out;
}

/// Points without figures by what was said of them, the most frequent first.
mustache::data failures(const Study& study) {
  constexpr std::size_t kMostRows = 12;
  std::map<std::pair<std::string, std::string>, std::vector<const Point*>> by_reason;
  for (const Point& point : study.points) {
    if (point.status == "ok") continue;
    const std::string code = point.exit_code == 0 ? "" : fmt::format(", exit code {}", point.exit_code);
    by_reason[{point.status + code, point.error.substr(0, point.error.find('\n'))}].push_back(&point);
  }
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<const Point*>>> rows(by_reason.begin(),
                                                                                              by_reason.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  mustache::data out(mustache::data::type::list);
  std::size_t rest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [reason, points] = rows[i];
    if (i >= kMostRows) {
      rest += points.size();
      continue;
    }
    out.push_back(mustache::object{{"status", reason.first},
                                   {"error", reason.second},
                                   {"count", std::to_string(points.size())},
                                   {"key", points.front()->key},
                                   {"at", place_text(study, *points.front())}});
  }
  if (rest > 0) {
    out.push_back(mustache::object{
        {"status", "other reasons"}, {"error", "the list of points has them"}, {"count", std::to_string(rest)}});
  }
  return out;
}
}  // namespace

std::string render(const Study& study) {
  mustache::data data;
  data.set("title", study.title);
  data.set("version", study.version);
  data.set("base", study.base);
  data.set("source", study.source);
  data.set("tiles", tiles(study));
  const mustache::data best = bests(study), failed = failures(study);
  data.set("has_bests", !best.is_empty_list());
  data.set("bests", best);
  data.set("axes", axes(study));
  data.set("has_failures", !failed.is_empty_list());
  data.set("failures", failed);
  data.set("style", kStyle);
  data.set("study", script_text(to_json(study)));
  data.set("library", kD3);
  data.set("script", kScript);
  data.set("licence", kD3Licence);
  return render_template(kPageTemplate, data);
}

}  // namespace kernbench::report
