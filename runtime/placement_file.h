#pragma once
#include <string>

#include "runtime/placement.h"
#include "tlm/config/config_node.h"

namespace kernbench {

/// Reads a policy from YAML: a map with `cube`, `pe`, `num_cubes`, `num_pes`, each optional. Reports what is wrong with
/// its place; a SIP axis (`sip`, `num_sips`) and a flat index (`pe_index`) with what to use instead.
///
/// what  names the value in messages, e.g. "weights.policy"
DPPolicy read_dp_policy(const ConfigNode& node, const std::string& what, Problems& problems);

/// The same from a whole file. Throws ConfigError with file:line:column.
DPPolicy load_dp_policy(const std::string& path);

/// What to say of a key that placement must not have; empty for every other key.
std::string forbidden_placement_key(const std::string& key);

}  // namespace kernbench
