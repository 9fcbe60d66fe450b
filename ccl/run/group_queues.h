#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ccl/contract/grid.h"
#include "ccl/data/region_map.h"
#include "ccl/import/entry.h"
#include "ccl/run/queues.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// The SIPs of a group as an algorithm is told of them.
struct SipShape {
  std::int32_t kind = kRing1d;
  int w = 0, h = 0;  ///< 0 where there is no grid
  int ranks = 1;

  /// The request with these SIPs.
  PlanRequest put_into(PlanRequest request) const {
    request.kind = kind;
    request.sip_w = w;
    request.sip_h = h;
    return request;
  }
};

/// The SIPs of a group as they are: part of a grid, and ranks that are PEs, are a ring.
SipShape sip_shape(const MachineMap& map, const Group& group);
/// As an algorithm sees them. Throws Error if it does not serve that.
SipShape sip_shape(const AlgorithmEntry& entry, const MachineMap& map, const Group& group);

/// Node pairs that schedules of one algorithm use, where nodes are ranks, all cubes, or all PEs of each rank.
struct NodeLinks {
  std::vector<std::pair<std::int32_t, std::int32_t>> ranks, cubes, pes;
};

/// What an algorithm needs of the queues.
struct QueueNeeds {
  std::uint32_t directions = 0;  ///< DirectionSet
  NodeLinks links{};
  bool sparing = false;  ///< in half of the rings' memory, so that other algorithms find room as well
};

/// The queue pairs of a process group: whom a direction reaches, and in which ring it arrives. The only place that
/// knows. All algorithms of the group share them: a pair that two of them use exists once.
class GroupQueues {
 public:
  /// Throws Error: no rank, a SIP that does not exist or stands in the group twice, rings without a slot.
  GroupQueues(const MachineMap& map, Group group, RingNumbers& rings);

  const MachineMap& map() const { return map_; }
  const Group& group() const { return group_; }

  /// Rows that one add() made: consecutive ones of every PE.
  using Added = std::map<PeCoord, std::pair<std::uint32_t, std::uint32_t>>;
  /// Adds what is missing. Throws Error, and adds nothing, if the rings do not fit beside those that are there.
  Added add(const SipShape& shape, const QueueNeeds& needs);
  /// Throws the Error that add() would, and adds nothing.
  void check(const SipShape& shape, const QueueNeeds& needs) const;
  /// Those rows of one rank's SIP, in (cube, pe, ring) order.
  std::vector<NeighbourEntry> rows(const Added& added, int rank) const;

  /// The queue from a node to another; `nodes_per_rank` may be fewer than there are. global(rank) to the same place in
  /// another rank; N S E W to a neighbouring cube, local(j) to a PE of the cube. To any other place global(k), where k
  /// goes on from the ranks: the cubes of all ranks, then the PEs of all ranks.
  Direction direction(NodeLevel level, int nodes_per_rank, std::int32_t from, std::int32_t to) const;

 private:
  struct Pair {
    Direction direction;
    PeCoord peer;
    Direction back;  ///< under which the peer knows this queue pair
    std::uint16_t ring = 0;
  };
  using Wanted = std::vector<Pair>;
  std::vector<PeCoord> members(int rank) const;  // a SIP's PEs, or the one PE that the rank is
  Wanted wanted(const SipShape& shape, std::uint32_t directions, int rank, std::uint16_t cube, std::uint16_t pe) const;
  /// Fit for certain, which is soon known: by their number at most.
  bool surely_fit(const QueueNeeds& needs) const;
  RingMemory memory_of(PeCoord pe, bool sparing) const;
  using Missing = std::map<PeCoord, std::vector<Pair>>;
  /// Pairs that are needed and are not there.
  Missing missing(const SipShape& shape, const QueueNeeds& needs) const;
  void check_room(const Missing& more, bool sparing) const;
  const Pair* find(PeCoord pe, Direction direction) const;
  PhysicalAddress ring_base(PeCoord pe, std::uint16_t ring) const;

  const MachineMap& map_;
  const Group group_;
  RingNumbers& rings_;
  std::map<PeCoord, std::vector<Pair>> pairs_;
};

}  // namespace kernbench::ccl
