#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tlm/config/config_node.h"

namespace kernbench::topology {

/// One file or preset of an `extends` chain, or one `--set key=value`.
struct Layer {
  std::string file;    ///< as in messages
  std::string folder;  ///< what paths in it are relative to; empty for presets
  bool preset = false;
  bool on_disk = false;    ///< a file, no preset or text in memory
  Problems problems = {};  ///< of the text that leave a tree all the same: duplicate keys, tags; of a `--set`, all
  ConfigNode tree;         ///< `cube_mesh` is already relative to the working directory
};

/// Hint of a file that cannot be read, where another one names it.
inline constexpr const char* kRelative = "paths are relative to the file that names them";

/// Stage 1's result: located trees.
struct Parsed {
  /// Each is laid on those before: a preset, what else the named file extends, that file, `--set` entries in order.
  std::vector<Layer> layers;
  std::size_t named = 0;          ///< the preset or file that was asked for
  bool extends_a_preset = false;  ///< else the first layer is the preset that gives what the file need not say
};

/// Reads a preset or file, everything it extends, and `sets`. Throws ConfigError.
Parsed parse(const std::string& preset_or_file, const std::vector<std::string>& sets);
/// The same for a text in memory.
Parsed parse_text(const std::string& text, const std::string& name, const std::string& folder,
                  const std::vector<std::string>& sets);
/// The same for a whole configuration in JSON, which has no lines: every place is `name`.
Parsed parse_config_json(const nlohmann::ordered_json& config, const std::string& name,
                         const std::vector<std::string>& sets);

/// `topology show --stage 1`: the located tree of the file alone.
std::string show_parsed(const std::string& preset_or_file);

}  // namespace kernbench::topology
