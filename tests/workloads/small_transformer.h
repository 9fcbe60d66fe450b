#pragma once
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/tool_runner.h"

namespace kernbench {

/// A model file of the llama family, small enough to check element by element. `experts` lines go behind the MLP's
/// width.
inline std::string small_model(int layers, const std::string& experts = {}) {
  return "layers: " + std::to_string(layers) + "\nwidth: 32\nheads: 8\nkv_heads: 4\nhead_dim: 8\nmlp_width: 48\n" +
         experts +
         "gated: true\nactivation: silu\nnorm: rms\nepsilon: 1e-5\nvocabulary: 70\nposition: rotary\n"
         "rope_theta: 1000\npositions: 64\nbiases: false\ntied: false\n";
}

/// tp_transformer on four SIPs of two cubes of two PEs, both layers of the model `text`; `more` goes before the sizes
/// given here, and in their place.
inline std::vector<std::string> small_transformer(const Tool& tool, const std::vector<std::string>& more,
                                                  const std::string& text, const char* decode) {
  std::ofstream(tool.file("m.yaml")) << text;
  std::vector<std::string> arguments{"run",   "tp_transformer",      "--topology", "ring8",
                                     "--set", "system.sips.count=4", "--set",      "sip.cube_mesh.w=2",
                                     "--set", "sip.cube_mesh.h=1",   "--set",      "cube.pes=2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::vector<std::pair<const char*, const char*>> sizes{{"--model", "m.yaml"}, {"--page", "4"},
                                                         {"--layers", "2"},     {"--batch", "2"},
                                                         {"--prompt", "5"},     {"--decode", decode}};
  if (std::find(more.begin(), more.end(), "--requests") == more.end()) sizes.emplace_back("-w", "0");
  for (const auto& [option, value] : sizes) {
    if (std::find(more.begin(), more.end(), option) == more.end()) arguments.insert(arguments.end(), {option, value});
  }
  return arguments;
}

}  // namespace kernbench
