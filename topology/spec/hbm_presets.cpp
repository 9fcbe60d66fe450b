#include "topology/spec/hbm_presets.h"

#include <algorithm>
#include <utility>

#include "topology/spec/embedded_presets.h"

namespace kernbench::topology {

namespace {
const ConfigNode& generations() {
  static const ConfigNode tree =
      parse_config(embedded_preset("hbm_generations"), embedded_preset_file("hbm_generations"));
  return tree;
}
}  // namespace

std::vector<std::string> hbm_generation_names() {
  std::vector<std::string> names;
  for (const ConfigNode::Entry& entry : generations().entries) names.push_back(entry.key);
  names.emplace_back(kCustomGeneration);
  return names;
}

const ConfigNode* hbm_generation(const std::string& name) {
  static const ConfigNode custom = ConfigNode::make_map({embedded_preset_file("hbm_generations"), 0, 0});
  return name == kCustomGeneration ? &custom : generations().find(name);
}

ConfigNode merge_cube(ConfigNode base, const ConfigNode& over) {
  const ConfigNode* generation = over.at_path("hbm.generation");
  ConfigNode* hbm = base.is_map() ? base.find("hbm") : nullptr;
  if (generation != nullptr && hbm != nullptr && hbm->is_map()) {
    // The keys of a device are the same for all devices.
    const ConfigNode& device = *hbm_generation(hbm_generation_names().front());
    hbm->entries.erase(
        std::remove_if(hbm->entries.begin(), hbm->entries.end(),
                       [&](const ConfigNode::Entry& entry) { return device.find(entry.key) != nullptr; }),
        hbm->entries.end());
  }
  return merge(std::move(base), over);
}

ConfigNode with_hbm_generation(ConfigNode cube) {
  ConfigNode* hbm = cube.is_map() ? cube.find("hbm") : nullptr;
  if (hbm == nullptr || !hbm->is_map()) return cube;
  const ConfigNode* name = hbm->find("generation");
  const ConfigNode* device = name != nullptr && name->is_scalar() ? hbm_generation(name->text) : nullptr;
  // An unknown name is reported once; any device keeps the other keys from being reported as missing.
  if (device == nullptr) device = hbm_generation(hbm_generation_names().front());
  const Location where = name == nullptr ? hbm->where : name->where;  // for keys that are missing
  *hbm = merge(*device, *hbm);
  hbm->where = where;
  return cube;
}

}  // namespace kernbench::topology
