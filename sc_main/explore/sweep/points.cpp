#include "sc_main/explore/sweep/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include "sc_main/explore/sweep/sampling.h"
#include "sc_main/explore/sweep/vocabulary.h"
#include "tlm/config/json_text.h"
#include "topology/spec/schema.h"

namespace kernbench::sweep {
namespace {
constexpr std::size_t kDrawsPerSample = 1000;  ///< before a sampling method gives up on its constraints

const Setting* find(const std::vector<Setting>& settings, const std::string& name) {
  for (const Setting& setting : settings) {
    if (setting.name == name || formula_name(setting.name) == name) return &setting;
  }
  return nullptr;
}

double number_of(const Setting& setting) { return setting.number ? *setting.number : number_of_text(setting.text); }

/// For a shell.
std::string quoted(const std::string& word) {
  constexpr const char* kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string::npos ? word : shell_quoted(word);
}

std::string label_of(const Coordinates& coordinates) {
  std::string text;
  for (const AxisValue& value : coordinates) text += value.label + '\n';
  return text;
}
}  // namespace

std::string shell_quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

const topology::Resolved& BaseMachines::of(const std::string& topology, const std::vector<std::string>& sets) {
  auto& machine = machines_[topology];
  if (!machine) machine = std::make_unique<topology::Resolved>(topology::resolve(topology, sets));
  return *machine;
}

const std::string& PointMaker::topology_of(const Point& point) const {
  for (const auto* settings : {&point.settings, &file_.base}) {
    if (const Setting* topology = find(*settings, "topology")) return topology->text;
  }
  return file_.topology;
}

double PointMaker::lookup(const Point& point, const std::string& name) {
  if (const Setting* setting = find(point.settings, name)) return number_of(*setting);
  if (const Setting* setting = find(file_.base, name)) return number_of(*setting);
  const topology::Field* field = topology::find_field(name);
  if (field == nullptr || field->kind == topology::FieldKind::section) return number_of_text(name);
  std::vector<std::string> sets;
  for (const Setting& setting : file_.base) {
    if (topology::find_field(setting.name) != nullptr) sets.push_back(setting.name + "=" + setting.text);
  }
  const auto& config = bases_.of(topology_of(point), sets).config;
  const nlohmann::ordered_json* value = &config;
  for (std::size_t from = 0; from <= name.size();) {
    const std::size_t dot = std::min(name.find('.', from), name.size());
    const auto found = value->find(name.substr(from, dot - from));
    if (found == value->end()) throw std::invalid_argument(fmt::format("'{}' has no value here", name));
    value = &*found;
    from = dot + 1;
  }
  const std::string text = value->is_string() ? value->get<std::string>() : json_text(*value);
  ValueKind kind;
  kind.field = field;
  const auto number = kind.number_of(text);
  return number ? *number : number_of_text(text);
}

Point PointMaker::make(Coordinates coordinates) {
  Point point;
  point.coordinates = std::move(coordinates);
  for (const AxisValue& value : point.coordinates)
    point.settings.insert(point.settings.end(), value.settings.begin(), value.settings.end());
  const auto value_of = [&](const std::string& name) { return lookup(point, name); };
  try {
    for (const Derived& derived : file_.derived) {
      const double number = derived.value.value(value_of);
      const auto text = derived.kind.text_of(number);
      if (!text) {
        point.refused = fmt::format("derived '{}' would be {}", derived.name, number);
        return point;
      }
      point.settings.push_back({derived.name, *text, derived.kind.number_of(*text), derived.kind.flag});
    }
    for (const Constraint& constraint : file_.constraints) {
      if (constraint.condition.value(value_of) != 0) continue;
      point.refused = fmt::format("constraint '{}'", constraint.condition.text());
      return point;
    }
  } catch (const std::invalid_argument& error) {
    point.refused = error.what();
  }
  return point;
}

PointCommand PointMaker::command(const Point& point) const {
  std::vector<Setting> all = file_.base;
  all.insert(all.end(), point.settings.begin(), point.settings.end());
  PointCommand command{file_.workload, file_.plugins, {}, option_words(all), file_.limits.sim_time};
  command.machine.emplace_back("--topology", topology_of(point));
  for (const Setting& setting : all) {
    if (topology::find_field(setting.name) != nullptr)
      command.machine.emplace_back("--set", setting.name + "=" + setting.text);
  }
  return command;
}

Arguments PointCommand::arguments(bool with_machine) const {
  Arguments words{workload};
  for (const std::string& plugin : plugins) words.insert(words.end(), {"--plugin", plugin});
  for (const auto& [option, value] : machine) {
    if (with_machine) words.insert(words.end(), {option, value});
  }
  words.insert(words.end(), options.begin(), options.end());
  if (!sim_time.empty()) words.insert(words.end(), {"--max-sim-time", sim_time});
  return words;
}

std::string PointCommand::text() const {
  std::string text = "kernbench run";
  for (const std::string& word : arguments()) text += " " + quoted(word);
  return text;
}

std::vector<double> PointMaker::objectives(const Point& point, const std::map<std::string, double>& metrics) {
  std::vector<double> values;
  for (const Objective& objective : file_.objectives) {
    const auto value_of = [&](const std::string& name) {
      if (const auto found = metrics.find(name); found != metrics.end()) return found->second;
      const bool ours = find(point.settings, name) != nullptr || find(file_.base, name) != nullptr ||
                        topology::find_field(name) != nullptr;
      if (!ours) throw std::invalid_argument(name);
      return lookup(point, name);
    };
    try {
      values.push_back(objective.value.value(value_of));
    } catch (const std::invalid_argument&) {
      values.push_back(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return values;
}

std::vector<Point> points(const SweepFile& file, PointMaker& maker) {
  std::vector<Point> all;
  std::set<std::string> seen;
  std::size_t running = 0;
  /// Whether more are wanted.
  const auto add = [&](Coordinates coordinates) {
    if (!seen.insert(label_of(coordinates)).second) return true;
    all.push_back(maker.make(std::move(coordinates)));
    if (all.back().refused.empty()) ++running;
    return file.run_cap == 0 || running < file.run_cap;
  };
  const auto sample = [&](const std::vector<double>& place) {
    Coordinates coordinates;
    for (std::size_t i = 0; i < file.axes.size(); ++i) coordinates.push_back(file.axes[i].at(place[i]));
    return add(std::move(coordinates));
  };
  switch (file.method) {
    case Method::grid: {
      std::vector<std::size_t> index(file.axes.size(), 0);
      while (true) {
        Coordinates coordinates;
        for (std::size_t i = 0; i < index.size(); ++i) coordinates.push_back(file.axes[i].values[index[i]]);
        if (!add(std::move(coordinates))) return all;
        std::size_t axis = index.size();
        while (axis > 0 && ++index[axis - 1] == file.axes[axis - 1].size()) index[--axis] = 0;
        if (axis == 0) return all;
      }
    }
    case Method::zip:
      for (std::size_t i = 0; i < file.axes.front().size(); ++i) {
        Coordinates coordinates;
        for (const Axis& axis : file.axes) coordinates.push_back(axis.values[i]);
        if (!add(std::move(coordinates))) return all;
      }
      return all;
    case Method::latin_hypercube:
      for (const auto& place : latin_hypercube(file.samples, file.axes.size(), file.seed)) {
        if (!sample(place)) return all;
      }
      return all;
    case Method::random:
    case Method::sobol: {
      Sequence sequence(file.method == Method::sobol, file.axes.size(), file.seed);
      for (std::size_t draw = 0; running < file.samples && draw < kDrawsPerSample * file.samples; ++draw) {
        if (!sample(sequence.next())) return all;
      }
      return all;
    }
  }
  return all;
}

}  // namespace kernbench::sweep
