#include "ccl/select/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ccl/import/import.h"
#include "ccl/run/queues.h"
#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"
#include "tlm/config/read.h"

namespace kernbench::ccl {
namespace {

constexpr const char* kDefaultAlgorithm = "lrab_hierarchical_allreduce";

constexpr std::uint64_t kMostRanks = 0x7FFF;  // of a program

/// A shared library's path, relative to the folder of the ccl.yaml that names it.
std::string resolve_path(const std::string& module, const std::string& file) {
  if (is_builtin(module) || module.empty() || module.front() == '/') return module;
  const auto slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "./" : file.substr(0, slash + 1);
  return folder + (module.rfind("./", 0) == 0 ? module.substr(2) : module);
}

std::optional<int> read_world_size(const ConfigNode& map, const std::string& what, Problems& problems) {
  const ConfigNode* node = map.find("world_size");
  if (node == nullptr) return std::nullopt;
  const auto value = read_integer(*node, what + ".world_size", {1, kMostRanks, false}, problems);
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

std::optional<std::int64_t> read_n_elem(const ConfigNode& map, const std::string& what, Problems& problems) {
  const ConfigNode* node = map.find("n_elem");
  if (node == nullptr) return std::nullopt;
  const auto value = read_integer(*node, what + ".n_elem", {1, std::uint64_t{1} << 40, false}, problems);
  return value ? std::optional<std::int64_t>(static_cast<std::int64_t>(*value)) : std::nullopt;
}

std::vector<const Parameter*> declared(const Algorithm& algorithm) {
  std::vector<const Parameter*> parameters;
  for (std::uint32_t i = 0; i < algorithm.parameter_count; ++i) parameters.push_back(&algorithm.parameters[i]);
  return parameters;
}

/// Throws Error if a value that a program gives is none that the algorithm takes.
void check_range(const Algorithm& algorithm, const std::string& name, std::int64_t value) {
  for (const Parameter* parameter : declared(algorithm)) {
    if (name != parameter->name || (value >= parameter->least && value <= parameter->most)) continue;
    throw Error(fmt::format("algorithm '{}': parameter '{}' is {}; give {} to {}", algorithm.name, name, value,
                            parameter->least, parameter->most));
  }
}

/// Reports an entry without a module, at the key that was probably meant to be it.
void report_no_module(const Location& where, const ConfigNode& keys, const std::string& what, Problems& problems) {
  for (const ConfigNode::Entry& entry : keys.entries) {
    if (nearest(entry.key, kEntryKeys) != "module") continue;
    problems.add(entry.key_where, fmt::format("unknown key {} in '{}'", quote(entry.key), what),
                 "did you mean 'module'?");
    return;
  }
  problems.add(where, fmt::format("{} has no 'module'", what),
               "name a built-in one, such as kernbench.ccl.ring_allreduce, or a shared library");
}

/// For what names no file: the built-in module that was probably meant.
std::string hint_of_builtin(const std::string& module) {
  std::vector<std::string> names;
  for (const std::string& name : builtin_algorithms()) names.push_back(kBuiltinPrefix + name);
  const std::string near = nearest(module, names);
  return near.empty() ? "" : fmt::format("did you mean '{}'?", near);
}

}  // namespace

Registry::Registry() : algorithm_(kAuto), default_algorithm_(kDefaultAlgorithm) {
  for (const std::string& name : builtin_algorithms()) entries_[name].module = kBuiltinPrefix + name;
}

std::shared_ptr<const Registry> Registry::of(const std::string& file) {
  static std::map<std::string, std::shared_ptr<const Registry>> read;
  std::shared_ptr<const Registry>& known = read[file];
  if (known == nullptr) known = std::make_shared<Registry>(file);
  return known;
}

Registry::Registry(const std::string& file) : Registry() {
  if (file.empty()) return;
  entries_.clear();
  Problems problems;
  text_ = load_text(file);
  const ConfigNode root = parse_config(text_, file, &problems);
  read(root, problems);
  problems.throw_if_any();
}

void Registry::read(const ConfigNode& root, Problems& problems) {
  check_keys(root, "", {"defaults", "algorithms", "tuned"}, problems);
  const ConfigNode* algorithms = root.find("algorithms");
  if (algorithms == nullptr) {
    problems.add(root.where, "missing key 'algorithms'", "give a map of algorithm names, each with its module");
    return;
  }
  if (!expect_map(*algorithms, "algorithms", {}, problems)) return;
  if (algorithms->entries.empty()) {
    problems.add(algorithms->where, "'algorithms' is empty", "give algorithm names, each with its module");
    return;
  }
  std::vector<std::string> given;  // also of entries with something wrong: no other place is told of that
  for (const auto& [name, key_where, keys] : algorithms->entries) {
    if (name != kAuto) given.push_back(name);
    read_entry(name, key_where, keys, problems);
  }
  if (const ConfigNode* tuned = root.find("tuned")) tuned_.read(*tuned, given, problems);
  if (const ConfigNode* defaults = root.find("defaults")) read_defaults(*defaults, given, problems);
  if (entries_.count(default_algorithm_) == 0 && !entries_.empty()) default_algorithm_ = entries_.begin()->first;
}

void Registry::read_entry(const std::string& name, const Location& where, const ConfigNode& keys, Problems& problems) {
  const std::string what = "algorithms." + name;
  if (!expect_map(keys, what, {"module"}, problems)) return;
  if (name == kAuto) {
    problems.add(where, "'auto' is no name for an entry", "it stands for the choice among all; take another");
    return;
  }
  const std::optional<int> world_size = read_world_size(keys, what, problems);
  const std::optional<std::int64_t> n_elem = read_n_elem(keys, what, problems);
  const ConfigNode* module = keys.find("module");
  if (module == nullptr) return report_no_module(where, keys, what, problems);
  const auto text = read_text(*module, what + ".module", problems);
  if (!text) return;
  Entry entry{resolve_path(*text, module->where.file), module->where, keys, world_size, n_elem};
  try {  // a file is looked into when it is used
    if (is_builtin(*text)) {
      parameters_of(name, entry, *load_module(*text));
    } else if (std::error_code wrong; !std::filesystem::is_regular_file(entry.module, wrong)) {
      const bool there = std::filesystem::exists(entry.module, wrong);
      problems.add(
          module->where,
          fmt::format("algorithm module '{}': {}", entry.module, there ? "this is no file" : "there is no such file"),
          hint_of_builtin(*text));
    }
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem.where, problem.text, problem.hint);
  } catch (const Error& error) {
    problems.add(module->where, error.what());
  }
  entries_.emplace(name, std::move(entry));
}

void Registry::read_defaults(const ConfigNode& defaults, std::vector<std::string> valid, Problems& problems) {
  if (!expect_map(defaults, "defaults", {"algorithm", "n_elem", "world_size"}, problems)) return;
  check_keys(defaults, "defaults", {"algorithm", "n_elem", "world_size"}, problems);
  default_world_size_ = read_world_size(defaults, "defaults", problems);
  if (default_world_size_) default_world_size_where_ = defaults.find("world_size")->where;
  default_n_elem_ = read_n_elem(defaults, "defaults", problems);
  const ConfigNode* algorithm = defaults.find("algorithm");
  if (algorithm == nullptr) return;
  valid.emplace_back(kAuto);
  if (const auto index = read_name(*algorithm, "defaults.algorithm", valid, problems)) {
    algorithm_ = valid[*index];
    if (algorithm_ != kAuto) default_algorithm_ = algorithm_;
  }
}

Parameters Registry::parameters_of(const std::string& name, const Entry& entry, const Algorithm& algorithm) const {
  Parameters values;
  Problems problems;
  std::vector<std::string> valid = kEntryKeys;
  for (const Parameter* parameter : declared(algorithm)) {
    valid.emplace_back(parameter->name);
    std::int64_t& value = values[parameter->name] = parameter->preset;
    const ConfigNode* node = entry.keys.find(parameter->name);
    if (node == nullptr) continue;
    const IntegerRange range{static_cast<std::uint64_t>(parameter->least), static_cast<std::uint64_t>(parameter->most),
                             false};
    const auto read = parameter->unit == Parameter::Unit::bytes
                          ? read_quantity(*node, parameter->name, kernbench::Dimension::bytes, range, problems)
                          : read_integer(*node, parameter->name, range, problems);
    if (read) value = static_cast<std::int64_t>(*read);
  }
  check_keys(entry.keys, "algorithms." + name, valid, problems);
  problems.throw_if_any();
  return values;
}

std::optional<int> Registry::world_size(const std::string& name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.world_size ? found->second.world_size : default_world_size_;
}

std::vector<PeCoord> Registry::rank_pes(const std::string& name, const MachineMap& map) const {
  const auto found = entries_.find(name);
  const bool own = found != entries_.end() && found->second.world_size;
  const int ranks = world_size(name).value();
  try {
    return ccl::rank_pes(map, ranks);
  } catch (const Error& error) {
    throw ConfigError(own ? found->second.keys.find("world_size")->where : default_world_size_where_, error.what());
  }
}

std::optional<std::int64_t> Registry::n_elem(const std::string& name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.n_elem ? found->second.n_elem : default_n_elem_;
}

std::vector<std::string> Registry::module_files() const {
  std::vector<std::string> files;
  for (const auto& [name, entry] : entries_) {
    if (!is_builtin(entry.module)) files.push_back(entry.module);
  }
  return files;
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

void override_parameters(AlgorithmEntry& entry, const Parameters& values) {
  for (const auto& [key, value] : values) {
    const auto parameter = entry.parameters.find(key);
    if (parameter == entry.parameters.end()) {
      std::vector<std::string> valid;
      for (const auto& [declared_name, preset] : entry.parameters) valid.push_back(declared_name);
      throw Error(
          fmt::format("algorithm '{}' has no parameter '{}'; {}", entry.name, key, suggest(key, valid, "it has")));
    }
    check_range(*entry.algorithm, key, value);
    parameter->second = value;
  }
}

AlgorithmEntry Registry::load(const std::string& name, const Parameters& overrides, std::optional<int> ranks) const {
  const auto found = entries_.find(name);
  if (found == entries_.end() && !is_schedule_file(name))
    throw Error(fmt::format("no algorithm '{}'; {}", name, suggest(name, names(), "there are")));
  const Entry entry = found == entries_.end() ? Entry{name, {}, ConfigNode::make_map({}), {}, {}} : found->second;
  AlgorithmEntry loaded;
  loaded.name = name;
  loaded.module = entry.module;
  try {
    if (is_schedule_file(entry.module)) {
      Imported imported = import_schedule(entry.module, ranks);
      loaded.algorithm = std::move(imported.algorithm);
      loaded.schedule = std::move(imported.schedule);
    } else {
      loaded.algorithm = load_module(entry.module);
    }
  } catch (const Error& error) {
    if (entry.where.file.empty()) throw;
    throw ConfigError(entry.where, error.what());
  }
  loaded.parameters = parameters_of(name, entry, *loaded.algorithm);
  if (found != entries_.end()) loaded.world_size = world_size(name);
  override_parameters(loaded, overrides);
  loaded.check_signature();
  return loaded;
}

}  // namespace kernbench::ccl
