#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tlm/config/config_node.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

/// Stage 2's result.
struct Resolved {
  SystemSpec spec;
  /// Every value of the machine, in the form of topology.yaml with units: itself a valid, complete topology file.
  nlohmann::ordered_json config;
  /// 32 hex digits over `config`; the same machine has the same hash, however it was written down.
  std::string hash;
  /// Where each value was written: ("cube.noc.rows", location), in the order of `config`; then each cube, PE and link
  /// that an override changes (override_key).
  std::vector<std::pair<std::string, Location>> sources;
  /// Names of the files and `--set` entries that were laid on each other, in order.
  std::vector<std::string> layers;
  /// What it was read from: the topology files and the pinned layout.
  std::vector<std::string> files;

  /// Of a value, or of the first value of a section; no place if there is no such key.
  Location place_of(const std::string& key) const;
  /// Of values that do not go together: the one that was given last, a preset's before the user's file and `--set`.
  Location place_of(const std::vector<std::string>& keys) const;
};

/// Stages 1 and 2: reads a preset or file, what it extends, and `--set key=value` entries; checks everything.
///
/// preset_or_file  a preset's name, or the path of a YAML file
/// sets            "cube.noc.rows=8"; later ones win
/// Throws          ConfigError with every problem found.
Resolved resolve(const std::string& preset_or_file, const std::vector<std::string>& sets = {});
/// The same for text in memory; `name` stands for the file in messages. `extends` of files is relative to `folder`.
Resolved resolve_text(const std::string& text, const std::string& name, const std::vector<std::string>& sets = {},
                      const std::string& folder = ".");
/// The same for a configuration from a result file.
Resolved resolve_json(const nlohmann::ordered_json& config, const std::string& name,
                      const std::vector<std::string>& sets = {});

/// 128 bits of XXH3 as 32 hex digits: how configurations are hashed.
std::string hash_of(const std::string& text);

/// `topology show --stage 2`: the resolved configuration as YAML, each value with the place it comes from.
std::string show_resolved(const Resolved& resolved);

}  // namespace kernbench::topology
