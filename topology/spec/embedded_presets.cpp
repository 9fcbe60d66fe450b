#include "topology/spec/embedded_presets.h"

#include <stdexcept>

namespace kernbench::topology {
namespace {

constexpr const char* kGenerationsFile = "hbm_generations";

const EmbeddedText* find_embedded(const std::string& name) {
  for (const EmbeddedText* preset = kEmbeddedPresets; preset->name != nullptr; ++preset) {
    if (name == preset->name) return preset;
  }
  return nullptr;
}

/// First comment line of a file, without its mark.
std::string summary_of(const std::string& text) {
  const std::size_t end = text.find('\n');
  const std::size_t begin = text.find_first_not_of("# ");
  return text.substr(begin, end - begin);
}

}  // namespace

bool is_preset(const std::string& name) { return name != kGenerationsFile && find_embedded(name) != nullptr; }

std::string embedded_preset(const std::string& name) {
  const EmbeddedText* preset = find_embedded(name);
  if (preset == nullptr) throw std::out_of_range("no preset '" + name + "'");
  return preset->text;
}

std::string embedded_preset_file(const std::string& name) { return "presets/" + name + ".yaml"; }

std::vector<PresetInfo> presets() {
  std::vector<PresetInfo> result;
  for (const EmbeddedText* preset = kEmbeddedPresets; preset->name != nullptr; ++preset) {
    if (preset->name != std::string(kGenerationsFile)) result.push_back({preset->name, summary_of(preset->text)});
  }
  return result;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const PresetInfo& preset : presets()) names.push_back(preset.name);
  return names;
}

}  // namespace kernbench::topology
