#pragma once
#include <cstdint>
#include <vector>

#include "ccl/collective.h"
#include "ccl/grid.h"

namespace kernbench::ccl {

/// The SIPs of a group as an algorithm is told of them.
struct SipShape {
  std::int32_t kind = kRing1d;
  int w = 0, h = 0;  ///< 0 where there is no grid
  int ranks = 1;
};

/// Neighbour tables of all PEs of a group, from machine, group and the directions that an algorithm uses. This is the
/// only place that knows whom a direction reaches.
class NeighbourTables {
 public:
  /// `directions`: DirectionSet. Takes the rings of every PE of the group. Throws Error if they do not fit.
  NeighbourTables(const MachineMap& map, Group group, SipShape shape, std::uint32_t directions, RingNumbers& rings);

  /// Rows of the PEs of one rank's SIP, in (cube, pe, ring) order.
  std::vector<NeighbourEntry> of_rank(int rank) const;

 private:
  struct Pair {
    Direction direction;
    PeCoord peer;
    Direction back;  ///< under which the peer knows this queue pair
  };
  std::vector<Pair> pairs(int rank, std::uint16_t cube, std::uint16_t pe) const;
  std::uint16_t ring(PeCoord pe, int rank, Direction direction) const;
  PhysicalAddress ring_base(PeCoord pe, std::uint16_t ring) const;
  std::vector<PeCoord> members(int rank) const;  // a SIP's PEs, or the one PE that the rank is
  int rank_of(PeCoord pe) const;

  const MachineMap& map_;
  const Group group_;
  const SipShape shape_;
  const std::uint32_t directions_;
  std::map<PeCoord, std::uint16_t> first_ring_;
};

}  // namespace kernbench::ccl
