#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/ext/message.h"
#include "tlm/kernel/call.h"
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
  std::uint64_t bytes = 0;  ///< S as in nccl-tests: the larger of what one contributor gives and what it gets
  Scope scope = Scope::sip;
  std::vector<std::uint16_t> sips = {};  ///< of the group, by rank
  std::vector<TensorShard> shards = {};  ///< of the input of one rank; empty: spread evenly over all PEs
  CollectiveOp op = CollectiveOp::all_reduce;
  std::vector<TensorShard> out =
      {};                ///< of the output of one rank; empty: spread evenly. all_reduce in place: as `shards`
  int root = 0;          ///< rank, where there is one
  bool in_place = true;  ///< of gathers: the own block is in the output from the start
  /// send_recv: the ranks that each rank sends to, -1 for none; empty: the next one, in a ring.
  std::vector<int> to = {};
};

/// Bytes that must pass from link to link between SIPs at least, all directions together; 0 for one SIP.
double sip_link_bytes(const MachineMap& map, const BoundInput& input);

/// All lower bounds of a collective, each valid for any algorithm without reduction in the network; a single one of 0
/// ns if there is nothing to do. Formulas: docs/collective_algorithms.md, after bench/reference/collectives/bounds.md.
std::vector<Bound> collective_bounds(const MachineMap& map, const BoundInput& input);
/// The largest of them.
Bound largest(const std::vector<Bound>& bounds);
/// The one called `name`; 0 ns if there is none.
Bound named(const std::vector<Bound>& bounds, const std::string& name);

}  // namespace kernbench::ccl
