#include "ccl/contract/grid.h"

#include <algorithm>
#include <stdexcept>

namespace kernbench::ccl {
namespace {

constexpr Side kSideOrder[] = {Side::west, Side::east, Side::north, Side::south};

/// The side to take from `from` to `to` in a dimension of `n`; the shorter way of a ring, up on a tie.
bool upwards(int from, int to, int n, bool wrap) {
  if (!wrap) return to > from;
  const int up = (to - from + n) % n;
  return up <= n - up;
}

/// Nothing for the root.
std::optional<Side> parent_side(const Grid& grid, int root, int point) {
  const int x = grid.x(point), y = grid.y(point), rx = grid.x(root), ry = grid.y(root);
  if (x != rx) {
    if (y * grid.w + rx >= grid.points) return Side::north;
    return upwards(x, rx, grid.w, grid.wrap_x) ? Side::east : Side::west;
  }
  if (y != ry) return upwards(y, ry, grid.h, grid.wrap_y) ? Side::south : Side::north;
  return std::nullopt;
}

int depth_of(const Grid& grid, int root, int point) {
  int depth = 0;
  for (auto side = parent_side(grid, root, point); side; side = parent_side(grid, root, point), ++depth) {
    point = grid.neighbour(point, *side).value();
  }
  return depth;
}

/// Cycle of a w x h mesh with h even and w > 1: down column 0's right side in a snake, back up column 0.
std::vector<int> even_rows_cycle(int w, int h, bool transposed) {
  std::vector<int> order;
  const auto add = [&](int x, int y) { order.push_back(transposed ? x * h + y : y * w + x); };
  add(0, 0);
  for (int y = 0; y < h; ++y) {
    for (int i = 1; i < w; ++i) add(y % 2 == 0 ? i : w - i, y);
  }
  for (int y = h - 1; y > 0; --y) add(0, y);
  return order;
}

/// Cycle of a torus with both sides odd and h >= w: each row is walked all round but one step, so that the next one
/// starts a column further left (walking east) or right (walking west); the turns are balanced to end where they began.
std::vector<int> odd_torus_cycle(int w, int h, bool transposed) {
  std::vector<int> order;
  int x = 0;
  for (int y = 0; y < h; ++y) {
    const int step = y < (h + w) / 2 ? 1 : w - 1;  // (h + w) / 2 rows east, (h - w) / 2 west: w columns to the left
    for (int i = 0; i < w; ++i) {
      order.push_back(transposed ? x * h + y : y * w + x);
      if (i + 1 < w) x = (x + step) % w;
    }
  }
  return order;
}

std::vector<int> snake(int w, int h) {
  std::vector<int> order;
  for (int y = 0; y < h; ++y) {
    for (int i = 0; i < w; ++i) order.push_back(y * w + (y % 2 == 0 ? i : w - 1 - i));
  }
  return order;
}

bool is_grid(std::int32_t kind) { return kind == kTorus2d || kind == kMesh2d; }

}  // namespace

Grid Grid::sips(std::int32_t kind, int w, int h, int ranks) {
  if (!is_grid(kind)) return {ranks, 1, ranks, true, false};
  if (w * h != ranks) throw std::invalid_argument("a grid of SIPs has w * h ranks");
  const bool wrap = kind == kTorus2d;
  return {w, h, ranks, wrap, wrap};
}

std::optional<int> Grid::neighbour(int point, Side side) const {
  int nx = x(point), ny = y(point);
  const bool horizontal = side == Side::east || side == Side::west;
  int& moved = horizontal ? nx : ny;
  const int n = horizontal ? w : h;
  moved += side == Side::east || side == Side::south ? 1 : -1;
  if (moved < 0 || moved >= n) {
    if (!(horizontal ? wrap_x : wrap_y)) return std::nullopt;
    moved = (moved + n) % n;
  }
  const int found = ny * w + nx;
  if (found == point || found >= points) return std::nullopt;
  return found;
}

Direction direction_of(Side side, bool global) {
  switch (side) {
    case Side::north:
      return global ? Direction::global_n() : Direction::north();
    case Side::south:
      return global ? Direction::global_s() : Direction::south();
    case Side::east:
      return global ? Direction::global_e() : Direction::east();
    default:
      return global ? Direction::global_w() : Direction::west();
  }
}

int tree_root(const Grid& grid) {
  const int rows = grid.points / grid.w;  // full ones
  if (rows == 0) return grid.points / 2;
  return rows / 2 * grid.w + grid.w / 2;
}

TreePosition tree_position(const Grid& grid, int point, bool global) {
  const int root = tree_root(grid);
  TreePosition position;
  if (const auto side = parent_side(grid, root, point)) position.parent = direction_of(*side, global);
  for (const Side side : kSideOrder) {
    const auto child = grid.neighbour(point, side);
    if (child && parent_side(grid, root, *child) == opposite(side))
      position.children.push_back(direction_of(side, global));
  }
  position.depth = depth_of(grid, root, point);
  for (int other = 0; other < grid.points; ++other) {
    position.height = std::max(position.height, depth_of(grid, root, other));
  }
  return position;
}

TreePosition join(const TreePosition& upper, const TreePosition& lower) {
  TreePosition joined = lower;
  joined.depth += upper.depth;
  joined.height += upper.height;
  if (lower.parent) return joined;
  joined.parent = upper.parent;
  joined.children.insert(joined.children.end(), upper.children.begin(), upper.children.end());
  return joined;
}

std::vector<int> ring_order(std::int32_t kind, int w, int h, int ranks) {
  if (!is_grid(kind)) return snake(ranks, 1);
  if (w > 1 && h > 1) {
    if (h % 2 == 0) return even_rows_cycle(w, h, false);
    if (w % 2 == 0) return even_rows_cycle(h, w, true);
    if (kind == kTorus2d) return h >= w ? odd_torus_cycle(w, h, false) : odd_torus_cycle(h, w, true);
  }
  return snake(w, h);
}

std::optional<std::pair<int, int>> routed_closure(std::int32_t kind, int w, int h, int ranks) {
  if (kind != kMesh2d || ranks <= 2) return std::nullopt;
  if (w > 1 && h > 1 && (w % 2 == 0 || h % 2 == 0)) return std::nullopt;
  const auto order = snake(w, h);
  return std::pair(order.back(), order.front());
}

RingPosition ring_position(std::int32_t kind, int w, int h, int ranks, int rank) {
  const auto order = ring_order(kind, w, h, ranks);
  const Grid grid = Grid::sips(kind, w, h, ranks);
  const auto closure = routed_closure(kind, w, h, ranks);
  RingPosition ring;
  ring.size = ranks;
  ring.position = static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
  if (ranks == 1) return ring;
  // The queue from `from` to `to`; of two parallel links of a ring of two, the one that the first rank calls east or
  // south.
  const auto towards = [&](int from, int to) {
    if (closure &&
        ((closure->first == from && closure->second == to) || (closure->first == to && closure->second == from))) {
      return Direction::global(static_cast<unsigned>(to));
    }
    const bool first = from < to;
    for (const Side up : {Side::east, Side::south}) {
      const Side side = first ? up : opposite(up), other = opposite(side);
      if (grid.neighbour(from, side) == to) return direction_of(side, true);
      if (grid.neighbour(from, other) == to) return direction_of(other, true);
    }
    throw std::logic_error("ring order joins ranks that are no neighbours");
  };
  ring.next = towards(rank, order[static_cast<std::size_t>((ring.position + 1) % ranks)]);
  ring.previous = towards(rank, order[static_cast<std::size_t>((ring.position + ranks - 1) % ranks)]);
  return ring;
}

}  // namespace kernbench::ccl
