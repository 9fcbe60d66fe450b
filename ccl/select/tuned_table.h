#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tlm/config/config_node.h"
#include "tlm/config/embedded_text.h"
#include "tlm/kernel/call.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// What a machine is to collectives, in one word: topology, shape, links, queues, rates of memories and ports, what
/// ways take, and a fingerprint of every value that moves their times. Tuned times belong to it.
std::string machine_key(const MachineMap& map);

extern const EmbeddedText kShippedTimes[];  ///< the files of ccl/select/tuned: each a ccl.yaml of `kernbench tune`

/// Times that `kernbench tune` has measured: section `tuned` of ccl.yaml.
class TunedTable {
 public:
  /// What ships for a machine, of the built-in algorithms; may be nothing. Read once in a process.
  static const TunedTable& shipped(const std::string& machine);

  /// All algorithms of one operation on one machine, at the same sizes.
  struct Row {
    std::string machine;
    CollectiveOp op = CollectiveOp::all_reduce;
    Scope scope = Scope::sip;
    std::vector<std::uint64_t> bytes;               ///< S as in nccl-tests, rising
    std::map<std::string, std::vector<double>> ns;  ///< by algorithm and size; 0: could not run
  };

  /// Reads the list; reports what is wrong, also a name that is none of `algorithms`.
  void read(const ConfigNode& list, const std::vector<std::string>& algorithms, Problems& problems);
  void add(Row row) { rows_.push_back(std::move(row)); }
  void replace(Row row);  ///< adds it in place of the one of the same machine, operation and scope
  bool empty() const { return rows_.empty(); }
  /// The section's text, to be put below `tuned:`.
  std::string yaml() const;

  const Row* find(const std::string& machine, CollectiveOp op, Scope scope) const;
  /// What an algorithm takes at a size, ns: between two measured ones a power of the size. Nothing outside of the
  /// measured sizes, or if the algorithm did not run at both.
  static std::optional<double> ns(const Row& row, const std::string& algorithm, std::uint64_t bytes);

 private:
  std::vector<Row> rows_;
};

}  // namespace kernbench::ccl
