#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ccl/contract/grid.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// What one PE does in a collective on one SIP.
struct PeWork {
  ShardView shard;                    ///< the whole of what it holds
  ShardView part;                     ///< its part: where m PEs of a cube hold copies, one m-th of the shard each
  bool reduces = false;               ///< runs the algorithm on its part; elsewhere the result is a copy
  std::optional<TreePosition> cubes;  ///< how the reduced part spreads over cubes that hold copies
  int line_index = 0, line_size = 1;  ///< place among the PEs of the cube that hold copies
  Direction before, after;            ///< queues to its neighbours among them
};

/// The machine lacks PEs that it has room for: copies then pass between any two PEs of a cube (kLocalPeers).
bool lacks_pes(const MachineMap& map);

/// A rank's tensor seen by scope: which PEs work on what, and the mesh of cubes that contribute on their own.
struct Layout {
  std::map<std::pair<int, int>, PeWork> work;  ///< by (cube, pe)
  int cube_w = 1, cube_h = 1;                  ///< effective mesh: 1 x 1 with scope sip
  std::int64_t n_elem = 0;                     ///< of the largest part

  /// Copies are recognised by equal offset_bytes. With scope sip one cube reduces for all that hold copies.
  /// Throws Error where the placement cannot be served.
  Layout(const MachineMap& map, Scope scope, Va base, const std::vector<TensorShard>& shards, std::size_t item);
};

}  // namespace kernbench::ccl
