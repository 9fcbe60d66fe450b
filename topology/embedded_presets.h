#pragma once
#include <string>

namespace kernbench::topology {

/// A file of topology/presets, as built into the library.
struct EmbeddedPreset {
  const char* name;
  const char* text;
};
extern const EmbeddedPreset kEmbeddedPresets[];  ///< written by embed_presets.cmake; ends with a null name

/// Text of presets/NAME.yaml; throws std::out_of_range.
std::string embedded_preset(const std::string& name);
/// Its name in messages: "presets/NAME.yaml".
std::string embedded_preset_file(const std::string& name);

}  // namespace kernbench::topology
