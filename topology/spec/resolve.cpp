#include "topology/spec/resolve.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>

#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "topology/spec/check.h"
#include "topology/spec/hbm_presets.h"
#include "topology/spec/overrides.h"
#include "topology/spec/parse.h"
#include "topology/spec/schema.h"

namespace kernbench::topology {

std::string hash_of(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(hash.high64), static_cast<std::uint64_t>(hash.low64));
}

namespace {

/// merge() of whole files.
ConfigNode merge_layer(ConfigNode base, const ConfigNode& over) {
  ConfigNode* cube = base.find("cube");
  const ConfigNode* cube_over = over.find("cube");
  if (cube == nullptr || cube_over == nullptr) return merge(std::move(base), over);
  ConfigNode rest = over;
  *rest.find("cube") = merge_cube(std::move(*cube), *cube_over);
  *cube = ConfigNode();  // replaced as a whole
  return merge(std::move(base), rest);
}

/// From layer number `first` on.
ConfigNode merge_layers(const std::vector<Layer>& layers, std::size_t first) {
  ConfigNode tree = ConfigNode::make_map(layers.back().tree.where);
  for (std::size_t i = first; i < layers.size(); ++i) tree = merge_layer(std::move(tree), layers[i].tree);
  tree.entries.erase(std::remove_if(tree.entries.begin(), tree.entries.end(),
                                    [](const ConfigNode::Entry& entry) { return entry.key == "extends"; }),
                     tree.entries.end());
  return tree;
}

/// A file that extends nothing must say what shapes the machine.
void check_required(const ConfigNode& tree, const Location& file, Problems& problems) {
  for (const std::string& path : required_paths(root_section())) {
    if (tree.at_path(path) != nullptr) continue;
    std::string parent = path;
    const ConfigNode* node = nullptr;
    while (node == nullptr && parent.find('.') != std::string::npos) {
      parent.erase(parent.rfind('.'));
      node = tree.at_path(parent);
    }
    if (node != nullptr && !node->is_map()) continue;  // reported as no map
    problems.add(node == nullptr ? file : node->where, fmt::format("missing key '{}'", path),
                 "give it, or start from a preset: 'extends: default'");
  }
}

void list_sources(const Section& section, const ConfigNode& tree, const nlohmann::ordered_json& config,
                  const std::string& path, std::vector<std::pair<std::string, Location>>& sources) {
  for (const auto& [key, value] : config.items()) {
    const Field* field = section.find(key);
    const ConfigNode* node = tree.find(key);
    if (field != nullptr && field->kind == FieldKind::section) {
      static const ConfigNode nothing;
      list_sources(*field->section, node == nullptr ? nothing : *node, value, dotted(path, key), sources);
    } else {
      sources.emplace_back(dotted(path, key), node == nullptr ? Location{"derived", 0, 0} : node->where);
    }
  }
}

/// Values that follow from others.
void derive(SystemSpec& spec, const ConfigNode& tree) {
  PcieConfig& pcie = spec.sip.io.pcie;
  const ConfigNode* bandwidth = tree.at_path("sip.io.pcie.bandwidth");
  if (bandwidth == nullptr || bandwidth->is_null()) pcie.bytes_per_second = pcie.bandwidth_of_lanes();
  InterSipSpec& links = spec.links;
  bandwidth = tree.at_path("system.links.bandwidth");
  if (bandwidth == nullptr || bandwidth->is_null())
    links.link.bytes_per_second = links.lanes * links.transfers_per_second / 8;
  const ConfigNode* latency = tree.at_path("system.links.latency");
  if (latency == nullptr || latency->is_null()) links.link.latency = 2 * links.serdes_per_side + links.propagation;
  links.link.check_bytes = links.link.flit_bytes;
  if (!spec.is_grid()) spec.sip_w = spec.sip_h = 0;
  for (NocConfig* crossbar : {&spec.sip.io.crossbar, &spec.links.switch_crossbar}) crossbar->rows = crossbar->cols = 1;
}

/// A pinned layout that no key names lies beside the topology file.
void find_cube_mesh(SystemSpec& spec, const Layer& main) {
  if (!spec.cube_mesh.empty() || !main.on_disk) return;
  const std::filesystem::path path = (std::filesystem::path(main.folder) / "cube_mesh.yaml").lexically_normal();
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) spec.cube_mesh = path.string();
}

/// One that cannot be read is a problem of `key`, which names it, or of the file that was found.
void load_cube_mesh(SystemSpec& spec, const ConfigNode* key, Problems& problems) {
  if (spec.cube_mesh.empty()) return;
  try {
    spec.cube_mesh_text = load_text(spec.cube_mesh);
  } catch (const ConfigError& error) {
    const Problem& first = error.problems().front();
    if (key == nullptr) return problems.add(first.where, first.text, first.hint);
    const char* hint = key->where.line > 0 ? kRelative : "";
    problems.add(key->where, fmt::format("cube_mesh: {} {}", quote(spec.cube_mesh), first.text), hint);
  }
}

/// Keys, wherever they stand. A pinned layout shows in the ways of packets, whatever its file is called.
bool moves_no_time(const std::string& key) {
  constexpr const char* kOthers[] = {"cube_mesh",       "gemm",   "pcie",        "m_cpu", "command",
                                     "kernel_contexts", "static", "static_power"};
  return key.find("energy") != std::string::npos ||
         std::find(std::begin(kOthers), std::end(kOthers), key) != std::end(kOthers);
}

nlohmann::ordered_json without(const nlohmann::ordered_json& config) {
  if (!config.is_structured()) return config;
  nlohmann::ordered_json rest = config.is_array() ? nlohmann::ordered_json::array() : nlohmann::ordered_json::object();
  for (const auto& [key, value] : config.items()) {
    if (config.is_object() && moves_no_time(key)) continue;
    nlohmann::ordered_json kept = without(value);
    if (kept.is_object() && kept.empty()) continue;
    if (config.is_array())
      rest.push_back(std::move(kept));
    else
      rest[key] = std::move(kept);
  }
  return rest;
}

/// MachineMap::fingerprint: of a whole configuration, its overrides among it, without what moves no time between the
/// start of a collective kernel and its end: energies, GEMM, PCIe, and what commands and launches take. The list of
/// overrides is in it even where it is empty.
std::string fingerprint(const nlohmann::ordered_json& config) {
  nlohmann::ordered_json timed = without(config);
  timed.emplace("overrides", nlohmann::ordered_json::array());
  return hash_of(json_text(timed)).substr(0, 16);
}

Resolved resolve_layers(const Parsed& parsed) {
  Problems problems;
  std::vector<std::string> layer_files;
  Resolved resolved;
  for (const Layer& layer : parsed.layers) {
    for (const Problem& problem : layer.problems.sorted()) problems.add(problem.where, problem.text, problem.hint);
    layer_files.push_back(layer.file);
    if (layer.on_disk) resolved.files.push_back(layer.file);
  }
  const Layer& main = parsed.layers[parsed.named];
  if (!parsed.extends_a_preset) check_required(merge_layers(parsed.layers, 1), {main.file, 0, 0}, problems);

  const ConfigNode merged = merge_layers(parsed.layers, 0);
  ConfigNode tree = merged;
  if (ConfigNode* cube = tree.find("cube")) *cube = with_hbm_generation(std::move(*cube));

  resolved.layers = layer_files;
  SystemSpec& spec = resolved.spec;
  spec.name = main.preset ? std::filesystem::path(main.file).stem().string() : main.file;
  std::set<std::string> failed;
  read_section(root_section(), tree, &spec, "", problems, failed);
  derive(spec, tree);
  find_cube_mesh(spec, main);
  load_cube_mesh(spec, tree.find("cube_mesh"), problems);
  if (!spec.cube_mesh.empty()) resolved.files.push_back(spec.cube_mesh);

  const CheckContext context{tree, layer_files, failed, problems};
  check_system(spec, context);
  check_cube(spec.cube, context);
  // Overrides are laid on the values as written.
  const auto overrides = apply_overrides(spec, parsed.layers.front().tree, {merged, layer_files, failed, problems});
  problems.throw_if_any();

  resolved.config = to_json(root_section(), &spec);
  if (auto changes = overrides_to_json(spec); !changes.empty()) resolved.config["overrides"] = std::move(changes);
  spec.fingerprint = fingerprint(resolved.config);
  list_sources(root_section(), tree, resolved.config, "", resolved.sources);
  resolved.sources.insert(resolved.sources.end(), overrides.begin(), overrides.end());
  resolved.hash = hash_of(json_text(resolved.config) + spec.cube_mesh_text);
  return resolved;
}

}  // namespace

Resolved resolve(const std::string& preset_or_file, const std::vector<std::string>& sets) {
  return resolve_layers(parse(preset_or_file, sets));
}

Resolved resolve_text(const std::string& text, const std::string& name, const std::vector<std::string>& sets,
                      const std::string& folder) {
  return resolve_layers(parse_text(text, name, folder, sets));
}

Resolved resolve_json(const nlohmann::ordered_json& config, const std::string& name,
                      const std::vector<std::string>& sets) {
  return resolve_layers(parse_config_json(config, name, sets));
}

namespace {

/// A file's name may hold anything; a comment ends with its line, and YAML takes UTF-8 only.
std::string comment(const std::string& text) {
  std::string line = escaped_bytes(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

/// `config` as YAML in block style, lists in flow style; a comment names the place that each value comes from.
void print(const nlohmann::ordered_json& config, const std::string& path, std::size_t indent,
           const std::map<std::string, std::string>& sources, std::string& out) {
  for (const auto& [key, value] : config.items()) {
    const std::string what = dotted(path, key);
    const std::string head = std::string(indent, ' ') + key + ":";
    if (value.is_object()) {
      out += head + "\n";
      print(value, what, indent + 2, sources, out);
      continue;
    }
    if (what == "overrides") {
      out += head + "\n";
      for (const auto& entry : value) out += "  - " + json_text(entry) + "\n";
      continue;
    }
    const bool plain = value.is_string() && value.get<std::string>().find_first_of(":#[]{},&*'\"") == std::string::npos;
    const std::string line = head + " " + (plain ? value.get<std::string>() : json_text(value));
    const auto source = sources.find(what);
    out += source == sources.end() ? line + "\n" : fmt::format("{:<44} # {}\n", line, source->second);
  }
}

}  // namespace

Location Resolved::place_of(const std::string& key) const {
  const auto found = std::find_if(sources.begin(), sources.end(), [&](const auto& source) {
    return source.first == key || source.first.rfind(key + ".", 0) == 0;
  });
  return found == sources.end() ? Location{} : found->second;
}

Location Resolved::place_of(const std::vector<std::string>& keys) const {
  std::vector<Location> places;
  for (const std::string& key : keys) {
    if (const Location place = place_of(key); !place.file.empty()) places.push_back(place);
  }
  return given_last(places, layers);
}

std::string show_resolved(const Resolved& resolved) {
  std::map<std::string, std::string> sources;
  for (const auto& [path, where] : resolved.sources) sources[path] = comment(where.str());
  std::string out = fmt::format("# {}, configuration {}\n", comment(resolved.spec.name), resolved.hash);
  print(resolved.config, "", 0, sources, out);
  return out;
}

}  // namespace kernbench::topology
