#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tlm/config/problems.h"

namespace kernbench {

/// A YAML value with its place in the file. Scalars stay text: the readers of config/read.h give them a type.
///
/// Differences from plain yaml-cpp: duplicate keys, keys that are no words, tags, second documents, and aliases inside
/// their own anchor are errors; aliases are copied; `<<: *anchor` merges keys that the map does not have.
class ConfigNode {
 public:
  enum class Kind { null, scalar, list, map };
  struct Entry;

  Kind kind = Kind::null;
  Location where;
  std::string text;               ///< of a scalar
  bool quoted = false;            ///< a scalar in quotes or a block scalar
  std::vector<ConfigNode> items;  ///< of a list
  std::vector<Entry> entries;     ///< of a map, in file order

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }

  /// Value of a key of this map, or null pointer.
  const ConfigNode* find(const std::string& key) const;
  ConfigNode* find(const std::string& key);
  /// Value at a dotted path of keys ("cube.noc.rows"), or null pointer.
  const ConfigNode* at_path(const std::string& dotted) const;
  const Entry* entry(const std::string& key) const;
  /// Sets a key of this map; adds it at the end if it is new.
  void set(const std::string& key, const Location& key_where, ConfigNode value);

  static ConfigNode make_map(Location where);
};

struct ConfigNode::Entry {
  std::string key;
  Location key_where;
  ConfigNode value;
};

/// Largest file that is read, and most values that it may hold once aliases are copied.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxConfigNodes = 300'000;

/// Parses YAML (JSON is YAML) whose root is a map. `file` is the name for messages. Throws ConfigError.
/// `problems` takes what leaves a tree all the same (duplicate keys, tags); without it that is thrown, too.
ConfigNode parse_config(const std::string& text, const std::string& file, Problems* problems = nullptr);
/// Parses one value as it may stand behind `key:`, such as "4 MiB" or "[r0c0, r0c1]". Every location is `where`.
ConfigNode parse_config_value(const std::string& text, const Location& where);
/// Reads and parses a file, of JSON if its name ends so. Throws ConfigError, also if it does not exist, is a directory,
/// is empty or too large.
ConfigNode load_config(const std::string& path, Problems* problems = nullptr);
/// All of a file, such as what load_config() parses. Throws ConfigError: it cannot be read, is a directory (hint:
/// `wanted`) or has more than `most` bytes (hint: `too_large`).
std::string load_text(const std::string& path, std::size_t most = kMaxConfigBytes,
                      const std::string& wanted = "give a YAML file",
                      const std::string& too_large = "this is probably not a configuration");

/// `over` laid on `base`: maps merge key by key, everything else is replaced. Locations stay those of the winner.
ConfigNode merge(ConfigNode base, const ConfigNode& over);

/// One line per scalar, "cube.noc.rows = 4  # machine.yaml:3:10", in file order.
std::string print_located(const ConfigNode& root);

/// "$.supertasks" and "s1" give "$.supertasks.s1"; a key that is no word is quoted: "$.tensors['layer.0']".
std::string json_path(const std::string& parent, const std::string& key);
std::string json_path(const std::string& parent, std::size_t item);

}  // namespace kernbench
