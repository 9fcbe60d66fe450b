#include "sc_main/explore/report/store_study.h"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/VariadicBind.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "sc_main/explore/sweep/stored_json.h"
#include "tlm/config/nearest.h"

namespace kernbench::report {
namespace {
using nlohmann::ordered_json;

/// Base units of the store, and what people read them in.
struct ReadableUnit {
  const char *base, *unit;
  double factor;
};
constexpr ReadableUnit kReadable[] = {
    {"B/s", "GB/s", 1e-9}, {"ps", "ns", 1e-3}, {"Hz", "GHz", 1e-9}, {"T/s", "GT/s", 1e-9}};

std::string text_or_empty(const SQLite::Column& column) { return column.isNull() ? std::string() : column.getString(); }

/// One measure for the fronts of all searches: each has a reference point of its own, by which they do not compare.
class Yardstick {
 public:
  explicit Yardstick(std::map<std::string, search::Costs> costs) : costs_(std::move(costs)) {
    std::vector<search::Costs> all, front;
    for (const auto& [key, cost] : costs_) all.push_back(cost);
    if (all.empty()) return;
    for (const std::size_t i : search::pareto_front(all)) front.push_back(all[i]);
    reference_ = search::reference_point(search::nadir(front));
    whole_ = search::hypervolume(front, reference_);
  }
  /// Hypervolume of the points of these keys, as a share of that of all points; NaN: it cannot be said.
  double share(const ordered_json& keys) const {
    std::vector<search::Costs> front;
    for (const ordered_json& key : keys) {
      const auto found = costs_.find(key.get<std::string>());
      if (found == costs_.end()) return kNoFigure;
      front.push_back(found->second);
    }
    if (!(whole_ > 0)) return kNoFigure;
    return front.empty() ? 0 : search::hypervolume(front, reference_) / whole_;
  }

 private:
  std::map<std::string, search::Costs> costs_;
  search::Costs reference_;
  double whole_ = 0;
};

class Reader {
 public:
  Reader(SQLite::Database& database, std::string name) : database_(database), name_(std::move(name)) {}

  Study read() {
    read_sweep();
    read_points();
    add_texts();
    read_objectives();
    read_metrics();
    read_searches();
    choose_scales(study_);
    return std::move(study_);
  }

 private:
  template <class F>
  auto of_sweep(const F& read) const {
    return sweep::stored(database_.getFilename(), "sweep " + quote(name_), read);
  }

  void read_sweep() {
    SQLite::Statement row(database_, "SELECT text, version, base, axes, objectives FROM sweeps WHERE name = ?");
    row.bind(1, name_);
    row.executeStep();
    study_.title = name_;
    study_.source = text_or_empty(row.getColumn(0));
    study_.version = text_or_empty(row.getColumn(1));
    study_.base = text_or_empty(row.getColumn(2));
    axes_text_ = row.getColumn(3).getString();
    objectives_text_ = row.getColumn(4).getString();
    of_sweep([&] {
      for (const ordered_json& axis : parse_json(axes_text_)) add_axis(axis);
      for (const ordered_json& objective : parse_json(objectives_text_)) add_objective(objective);
    });
  }

  void add_objective(const ordered_json& objective) {
    Metric metric;
    metric.column.name = objective.at("name");
    metric.column.unit = objective.value("unit", "");
    if (metric.column.unit.empty()) metric.column.unit = unit_of(metric.column.name);
    metric.goal = objective.at("goal") == "maximize" ? search::Goal::maximize : search::Goal::minimize;
    metric.objective = true;
    study_.metrics.push_back(std::move(metric));
  }

  void add_axis(const ordered_json& axis) {
    Column column;
    column.name = axis.at("name");
    column.unit = axis.value("unit", "");
    double factor = 1;
    for (const ReadableUnit& readable : kReadable) {
      if (column.unit != readable.base) continue;
      factor = readable.factor;
      column.unit = readable.unit;
      break;
    }
    if (!axis.value("numeric", false)) {
      column.scale = Column::Scale::category;
      column.unit.clear();
      for (const ordered_json& value : axis.at("values")) column.categories.push_back(value.at("label"));
    }
    factors_.push_back(factor);
    study_.axes.push_back(std::move(column));
  }

  void read_points() {
    SQLite::Statement rows(
        database_,
        "SELECT s.key, s.coordinates, p.status, p.exit_code, p.error, p.command, c.config, CASE WHEN p.result IS NULL "
        "OR json_valid(p.result) THEN json_extract(p.result, '$.energy') ELSE p.result END, CASE WHEN "
        "json_valid(p.result) THEN json_extract(p.result, '$.results') END FROM sweep_points s LEFT JOIN points p ON "
        "p.key = s.key LEFT JOIN configs c ON c.hash = p.config_hash WHERE s.sweep = ? ORDER BY s.position");
    rows.bind(1, name_);
    while (rows.executeStep()) {
      Point point;
      point.key = rows.getColumn(0).getString();
      const auto of_point = [&](const auto& read) {
        sweep::stored(database_.getFilename(), "point " + point.key, read);
      };
      of_point([&] { place(point, parse_json(rows.getColumn(1).getString())); });
      point.status = rows.getColumn(2).isNull() ? "not run" : rows.getColumn(2).getString();
      point.exit_code = rows.getColumn(3).isNull() ? 0 : rows.getColumn(3).getInt();
      point.error = text_or_empty(rows.getColumn(4));
      point.command = text_or_empty(rows.getColumn(5));
      of_point([&] {
        if (!rows.getColumn(6).isNull()) point.config = parse_json(rows.getColumn(6).getString());
        if (!rows.getColumn(7).isNull()) read_energy(point.energy, parse_json(rows.getColumn(7).getString()));
        if (!rows.getColumn(8).isNull()) read_texts(study_.points.size(), parse_json(rows.getColumn(8).getString()));
      });
      study_.points.push_back(std::move(point));
    }
  }

  /// What the rows of a result say in words; different words of one key are told one after the other.
  void read_texts(std::size_t point, const ordered_json& rows) {
    for (const char* key : {"algorithm", "limited_by", "mapping", "bound_binds"}) {
      std::vector<std::string> words;
      for (const ordered_json& row : rows) {
        const auto found = row.find(key);
        if (found == row.end() || !found->is_string()) continue;
        index_of(words, found->get<std::string>());
      }
      if (!words.empty()) texts_[key][point] = fmt::format("{}", fmt::join(words, "; "));
    }
  }
  /// Those that tell points apart, and that no axis does, become columns.
  void add_texts() {
    for (const auto& [name, by_point] : texts_) {
      std::set<std::string> all;
      for (const auto& [point, text] : by_point) all.insert(text);
      const bool is_axis = std::any_of(study_.axes.begin(), study_.axes.end(),
                                       [&name = name](const Column& axis) { return axis.name == name; });
      if (all.size() < 2 || is_axis) continue;
      study_.texts.push_back(name);
      for (std::size_t i = 0; i < study_.points.size(); ++i) {
        const auto found = by_point.find(i);
        study_.points[i].texts.push_back(found == by_point.end() ? "" : found->second);
      }
    }
  }

  /// `energy` of a result. A component or operation that no earlier point had joins the study's lists.
  void read_energy(Energy& energy, const ordered_json& rows) {
    const auto put = [](std::vector<double>& list, std::size_t index, double value) {
      if (list.size() <= index) list.resize(index + 1, kNoFigure);
      list[index] = value;
    };
    for (const ordered_json& row : rows) {
      const std::size_t component = index_of(study_.components, row.at("component").get<std::string>());
      put(energy.dynamic_pj, component, row.at("dynamic_pj"));
      put(energy.static_pj, component, row.at("static_pj"));
      for (const ordered_json& done : row.value("operations", ordered_json::array())) {
        const std::size_t operation = operation_of(done.at("operation"), done.at("unit"), component);
        put(energy.counts, operation, done.at("count"));
        put(energy.operation_pj, operation, done.at("dynamic_pj"));
      }
    }
  }
  static std::size_t index_of(std::vector<std::string>& names, const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    names.push_back(name);
    return names.size() - 1;
  }
  std::size_t operation_of(const std::string& key, const std::string& unit, std::size_t component) {
    std::vector<EnergyOperation>& all = study_.operations;
    const auto found = std::find_if(all.begin(), all.end(), [&](const EnergyOperation& one) {
      return one.component == component && one.key == key;
    });
    if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
    all.push_back({key, unit, component});
    return all.size() - 1;
  }

  /// Puts a point at its coordinates.
  void place(Point& point, const ordered_json& coordinates) const {
    for (std::size_t a = 0; a < study_.axes.size(); ++a) {
      const Column& axis = study_.axes[a];
      const auto found = coordinates.find(axis.name);
      point.labels.push_back(found == coordinates.end() ? "" : found->value("label", ""));
      double value = kNoFigure;
      if (axis.scale == Column::Scale::category) {
        const auto category = std::find(axis.categories.begin(), axis.categories.end(), point.labels.back());
        if (category != axis.categories.end()) value = static_cast<double>(category - axis.categories.begin());
      } else if (found != coordinates.end() && found->contains("number") && found->at("number").is_number()) {
        value = found->at("number").get<double>() * factors_[a];
      }
      point.axes.push_back(value);
    }
  }

  void read_objectives() {
    for (const Metric& metric : study_.metrics) {
      std::map<std::size_t, double> values;
      SQLite::Statement rows(database_,
                             "SELECT o.value, (SELECT COUNT(*) FROM sweep_points b WHERE b.sweep = o.sweep AND "
                             "b.position < o.position) FROM objective_values o WHERE o.sweep = ? AND o.name = ?");
      SQLite::bind(rows, name_, metric.column.name);
      while (rows.executeStep()) {
        if (rows.getColumn(0).isNull()) continue;
        values[static_cast<std::size_t>(rows.getColumn(1).getInt64())] = rows.getColumn(0).getDouble();
      }
      append(values);
    }
  }
  /// A figure of all points, by index.
  void append(const std::map<std::size_t, double>& values) {
    for (std::size_t i = 0; i < study_.points.size(); ++i) {
      const auto found = values.find(i);
      study_.points[i].values.push_back(found == values.end() ? kNoFigure : found->second);
    }
  }

  void read_metrics() {
    std::map<std::string, std::vector<std::size_t>> by_key;
    for (std::size_t i = 0; i < study_.points.size(); ++i) {
      if (study_.points[i].status == "ok") by_key[study_.points[i].key].push_back(i);
    }
    std::map<std::string, std::map<std::size_t, double>> figures;
    SQLite::Statement rows(database_,
                           "SELECT DISTINCT m.key, m.name, m.value FROM metrics m JOIN sweep_points s ON s.key = m.key "
                           "WHERE s.sweep = ? AND m.value IS NOT NULL");
    rows.bind(1, name_);
    while (rows.executeStep()) {
      const auto points = by_key.find(rows.getColumn(0).getString());
      if (points == by_key.end()) continue;
      for (const std::size_t i : points->second)
        figures[rows.getColumn(1).getString()][i] = rows.getColumn(2).getDouble();
    }
    std::set<std::string> taken;
    for (const Metric& metric : study_.metrics) taken.insert(metric.column.name);
    for (const auto& [name, values] : figures) {
      if (taken.count(name) != 0 || (by_key.size() > 1 && constant(values))) continue;
      study_.metrics.push_back({{name, unit_of(name), Column::Scale::linear, {}}, usual_goal(name), false});
      append(values);
    }
  }
  static bool constant(const std::map<std::size_t, double>& values) {
    return std::all_of(values.begin(), values.end(),
                       [&](const auto& entry) { return entry.second == values.begin()->second; });
  }

  void read_searches() {
    if (!database_.tableExists("search_runs")) return;
    const Yardstick yardstick(all_costs());
    SQLite::Statement runs(database_,
                           "SELECT r.sweep, r.algorithm, r.seed FROM search_runs r JOIN sweeps s ON s.name = r.sweep "
                           "WHERE s.axes = ? AND s.objectives = ? ORDER BY r.algorithm, r.seed, r.sweep");
    SQLite::bind(runs, axes_text_, objectives_text_);
    while (runs.executeStep()) {
      SearchRun run;
      run.algorithm = runs.getColumn(1).getString();
      run.seed = static_cast<std::uint64_t>(runs.getColumn(2).getInt64());
      SQLite::Statement rows(database_,
                             "SELECT generation, evaluated, front, hypervolume, front_keys FROM search_generations "
                             "WHERE sweep = ? ORDER BY generation");
      rows.bind(1, runs.getColumn(0).getString());
      while (rows.executeStep()) {
        run.generations.push_back(
            {rows.getColumn(0).getUInt(), static_cast<std::size_t>(rows.getColumn(1).getInt64()),
             static_cast<std::size_t>(rows.getColumn(2).getInt64()), rows.getColumn(3).getDouble(),
             of_sweep([&] { return yardstick.share(parse_json(rows.getColumn(4).getString())); })});
      }
      study_.searches.push_back(std::move(run));
    }
  }

  /// Costs of the points of every sweep and search over the same axes, by key; without those that miss an objective.
  std::map<std::string, search::Costs> all_costs() {
    const std::size_t objectives = static_cast<std::size_t>(
        std::count_if(study_.metrics.begin(), study_.metrics.end(), [](const Metric& m) { return m.objective; }));
    std::map<std::string, search::Costs> costs;
    for (std::size_t i = 0; i < objectives; ++i) {
      SQLite::Statement rows(database_,
                             "SELECT s.key, o.value FROM sweeps w JOIN sweep_points s ON s.sweep = w.name JOIN "
                             "objective_values o ON o.sweep = s.sweep AND o.position = s.position "
                             "WHERE w.axes = ? AND w.objectives = ? AND o.name = ?");
      SQLite::bind(rows, axes_text_, objectives_text_, study_.metrics[i].column.name);
      while (rows.executeStep()) {
        search::Costs& known = costs[rows.getColumn(0).getString()];
        known.resize(objectives, kNoFigure);
        known[i] = search::cost(rows.getColumn(1).getDouble(), study_.metrics[i].goal);
      }
    }
    for (auto entry = costs.begin(); entry != costs.end();) {
      const bool whole =
          std::none_of(entry->second.begin(), entry->second.end(), [](double v) { return std::isnan(v); });
      entry = whole ? std::next(entry) : costs.erase(entry);
    }
    return costs;
  }

  SQLite::Database& database_;
  const std::string name_;
  std::string axes_text_, objectives_text_;
  std::map<std::string, std::map<std::size_t, std::string>> texts_;  // by name and point
  std::vector<double> factors_;                                      // by axis: from the store's unit to the reader's
  Study study_;
};
}  // namespace

std::vector<StoredSweep> stored_sweeps(SQLite::Database& database) {
  std::vector<StoredSweep> out;
  SQLite::Statement rows(database, "SELECT name, kind FROM sweeps ORDER BY name");
  while (rows.executeStep()) out.push_back({rows.getColumn(0).getString(), rows.getColumn(1).getString()});
  return out;
}

Study read_study(SQLite::Database& database, const std::string& name) { return Reader(database, name).read(); }

}  // namespace kernbench::report
