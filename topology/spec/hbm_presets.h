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

/// `over` laid on a `cube` section. A generation in `over` replaces what `base` says about the HBM device.
ConfigNode merge_cube(ConfigNode base, const ConfigNode& over);
/// The `cube` section with the keys that its HBM generation stands for; its own keys win.
ConfigNode with_hbm_generation(ConfigNode cube);

}  // namespace kernbench::topology
