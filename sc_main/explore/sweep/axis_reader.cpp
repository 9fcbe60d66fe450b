#include "sc_main/explore/sweep/axis_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tlm/config/nearest.h"
#include "tlm/config/read.h"

namespace kernbench::sweep {
namespace {
constexpr double kMostSteps = 10'000;
constexpr double kMostIntegers = 1'000;  ///< of a range without step that is listed as it stands

const std::vector<std::string>& range_keys() {
  static const std::vector<std::string> kKeys{"from", "to", "steps", "step", "factor", "scale"};
  return kKeys;
}

ConfigNode scalar_at(const std::string& text, const Location& where) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar;
  node.text = text;
  node.where = where;
  return node;
}

class AxisReader {
 public:
  AxisReader(const ConfigNode::Entry& entry, bool needs_values, Vocabulary& vocabulary, Problems& problems)
      : entry_(entry), needs_values_(needs_values), vocabulary_(vocabulary), problems_(problems) {
    axis_.name = vocabulary.canonical(entry.key);
    axis_.where = entry.key_where;
  }

  std::optional<Axis> read() {
    const std::size_t before = problems_.reported();
    const ConfigNode& node = entry_.value;
    if (node.is_list() && !node.items.empty() && node.items.front().is_map()) {
      read_maps();
    } else if (const auto kind = vocabulary_.require(entry_.key, entry_.key_where, "axes", problems_)) {
      axis_.kind = *kind;
      axis_.keys = {axis_.name};
      axis_.unit = kind->unit();
      if (node.is_list())
        read_list();
      else if (node.is_map())
        read_range();
      else
        problems_.add(node.where, fmt::format("axis '{}' is no list and no range", axis_.name),
                      "give [value, value, ...] or {from: ..., to: ..., steps: ...}");
    }
    if (problems_.reported() != before) return std::nullopt;
    return std::move(axis_);
  }

 private:
  void read_list() {
    const ConfigNode& node = entry_.value;
    if (node.items.empty()) problems_.add(node.where, fmt::format("axis '{}' has no values", axis_.name), "give some");
    std::set<std::string> seen;
    axis_.numeric = true;
    for (const ConfigNode& item : node.items) {
      const auto setting = vocabulary_.read(axis_.kind, axis_.name, item, problems_);
      if (!setting) continue;
      if (!seen.insert(setting->text).second)
        problems_.add(item.where, fmt::format("axis '{}' has {} twice", axis_.name, quote(setting->text)),
                      "give each value once");
      vocabulary_.add_text(setting->text);
      const std::string label = item.is_scalar() ? item.text : setting->text;
      axis_.values.push_back({label, setting->number, {*setting}, item.where});
      axis_.numeric = axis_.numeric && setting->number.has_value();
    }
    detect_log();
  }

  /// Values that grow by a factor are looked at by the logarithm.
  void detect_log() {
    if (!axis_.numeric || axis_.values.size() < 3) return;
    double least = 1e300, most = 0;
    for (std::size_t i = 1; i < axis_.values.size(); ++i) {
      const double before = *axis_.values[i - 1].number, after = *axis_.values[i].number;
      if (!(before > 0 && after > before)) return;
      least = std::min(least, after / before);
      most = std::max(most, after / before);
    }
    axis_.log = least >= 1.9 || (least > 1.3 && most / least < 1.05);
  }

  /// [{m: 512, n: 512}, {name: tall, m: 4096, n: 64}]
  void read_maps() {
    std::set<std::string> labels;
    for (const ConfigNode& item : entry_.value.items) {
      if (!item.is_map()) {
        problems_.add(item.where, fmt::format("axis '{}' mixes maps with single values", axis_.name),
                      "give maps of the same keys");
        continue;
      }
      AxisValue value;
      value.where = item.where;
      std::vector<std::string> keys;
      for (const ConfigNode::Entry& entry : item.entries) {
        if (entry.key == "name") {
          if (const auto text = read_text(entry.value, "name", problems_)) value.label = *text;
          continue;
        }
        const auto kind = vocabulary_.require(entry.key, entry.key_where, "axes." + axis_.name, problems_);
        if (!kind) continue;
        const auto setting = vocabulary_.read(*kind, vocabulary_.canonical(entry.key), entry.value, problems_);
        if (!setting) continue;
        vocabulary_.add_text(setting->text);
        keys.push_back(setting->name);
        value.settings.push_back(*setting);
      }
      add_map(item, std::move(value), std::move(keys), labels);
    }
  }

  void add_map(const ConfigNode& item, AxisValue value, std::vector<std::string> keys, std::set<std::string>& labels) {
    if (value.label.empty()) {
      std::vector<std::string> words;
      for (const Setting& setting : value.settings)
        words.push_back(setting.name.substr(setting.name.rfind('.') + 1) + "=" + setting.text);
      value.label = join(words, " ");
    }
    if (!labels.insert(value.label).second)
      problems_.add(item.where, fmt::format("axis '{}' has {} twice", axis_.name, quote(value.label)),
                    "give each value once");
    std::vector<std::string> sorted = keys, first = axis_.keys;
    std::sort(sorted.begin(), sorted.end());
    std::sort(first.begin(), first.end());
    if (axis_.values.empty()) {
      axis_.keys = std::move(keys);
    } else if (sorted != first && problems_.empty()) {
      problems_.add(item.where, fmt::format("this value of axis '{}' sets other keys than the first", axis_.name),
                    "give every value the keys " + join(axis_.keys));
    }
    axis_.values.push_back(std::move(value));
  }

  void read_range() {
    const ConfigNode& node = entry_.value;
    check_keys(node, "axes." + axis_.name, range_keys(), problems_);
    if (!axis_.kind.numeric()) {
      problems_.add(node.where, fmt::format("axis '{}' has no numbers to range over", axis_.name),
                    "give a list of values");
      return;
    }
    const auto from = bound("from"), to = bound("to");
    if (!from || !to) return;
    axis_.from = *from;
    axis_.to = *to;
    axis_.numeric = true;
    if (axis_.from > axis_.to) {
      problems_.add(node.where,
                    fmt::format("axis '{}' ranges from {} to {}", axis_.name, quote(node.find("from")->text),
                                quote(node.find("to")->text)),
                    "let 'to' be at least 'from'");
      return;
    }
    read_scale();
    spread();
  }

  std::optional<double> bound(const char* key) {
    const ConfigNode* node = entry_.value.find(key);
    if (node == nullptr) {
      problems_.add(entry_.value.where, fmt::format("axis '{}' has no '{}'", axis_.name, key),
                    "give {from: ..., to: ..., steps: ...}");
      return std::nullopt;
    }
    // The lower bound of a log range may be what no single value may: it is checked as any value is.
    const auto setting = vocabulary_.read(axis_.kind, axis_.name, *node, problems_);
    if (!setting) return std::nullopt;
    if (!setting->number)
      problems_.add(node->where, fmt::format("'{}' of axis '{}' is no number", key, axis_.name),
                    "give a list of values");
    if (setting->number && axis_.kind.field == nullptr && *setting->number != std::floor(*setting->number))
      axis_.kind.real = true;
    return setting->number;
  }

  void read_scale() {
    const ConfigNode* scale = entry_.value.find("scale");
    const bool factor = entry_.value.find("factor") != nullptr;
    const bool powers = axis_.kind.field != nullptr && axis_.kind.field->range.power_of_two;
    axis_.log = factor || powers;
    if (scale != nullptr) {
      if (const auto index = read_name(*scale, "scale", {"linear", "log"}, problems_)) axis_.log = *index == 1;
    }
    if (axis_.log && axis_.from <= 0)
      problems_.add(entry_.value.find("from")->where,
                    fmt::format("axis '{}' is logarithmic and starts at 0", axis_.name), "start above 0");
  }

  /// A positive figure of the range, such as `steps`.
  std::optional<double> figure(const char* key, double least) {
    const ConfigNode* node = entry_.value.find(key);
    if (node == nullptr) return std::nullopt;
    std::optional<double> number;
    if (node->is_scalar() && std::string(key) == "step") number = axis_.kind.number_of(node->text);
    if (node->is_scalar() && !number) number = ValueKind{}.number_of(node->text);
    if (number && *number >= least) return number;
    problems_.add(node->where, fmt::format("'{}' of axis '{}' is {}", key, axis_.name, quote(flow_text(*node))),
                  least > 0 ? fmt::format("give a number of at least {}", least) : "give a number above 0");
    return std::nullopt;
  }

  void spread() {
    const std::size_t before = problems_.reported();
    const auto steps = figure("steps", 2), step = figure("step", 1e-12), factor = figure("factor", 1.0001);
    if (problems_.reported() != before) return;
    if ((steps ? 1 : 0) + (step ? 1 : 0) + (factor ? 1 : 0) > 1) {
      problems_.add(entry_.value.where,
                    fmt::format("axis '{}' has more than one of 'steps', 'step' and 'factor'", axis_.name),
                    "give one of them");
      return;
    }
    const bool powers = axis_.kind.field != nullptr && axis_.kind.field->range.power_of_two;
    const bool integers =
        !axis_.log && axis_.kind.whole() && axis_.unit.empty() && axis_.to - axis_.from < kMostIntegers;
    if (steps) {
      by_steps(*steps);
    } else if (factor || (powers && !step)) {
      by_factor(factor.value_or(2));
    } else if (step || integers) {
      by_step(step.value_or(1));
    } else if (needs_values_) {
      problems_.add(entry_.value.where, fmt::format("axis '{}' is a range without steps", axis_.name),
                    "give 'steps', 'step' or 'factor', or a method that samples: random, latin_hypercube, sobol");
    }
  }

  void by_steps(double steps) {
    if (!few(steps)) return;
    const auto count = static_cast<std::size_t>(steps);
    for (std::size_t i = 0; i < count; ++i) {
      const double part = static_cast<double>(i) / static_cast<double>(count - 1);
      add(axis_.log ? axis_.from * std::pow(axis_.to / axis_.from, part) : axis_.from + part * (axis_.to - axis_.from));
    }
  }
  void by_factor(double factor) {
    if (!few(std::log(axis_.to / axis_.from) / std::log(factor))) return;
    for (double value = axis_.from; value <= axis_.to * (1 + 1e-9); value *= factor) add(value);
  }
  void by_step(double step) {
    if (!few((axis_.to - axis_.from) / step)) return;
    const auto count = static_cast<std::size_t>(std::floor((axis_.to - axis_.from) / step + 1e-9)) + 1;
    for (std::size_t i = 0; i < count; ++i) add(axis_.from + static_cast<double>(i) * step);
  }

  bool few(double count) {
    if (count <= kMostSteps) return true;
    problems_.add(entry_.value.where, fmt::format("axis '{}' has more than {} values", axis_.name, kMostSteps),
                  "give fewer steps");
    return false;
  }

  void add(double number) {
    if (axis_.kind.whole()) number = std::round(number);
    const auto text = axis_.kind.text_of(number);
    if (!text) return;
    if (!axis_.values.empty() && axis_.values.back().label == *text) return;  // rounded to the same
    const auto setting = vocabulary_.read(axis_.kind, axis_.name, scalar_at(*text, entry_.value.where), problems_);
    if (setting) axis_.values.push_back({*text, setting->number, {*setting}, entry_.value.where});
  }

  const ConfigNode::Entry& entry_;
  bool needs_values_;
  Vocabulary& vocabulary_;
  Problems& problems_;
  Axis axis_;
};
}  // namespace

std::optional<Axis> read_axis(const ConfigNode::Entry& entry, bool needs_values, Vocabulary& vocabulary,
                              Problems& problems) {
  return AxisReader(entry, needs_values, vocabulary, problems).read();
}

}  // namespace kernbench::sweep
