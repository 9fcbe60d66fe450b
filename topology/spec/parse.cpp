#include "topology/spec/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/read.h"
#include "topology/spec/embedded_presets.h"

namespace kernbench::topology {

namespace {

namespace fs = std::filesystem;

constexpr const char* kBasePreset = "default";  ///< gives what a file does not say

Layer parse_preset(const std::string& name) {
  Layer layer;
  layer.file = embedded_preset_file(name);
  layer.preset = true;
  layer.tree = parse_config(embedded_preset(name), layer.file);
  return layer;
}

std::string relative_to(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).lexically_normal().string();
}

/// `cube_mesh` of a file is relative to the file; an empty one names none.
void anchor_paths(Layer& layer) {
  ConfigNode* mesh = layer.tree.find("cube_mesh");
  if (mesh == nullptr || !mesh->is_scalar() || mesh->text.empty() || layer.preset) return;
  mesh->text = relative_to(layer.folder, mesh->text);
}

Layer load_layer(const std::string& path) {
  Layer layer;
  layer.file = path;
  layer.folder = fs::path(path).parent_path().string();
  layer.on_disk = true;
  layer.tree = load_config(path, &layer.problems);
  anchor_paths(layer);
  return layer;
}

/// A file that cannot be read as a whole is a problem of the line that names it.
Layer load_named(const std::string& path, const Location& where) {
  try {
    return load_layer(path);
  } catch (const ConfigError& error) {
    const Problem& first = error.problems().front();
    if (where.line == 0 || first.where.line != 0) throw;
    throw ConfigError(where, fmt::format("extends: {} {}", quote(first.where.file), first.text), kRelative);
  }
}

/// What `name` stands for: a preset, or a file relative to `folder`. `where`: who asks; its line is 0 for the command
/// line.
Layer find_layer(const std::string& name, const std::string& folder, const Location& where) {
  if (is_preset(name)) return parse_preset(name);
  const std::string path = relative_to(folder, name);
  std::error_code ignored;
  if (names_file(name) || fs::exists(path, ignored)) return load_named(path, where);
  const std::string near = nearest(name, preset_names());
  throw ConfigError(
      where,
      where.line == 0 ? "is neither a preset nor a file"
                      : fmt::format("extends is {}, which is neither a preset nor a file", quote(name)),
      (near.empty() ? std::string() : fmt::format("did you mean '{}'? ", near)) + "presets: " + join(preset_names()));
}

/// Identity of a layer for the search of cycles.
std::string identity(const Layer& layer) {
  std::error_code ignored;
  return layer.preset ? "preset:" + layer.file : fs::weakly_canonical(layer.file, ignored).string();
}

/// Puts what `last` extends before it.
std::vector<Layer> follow(Layer last) {
  std::vector<Layer> chain;
  std::vector<std::string> seen = {identity(last)}, files = {last.file};
  chain.push_back(std::move(last));
  for (;;) {
    const Layer& first = chain.front();
    const ConfigNode* extends = first.tree.find("extends");
    if (extends == nullptr) return chain;
    Problems problems;
    const auto name = read_text(*extends, "extends", problems);
    problems.throw_if_any();
    Layer base = find_layer(*name, first.folder, extends->where);
    files.push_back(base.file);
    if (std::find(seen.begin(), seen.end(), identity(base)) != seen.end()) {
      throw ConfigError(extends->where, fmt::format("extends makes a cycle: {}", join(files, " -> ")),
                        "a file cannot extend itself");
    }
    seen.push_back(identity(base));
    chain.insert(chain.begin(), std::move(base));
  }
}

/// One `--set key=value` as a tree of its own. Throws ConfigError.
ConfigNode parse_set(const std::string& entry, const Location& where) {
  const std::size_t equals = entry.find('=');
  const std::string path = entry.substr(0, equals);
  const bool shaped = equals != std::string::npos && !path.empty() && path.front() != '.' && path.back() != '.' &&
                      path.find("..") == std::string::npos;
  if (!shaped) throw ConfigError(where, "is not of the form key=value", "write for example --set cube.noc.rows=8");
  ConfigNode value = parse_config_value(entry.substr(equals + 1), where);
  for (std::size_t end = path.size(); end != std::string::npos;) {
    const std::size_t dot = path.rfind('.', end - 1);
    ConfigNode map = ConfigNode::make_map(where);
    map.set(path.substr(dot == std::string::npos ? 0 : dot + 1, end - (dot == std::string::npos ? 0 : dot + 1)), where,
            std::move(value));
    value = std::move(map);
    end = dot;
  }
  if (value.find("extends") != nullptr) {
    throw ConfigError(where, "'extends' cannot be set here", "name the preset or file with --topology");
  }
  return value;
}

Parsed with_sets(Layer named, const std::vector<std::string>& sets) {
  Parsed parsed;
  parsed.layers = follow(std::move(named));
  parsed.extends_a_preset = parsed.layers.front().preset;
  if (!parsed.extends_a_preset) parsed.layers.insert(parsed.layers.begin(), parse_preset(kBasePreset));
  parsed.named = parsed.layers.size() - 1;
  for (const std::string& entry : sets) {
    Layer& layer = parsed.layers.emplace_back();
    layer.file = "--set " + entry;
    const Location where{layer.file, 0, 0};
    layer.tree = ConfigNode::make_map(where);
    try {
      layer.tree = parse_set(entry, where);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) layer.problems.add(problem.where, problem.text, problem.hint);
    }
  }
  return parsed;
}

ConfigNode to_node(const nlohmann::ordered_json& value, const Location& where) {
  ConfigNode node;
  node.where = where;
  if (value.is_object()) {
    node.kind = ConfigNode::Kind::map;
    for (const auto& [key, item] : value.items()) node.set(key, where, to_node(item, where));
  } else if (value.is_array()) {
    node.kind = ConfigNode::Kind::list;
    for (const auto& item : value) node.items.push_back(to_node(item, where));
  } else if (!value.is_null()) {
    node.kind = ConfigNode::Kind::scalar;
    node.quoted = value.is_string();
    node.text = node.quoted ? value.get<std::string>() : json_text(value);
  }
  return node;
}

}  // namespace

Parsed parse(const std::string& preset_or_file, const std::vector<std::string>& sets) {
  return with_sets(find_layer(preset_or_file, "", {preset_or_file, 0, 0}), sets);
}

Parsed parse_text(const std::string& text, const std::string& name, const std::string& folder,
                  const std::vector<std::string>& sets) {
  Layer layer;
  layer.file = name;
  layer.folder = folder;
  layer.tree = parse_config(text, name, &layer.problems);
  anchor_paths(layer);
  return with_sets(std::move(layer), sets);
}

Parsed parse_config_json(const nlohmann::ordered_json& config, const std::string& name,
                         const std::vector<std::string>& sets) {
  if (!config.is_object()) throw ConfigError({name, 0, 0}, "its configuration is no object", "give a whole result");
  Layer layer;
  layer.file = name;
  layer.tree = to_node(config, {name, 0, 0});
  return with_sets(std::move(layer), sets);
}

std::string show_parsed(const std::string& preset_or_file) {
  const Parsed parsed = parse(preset_or_file, {});
  return print_located(parsed.layers[parsed.named].tree);
}

}  // namespace kernbench::topology
