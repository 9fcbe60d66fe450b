#pragma once
#include <string>
#include <vector>

#include "tlm/config/embedded_text.h"

namespace kernbench::topology {

extern const EmbeddedText kEmbeddedPresets[];  ///< the files of topology/presets

/// Text of presets/NAME.yaml; throws std::out_of_range.
std::string embedded_preset(const std::string& name);
/// Its name in messages: "presets/NAME.yaml".
std::string embedded_preset_file(const std::string& name);

/// A preset that ships with the tool.
struct PresetInfo {
  std::string name;
  std::string summary;  ///< first comment line of its file
};
std::vector<PresetInfo> presets();
std::vector<std::string> preset_names();
/// Not a file that presets are made of.
bool is_preset(const std::string& name);

}  // namespace kernbench::topology
