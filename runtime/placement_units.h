#pragma once
#include <cstdint>
#include <vector>

#include "runtime/placement.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"

namespace kernbench {

/// The cubes and PEs that tensors may use: the same on every SIP, and equally many PEs in every cube, so that a policy
/// means the same on every rank and shard i of one SIP faces shard i of the others. A machine without missing PEs has
/// all of them here.
struct PlacementUnits {
  std::vector<int> cubes;             ///< cube within SIP, ascending
  std::vector<std::vector<int>> pes;  ///< by position in `cubes`: PE within cube, ascending; lists of one length
  bool all = true;                    ///< nothing of the machine is left out

  /// PEs that each cube offers.
  int pes_per_cube() const { return pes.empty() ? 0 : static_cast<int>(pes.front().size()); }
};

/// A PE counts where it exists on every SIP; a cube without any is left out; the poorest cube says how many PEs of each
/// are used. They are the same positions in every cube if as many are common to all, otherwise the first of each.
PlacementUnits placement_units(const MachineMap& map);

/// They, on one SIP, in (cube, pe) order.
std::vector<PeCoord> pes_of(const PlacementUnits& units, std::uint16_t sip);

/// resolve_dp_policy over `units`: shards carry the cubes and PEs that exist. Throws std::invalid_argument naming
/// argument, value and allowed range.
std::vector<ShardSpec> place_shards(const DPPolicy& policy, Shape shape, int itemsize, const PlacementUnits& units,
                                    int target_sip);

/// Shards as messages and algorithms know them.
std::vector<TensorShard> machine_shards(const std::vector<ShardSpec>& shards);

}  // namespace kernbench
