#include "topology/spec/hbm_presets.h"

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

}  // namespace kernbench::topology
