#pragma once
#include <string>
#include <vector>

#include "tlm/config/config_node.h"

namespace kernbench::topology {

/// One file or preset of an `extends` chain.
struct Layer {
  std::string file;    ///< as in messages
  std::string folder;  ///< what paths in it are relative to; empty for presets
  bool preset = false;
  bool on_disk = false;    ///< a file, no preset or text in memory
  Problems problems = {};  ///< of the text that leave a tree all the same: duplicate keys, tags
  ConfigNode tree;         ///< `cube_mesh` is already relative to the working directory
};

/// Stage 1's result: located trees, the base of the chain first, the named file last.
using Parsed = std::vector<Layer>;

/// Reads a preset or file and everything it extends. Throws ConfigError.
Parsed parse(const std::string& preset_or_file);
/// The same for a text in memory.
Parsed parse_text(const std::string& text, const std::string& name, const std::string& folder);
/// A layer of the text of a preset alone.
Layer parse_preset(const std::string& name);

/// One `--set key=value` as a tree of its own. Throws ConfigError.
Layer parse_set(const std::string& entry);

/// `topology show --stage 1`: the located tree of the file alone.
std::string show_parsed(const std::string& preset_or_file);

}  // namespace kernbench::topology
