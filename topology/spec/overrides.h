#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "topology/spec/check.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

/// The key of what an override changes, for Resolved::place_of: a cube or PE by its name, a broken link by its two
/// ends, the lower one first.
std::string override_key(const std::string& name);
std::string override_key(const std::string& low, const std::string& high);

/// Reads `overrides` of the merged tree into `spec`, whose other values are read. Reports everything that is wrong.
///
/// More specific ones win: a PE's over its cube's; of the same kind the later one.
///
/// `sound`: the tree of a preset, on which they are checked alone where the machine is not sound.
///
/// Returns the places of what holds, by its key.
std::map<std::string, Location> apply_overrides(SystemSpec& spec, const ConfigNode& sound, const CheckContext& context);

/// The canonical list of overrides: one entry per cube, PE and link that differs. Empty if there are none.
nlohmann::ordered_json overrides_to_json(const SystemSpec& spec);

}  // namespace kernbench::topology
