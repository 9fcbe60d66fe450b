#include "sc_main/explore/sweep/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "sc_main/explore/sweep/axis_reader.h"
#include "sc_main/explore/sweep/vocabulary.h"
#include "sc_main/run/result_file.h"
#include "tlm/config/nearest.h"
#include "tlm/config/read.h"
#include "topology/spec/resolve.h"

namespace kernbench::sweep {
namespace {
const std::vector<std::string> kKeys{"name",    "description", "workload",   "topology", "plugins", "set",
                                     "options", "axes",        "method",     "samples",  "seed",    "run_cap",
                                     "derived", "constraints", "objectives", "limits",   "search"};
const std::vector<std::string> kMethods{"grid", "zip", "random", "latin_hypercube", "sobol"};
const std::vector<std::string> kGoals{"minimize", "maximize"};
constexpr std::uint64_t kMostPoints = 1'000'000;

bool samples(Method method) { return method != Method::grid && method != Method::zip; }

/// Unit that the end of a metric's name says: "time_ns".
std::string unit_of_metric(const std::string& name) {
  static const std::vector<std::pair<std::string, std::string>> kUnits{
      {"_ps", "ps"},   {"_ns", "ns"}, {"_us", "us"},          {"_pj", "pJ"},        {"_gbps", "GB/s"},
      {"_bytes", "B"}, {"_s", "s"},   {"_tflops", "TFLOP/s"}, {"_cycles", "cycles"}};
  for (const auto& [end, unit] : kUnits) {
    if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0) return unit;
  }
  return {};
}

class SweepReader {
 public:
  SweepReader(const std::string& text, const std::string& path, Use use) : use_(use) {
    file_.path = path;
    file_.text = text;
    folder_ = std::filesystem::path(path).parent_path().string();
    file_.name = std::filesystem::path(path).stem().string();
    root_ = parse_config(text, path, &problems_);
    file_.where = root_.where;
  }

  SweepFile read() {
    check_keys(root_, "", kKeys, problems_);
    read_head();
    const WorkloadCatalogue catalogue = read_catalogue();
    if (const ConfigNode* node = required("workload")) {
      if (const auto name = read_text(*node, "workload", problems_)) read_body(catalogue, *name, node->where);
    }
    problems_.throw_if_any();
    return std::move(file_);
  }

 private:
  const ConfigNode* required(const char* key) {
    const ConfigNode* node = root_.find(key);
    if (node == nullptr)
      problems_.add(root_.where, fmt::format("missing key '{}'", key), "docs/sweep.md describes the file");
    return node;
  }

  void read_head() {
    if (const ConfigNode* node = root_.find("name")) {
      if (const auto name = read_text(*node, "name", problems_)) file_.name = *name;
    }
    if (const ConfigNode* node = root_.find("description")) read_text(*node, "description", problems_);
    if (const ConfigNode* node = root_.find("method")) {
      if (const auto index = read_name(*node, "method", kMethods, problems_))
        file_.method = static_cast<Method>(*index);
    }
    read_count("samples", file_.samples);
    read_count("run_cap", file_.run_cap);
    if (const ConfigNode* node = root_.find("seed")) {
      if (const auto seed = read_integer(*node, "seed", {}, problems_)) file_.seed = *seed;
    }
    check_method();
    if (const ConfigNode* node = root_.find("search")) file_.search = *node;
    read_limits();
  }

  void check_method() {
    const ConfigNode* samples_node = root_.find("samples");
    if (use_ == Use::search) return;
    if (samples(file_.method) && samples_node == nullptr)
      problems_.add(root_.find("method")->where, fmt::format("method '{}' has no 'samples'", to_string(file_.method)),
                    "say how many points, e.g. 'samples: 100'");
    if (!samples(file_.method) && samples_node != nullptr)
      problems_.add(root_.entry("samples")->key_where,
                    fmt::format("'samples' does not go with method '{}'", to_string(file_.method)),
                    "leave it out, or sample: random, latin_hypercube, sobol");
  }

  void read_count(const char* key, std::size_t& count) {
    const ConfigNode* node = root_.find(key);
    if (node == nullptr) return;
    if (const auto value = read_integer(*node, key, {1, kMostPoints, false}, problems_)) count = *value;
  }

  void read_limits() {
    const ConfigNode* node = root_.find("limits");
    const std::vector<std::string> keys{"time", "memory", "sim_time"};
    if (node == nullptr || !expect_map(*node, "limits", keys, problems_)) return;
    check_keys(*node, "limits", keys, problems_);
    if (const ConfigNode* time = node->find("time")) {
      if (const auto ps = read_quantity(*time, "limits.time", Dimension::time, {1'000'000'000}, problems_))
        file_.limits.time_s = static_cast<double>(*ps) * 1e-12;
    }
    if (const ConfigNode* memory = node->find("memory")) {
      if (const auto bytes = read_quantity(*memory, "limits.memory", Dimension::bytes, {1 << 20}, problems_))
        file_.limits.memory_bytes = *bytes;
    }
    if (const ConfigNode* time = node->find("sim_time")) {
      if (read_quantity(*time, "limits.sim_time", Dimension::time, {1}, problems_)) file_.limits.sim_time = time->text;
    }
  }

  WorkloadCatalogue read_catalogue() {
    WorkloadCatalogue catalogue;
    const ConfigNode* node = root_.find("plugins");
    if (node == nullptr || !expect_list(*node, "plugins", "files of shared libraries", problems_)) return catalogue;
    for (const ConfigNode& item : node->items) {
      const auto path = read_text(item, "plugins", problems_);
      if (!path) continue;
      try {
        file_.plugins.push_back(anchored(folder_, *path));
        catalogue.add_plugin(file_.plugins.back());
      } catch (const std::invalid_argument& error) {
        problems_.add(item.where, error.what());
      }
    }
    return catalogue;
  }

  void read_body(const WorkloadCatalogue& catalogue, const std::string& workload, const Location& where) {
    if (catalogue.make(workload) == nullptr) {
      problems_.add(where, fmt::format("unknown workload {}", quote(workload)),
                    suggest(workload, catalogue.names(), "workloads"));
      return;
    }
    file_.workload = workload;
    Vocabulary vocabulary(catalogue, workload, folder_);
    read_topology(vocabulary);
    read_settings("set", true, vocabulary);
    read_settings("options", false, vocabulary);
    read_axes(vocabulary);
    read_derived(vocabulary);
    read_constraints(vocabulary);
    read_objectives(vocabulary);
    check_options(vocabulary);
    if (problems_.empty() && use_ == Use::sweep) check_grid();
  }

  void read_topology(const Vocabulary& vocabulary) {
    const ConfigNode* node = root_.find("topology");
    if (node == nullptr) return;
    const auto kind = vocabulary.find("topology");
    if (const auto setting = vocabulary.read(*kind, "topology", *node, problems_)) file_.topology = setting->text;
  }

  /// Notes who sets a name; a second one is a problem.
  void claim(const std::string& name, const Location& where, const std::string& in) {
    const auto [found, is_new] = claims_.emplace(name, in);
    if (!is_new)
      problems_.add(where, fmt::format("'{}' is set in '{}' and in '{}'", name, found->second, in),
                    "set it in one place");
  }

  void read_settings(const char* part, bool keys, Vocabulary& vocabulary) {
    const ConfigNode* node = root_.find(part);
    if (node == nullptr) return;
    if (!node->is_map()) {
      problems_.add(node->where, fmt::format("'{}' is no map", part),
                    keys ? "give {cube.noc.rows: 4, ...}" : "give {minbytes: 64K, ...}");
      return;
    }
    for (const ConfigNode::Entry& entry : node->entries) {
      const auto kind = vocabulary.require(entry.key, entry.key_where, part, problems_);
      if (!kind) continue;
      if ((kind->field != nullptr) != keys) {
        problems_.add(entry.key_where, fmt::format("'{}' belongs in '{}'", entry.key, keys ? "options" : "set"),
                      "'set' takes keys of the topology, 'options' takes options of 'kernbench run'");
        continue;
      }
      const std::string name = vocabulary.canonical(entry.key);
      if (name == "topology" && root_.find("topology") != nullptr) claims_.emplace(name, "topology");
      claim(name, entry.key_where, part);
      if (const auto setting = vocabulary.read(*kind, name, entry.value, problems_)) {
        vocabulary.add_text(setting->text);
        file_.base.push_back(*setting);
      }
    }
  }

  /// What all points are refused for. Where they differ in an option that every run has, each tells by itself.
  void check_options(const Vocabulary& vocabulary) {
    const ConfigNode* node = root_.find("options");
    if (node == nullptr || !problems_.empty()) return;
    for (const auto& [name, in] : claims_) {
      if (in != "options" && vocabulary.is_common(name)) return;
    }
    for (const Refusal& refusal : vocabulary.refused_together(option_words(file_.base))) {
      Location where = node->where;
      for (const ConfigNode::Entry& entry : node->entries) {
        if (vocabulary.canonical(entry.key) == refusal.option) where = entry.value.where;
      }
      problems_.add(where, refusal.text, refusal.hint);
    }
  }

  void read_axes(Vocabulary& vocabulary) {
    const ConfigNode* node = required("axes");
    if (node == nullptr) return;
    if (!node->is_map() || node->entries.empty()) {
      problems_.add(node->where, node->is_map() ? "'axes' is empty" : "'axes' is no map",
                    "give {cube.noc.rows: [4, 8], ...}");
      return;
    }
    const bool needs_values = use_ == Use::sweep && !samples(file_.method);
    for (const ConfigNode::Entry& entry : node->entries) {
      auto axis = read_axis(entry, needs_values, vocabulary, problems_);
      if (!axis) continue;
      for (const std::string& key : axis->keys) claim(key, entry.key_where, "axes." + axis->name);
      file_.axes.push_back(std::move(*axis));
    }
    if (use_ == Use::sweep && file_.method == Method::zip && problems_.empty()) check_zip();
  }

  void check_zip() {
    for (const Axis& axis : file_.axes) {
      if (axis.size() == file_.axes.front().size()) continue;
      problems_.add(axis.where,
                    fmt::format("axis '{}' has {} values, and '{}' has {}", axis.name, axis.size(),
                                file_.axes.front().name, file_.axes.front().size()),
                    "method zip wants the same number of values on every axis");
    }
  }

  void check_grid() {
    if (file_.method != Method::grid) return;
    double count = 1;
    for (const Axis& axis : file_.axes) count *= static_cast<double>(axis.size());
    if (count > static_cast<double>(kMostPoints))
      problems_.add(root_.find("axes")->where, fmt::format("the grid has more than {} points", kMostPoints),
                    "give fewer values, or a method that samples: random, latin_hypercube, sobol");
  }

  void read_derived(const Vocabulary& vocabulary) {
    const ConfigNode* node = root_.find("derived");
    if (node == nullptr) return;
    if (!node->is_map()) {
      problems_.add(node->where, "'derived' is no map", "give {sip.cube_mesh.h: 16 / sip.cube_mesh.w, ...}");
      return;
    }
    for (const ConfigNode::Entry& entry : node->entries) {
      const auto kind = vocabulary.require(entry.key, entry.key_where, "derived", problems_);
      auto value = vocabulary.formula(entry.value, fmt::format("derived '{}':", entry.key), false, problems_);
      if (!kind || !value) continue;
      const std::string name = vocabulary.canonical(entry.key);
      claim(name, entry.key_where, "derived");
      file_.derived.push_back({name, *kind, std::move(*value), entry.key_where});
    }
  }

  void read_constraints(const Vocabulary& vocabulary) {
    const ConfigNode* node = root_.find("constraints");
    if (node == nullptr || !expect_list(*node, "constraints", "formulas such as 'cube.noc.rows <= 8'", problems_))
      return;
    for (const ConfigNode& item : node->items) {
      if (auto condition = vocabulary.formula(item, "constraint", false, problems_))
        file_.constraints.push_back({std::move(*condition), item.where});
    }
  }

  void read_objectives(const Vocabulary& vocabulary) {
    const ConfigNode* node = root_.find("objectives");
    if (node == nullptr || !expect_list(*node, "objectives", "{name: ..., goal: minimize}", problems_)) return;
    for (const ConfigNode& item : node->items) read_objective(item, vocabulary);
  }

  void read_objective(const ConfigNode& item, const Vocabulary& vocabulary) {
    const std::vector<std::string> keys{"name", "goal", "value", "unit"};
    if (!expect_map(item, "objectives", keys, problems_)) return;
    check_keys(item, "objectives", keys, problems_);
    std::string name, unit;
    Goal goal = Goal::minimize;
    for (const char* key : {"name", "goal"}) {
      if (item.find(key) == nullptr)
        problems_.add(item.where, fmt::format("an objective has no '{}'", key), "give {name: time_ns, goal: minimize}");
    }
    if (item.find("name") == nullptr || item.find("goal") == nullptr) return;
    if (const auto text = read_text(*item.find("name"), "name", problems_)) name = *text;
    if (const auto index = read_name(*item.find("goal"), "goal", kGoals, problems_)) goal = static_cast<Goal>(*index);
    const ConfigNode* value = item.find("value");
    if (value == nullptr) unit = unit_of_metric(name);
    if (const ConfigNode* text = item.find("unit")) unit = read_text(*text, "unit", problems_).value_or("");
    for (const Objective& other : file_.objectives) {
      if (other.name == name)
        problems_.add(item.where, fmt::format("objective '{}' for the second time", name), "name each once");
    }
    auto formula = vocabulary.formula(value == nullptr ? *item.find("name") : *value,
                                      fmt::format("objective '{}':", name), true, problems_);
    if (formula) file_.objectives.push_back({name, goal, unit, std::move(*formula), item.where});
  }

  Use use_;
  std::string folder_;
  Problems problems_;
  ConfigNode root_;
  SweepFile file_;
  std::map<std::string, std::string> claims_;
};
}  // namespace

const char* to_string(Method method) { return kMethods[static_cast<std::size_t>(method)].c_str(); }
const char* to_string(Goal goal) { return kGoals[static_cast<std::size_t>(goal)].c_str(); }

std::vector<std::string> SweepFile::inputs() const {
  std::vector<std::string> files{path};
  files.insert(files.end(), plugins.begin(), plugins.end());
  std::set<std::string> machines{topology};
  const auto add = [&](const Setting& setting) {
    std::error_code ignored;
    if (setting.name == "topology") {
      machines.insert(setting.text);
    } else if (!setting.number && !setting.flag && std::filesystem::is_regular_file(setting.text, ignored)) {
      files.push_back(setting.text);
    }
  };
  for (const Setting& setting : base) add(setting);
  for (const Axis& axis : axes) {
    for (const AxisValue& value : axis.values) std::for_each(value.settings.begin(), value.settings.end(), add);
  }
  for (const std::string& machine : machines) {
    const std::vector<std::string> read = topology::resolve(machine).files;
    files.insert(files.end(), read.begin(), read.end());
  }
  return files;
}

nlohmann::ordered_json SweepFile::axes_json() const {
  auto json = nlohmann::ordered_json::array();
  for (const Axis& axis : axes) json.push_back(axis.json());
  return json;
}

nlohmann::ordered_json SweepFile::objectives_json() const {
  auto json = nlohmann::ordered_json::array();
  for (const Objective& objective : objectives)
    json.push_back({{"name", objective.name},
                    {"goal", to_string(objective.goal)},
                    {"unit", objective.unit},
                    {"value", objective.value.text()}});
  return json;
}

SweepFile load_sweep(const std::string& path, Use use) { return read_sweep(load_text(path), path, use); }

SweepFile read_sweep(const std::string& text, const std::string& path, Use use) {
  return SweepReader(text, path, use).read();
}

}  // namespace kernbench::sweep
