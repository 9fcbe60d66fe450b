#pragma once
#include <map>
#include <optional>
#include <vector>

#include "ccl/contract/grid.h"
#include "ccl/contract/verbs.h"
#include "ccl/data/lanes.h"
#include "ccl/data/region_map.h"

namespace kernbench::ccl {

/// How results reach all copies of the elements that they are stored to: the lanes of one cube hold a part each, which
/// goes to the same PEs of the other cubes along a tree and then to the other PEs of each cube along their line.
struct Spread {
  struct Part {
    std::int64_t count = 0;
    std::uint64_t offset = 0;  ///< bytes from the tensor's base
  };
  struct Role {
    std::optional<TreePosition> cubes;     ///< nothing: one cube holds all copies
    int index = 0;                         ///< of `parts`: this PE's place among those of the cube that hold copies
    Direction before, after;               ///< queues to its neighbours there
    std::vector<std::vector<Part>> parts;  ///< by PE of the line
  };
  std::map<std::pair<int, int>, Role> roles;  ///< by (cube, PE)
};

/// The spreads of one node's `out` after `regions` of it have been written. `node`: within its rank.
/// Throws Error where copies do not lie on neighbouring PEs or on cubes 0 to n-1.
Spread make_spread(const MachineMap& map, const CallMaps& maps, const Lanes& lanes, int node,
                   const std::vector<std::int32_t>& regions, std::size_t item);

/// This PE's share of it; nothing to do without a role.
void spread(const Spread& spread, Verbs& verbs, int cube, int pe);

/// The PEs of a cube, or of several, that hold copies of one shard: in each cube the same ones, one after the other
/// unless `gaps_allowed`; several cubes from 0 on without a gap. Throws Error.
void check_copies(const std::map<int, std::vector<int>>& pes_by_cube, bool gaps_allowed, std::uint16_t sip);

}  // namespace kernbench::ccl
