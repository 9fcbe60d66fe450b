#pragma once
#include <string>
#include <vector>

#include "tlm/config/config_node.h"

namespace kernbench::topology {

/// HBM devices of presets/hbm_generations.yaml: keys of section `cube.hbm` that `generation: NAME` stands for.
inline constexpr const char* kCustomGeneration = "custom";  ///< no device: the file gives every key

/// Names of the devices, then "custom".
std::vector<std::string> hbm_generation_names();
/// Map of the keys of a device; an empty map for "custom"; null pointer if there is no such device.
const ConfigNode* hbm_generation(const std::string& name);

}  // namespace kernbench::topology
