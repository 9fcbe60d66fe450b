#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ccl/contract/contract.h"

/// Shapes of the machine as algorithms see them: positions, neighbours, trees and rings over ranks and cubes. Pure.
namespace kernbench::ccl {

inline constexpr std::int32_t kRing1d = 0, kTorus2d = 1, kMesh2d = 2, kSwitch = 3, kFullyConnected = 4;

/// Points in rows of `w`, numbered row by row; the last row may be short. Wrapped dimensions are rings.
struct Grid {
  int w = 1, h = 1;
  int points = 1;
  bool wrap_x = false, wrap_y = false;

  static Grid mesh(int w, int points) { return {w, (points + w - 1) / w, points, false, false}; }
  /// The SIPs of a group: the grid of a torus or mesh; otherwise a ring in order of rank.
  static Grid sips(std::int32_t kind, int w, int h, int ranks);

  int x(int point) const { return point % w; }
  int y(int point) const { return point / w; }
  /// The neighbour on a side, if there is one other than the point itself.
  std::optional<int> neighbour(int point, Side side) const;
};

/// N, S, E, W for `global` false; global_N ... for true.
Direction direction_of(Side side, bool global);

/// Where a point stands in a spanning tree of a grid: to the root along its row to the root's column, then along the
/// column. On rings the shorter way, on a tie east or south. Points whose row lacks the root's column go north.
struct TreePosition {
  std::optional<Direction> parent;  ///< none: the root
  std::vector<Direction> children;  ///< west before east before north before south: left and right alternate
  int depth = 0;                    ///< hops to the root
  int height = 0;                   ///< depth of the deepest point of the whole tree
};
/// The root stands in the middle of the full rows.
int tree_root(const Grid& grid);
TreePosition tree_position(const Grid& grid, int point, bool global);
/// `upper`'s tree, with a copy of `lower` hanging below each of its points by that one's root.
TreePosition join(const TreePosition& upper, const TreePosition& lower);

/// Where a rank stands in the ring over all ranks of a group.
struct RingPosition {
  int position = 0, size = 1;
  Direction next, previous;  ///< equal only for two ranks
};
/// Ranks in the order of the ring. On a torus or mesh a Hamiltonian cycle of neighbours where the grid has one: both
/// sides above 1 and one of them even; on a torus also both odd, and a single row or column. Otherwise a snake, closed
/// by a routed queue between its ends.
std::vector<int> ring_order(std::int32_t kind, int w, int h, int ranks);
RingPosition ring_position(std::int32_t kind, int w, int h, int ranks, int rank);
/// The two ends of a snake that a routed queue closes, in the order of the ring (last, first); nothing if none is
/// needed.
std::optional<std::pair<int, int>> routed_closure(std::int32_t kind, int w, int h, int ranks);

}  // namespace kernbench::ccl
