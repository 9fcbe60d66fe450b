#pragma once
#include <string>

#include "tlm/config/embedded_text.h"

namespace kernbench::topology {

extern const EmbeddedText kEmbeddedPresets[];  ///< the files of topology/presets

/// Text of presets/NAME.yaml; throws std::out_of_range.
std::string embedded_preset(const std::string& name);
/// Its name in messages: "presets/NAME.yaml".
std::string embedded_preset_file(const std::string& name);

}  // namespace kernbench::topology
