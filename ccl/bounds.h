#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// A time that no algorithm can beat, in nanoseconds.
struct Bound {
  std::string name;        ///< "sip_partition"
  std::string limited_by;  ///< in words: "links between SIPs"
  double ns = 0;
};

/// What a bound depends on besides the machine.
struct BoundInput {
  std::uint64_t bytes = 0;  ///< S: of one contribution
  Scope scope = Scope::sip;
  std::vector<std::uint16_t> sips;  ///< of the group
  std::vector<TensorShard> shards;  ///< of one rank; empty: spread evenly over all PEs
};

/// All lower bounds of an all_reduce, each valid for any algorithm without reduction in the network. Formulas:
/// docs/collectives.md, after reference/collectives/bounds.md.
std::vector<Bound> all_reduce_bounds(const MachineMap& map, const BoundInput& input);
/// The largest of them.
Bound largest(const std::vector<Bound>& bounds);

}  // namespace kernbench::ccl
