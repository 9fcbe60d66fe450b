#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ccl/import/entry.h"
#include "ccl/select/tuned_table.h"
#include "tlm/config/config_node.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// The entries of a ccl.yaml, or the built-in ones.
class Registry {
 public:
  /// One entry per built-in algorithm, named after it.
  Registry();
  /// Reads `file`; empty: the built-in entries. Throws ConfigError with file:line:column.
  explicit Registry(const std::string& file);
  /// The same, once in a process: what a run says, chooses and hashes is of one reading.
  static std::shared_ptr<const Registry> of(const std::string& file);

  const std::string& text() const { return text_; }  ///< of the file; empty: the built-in entries
  /// Runs where nobody names one: `defaults.algorithm`, otherwise "auto".
  const std::string& algorithm() const { return algorithm_; }
  /// The entry that goes first where nothing else decides: `defaults.algorithm`, otherwise the published one.
  const std::string& default_algorithm() const { return default_algorithm_; }
  /// `n_elem` of entry `name`, otherwise of the defaults: elements of a shard where nobody gives a size.
  std::optional<std::int64_t> n_elem(const std::string& name) const;
  /// `world_size` of entry `name`, otherwise of the defaults. None: ranks are SIPs.
  std::optional<int> world_size(const std::string& name) const;
  /// The PEs that are ranks, as many as world_size(name), in (sip, cube, pe) order. Throws ConfigError, where the file
  /// says the number, if the machine has fewer. REQUIRES: world_size(name).
  std::vector<PeCoord> rank_pes(const std::string& name, const MachineMap& map) const;
  std::vector<std::string> names() const;
  /// Where entry `name` gives its module. REQUIRES: there is one.
  const Location& where(const std::string& name) const { return entries_.at(name).where; }
  /// Files that entries name as their modules, resolved against the file's folder.
  std::vector<std::string> module_files() const;
  const TunedTable& tuned() const { return tuned_; }  ///< measured times, for Chooser
  /// Loads the module of entry `name`, which may also be the path of a schedule file, and checks it. `overrides`
  /// replace parameters of ccl.yaml. Throws Error: unknown entry (with the nearest), missing file, missing symbol,
  /// other ABI version, unknown parameter, or one out of its range, kernel_args and kernel that disagree. `ranks`,
  /// where they are known: a schedule file for another number is not proved, and refused once it is asked for a plan.
  AlgorithmEntry load(const std::string& name, const Parameters& overrides = {}, std::optional<int> ranks = {}) const;

 private:
  struct Entry {
    std::string module;  ///< built-in name, or path resolved against the file's folder
    Location where;      ///< of the module's name in the file; no file: built in
    ConfigNode keys;     ///< the entry's map, for the parameters
    std::optional<int> world_size{};
    std::optional<std::int64_t> n_elem{};
  };
  void read(const ConfigNode& root, Problems& problems);
  void read_entry(const std::string& name, const Location& where, const ConfigNode& keys, Problems& problems);
  void read_defaults(const ConfigNode& defaults, std::vector<std::string> valid, Problems& problems);
  Parameters parameters_of(const std::string& name, const Entry& entry, const Algorithm& algorithm) const;

  std::string text_, algorithm_, default_algorithm_;
  std::optional<std::int64_t> default_n_elem_;
  std::optional<int> default_world_size_;
  Location default_world_size_where_;
  std::map<std::string, Entry> entries_;
  TunedTable tuned_;
};

/// Replaces values of parameters. Throws Error: an unknown one (with the nearest), or a value out of its range.
void override_parameters(AlgorithmEntry& entry, const Parameters& values);

inline constexpr const char* kAuto = "auto";  ///< in place of an entry's name: the choice among all

}  // namespace kernbench::ccl
