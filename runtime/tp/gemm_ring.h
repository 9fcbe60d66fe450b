#pragma once
#include <optional>
#include <vector>

#include "tlm/kernel/direction.h"

namespace kernbench::tp {

/// A block on its way from one cube to a neighbour.
struct RingHop {
  int cube = 0;   ///< whose block
  Direction way;  ///< to the neighbour: to whom it goes, or from whom it comes
};

/// What a cube does at once: it takes a block from one neighbour, and passes the one that it took before to the other.
struct RingTurn {
  std::optional<RingHop> comes, goes;
};

/// How cube `self` of a mesh of w x h gets the blocks of all others: along a ring of neighbours, each block half way
/// round both ways; where the mesh has no ring (ccl::ring_order), along a line to both ends. By turns from the cubes
/// behind and from those ahead, the nearest first; its own block goes first.
///
/// Cubes that take their turns in step never wait for each other in a circle, however few messages a queue holds: what
/// a cube takes in a turn its neighbour passes on in the same one.
std::vector<RingTurn> ring_turns(int w, int h, int self);

/// Blocks that go over the busiest link of such a ring, one way.
int most_over_a_link(int w, int h);

}  // namespace kernbench::tp
