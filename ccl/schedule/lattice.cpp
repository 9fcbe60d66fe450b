#include "ccl/schedule/lattice.h"

#include <algorithm>
#include <numeric>

namespace kernbench::ccl {

std::vector<int> Lattice::neighbours(int node) const {
  std::vector<int> found;
  const auto add = [&](int nx, int ny) {
    if (wrap_x) nx = (nx + w) % w;
    if (wrap_y) ny = (ny + h) % h;
    if (nx < 0 || ny < 0 || nx >= w || ny >= h) return;
    const int other = at(nx, ny);
    if (other != node && std::find(found.begin(), found.end(), other) == found.end()) found.push_back(other);
  };
  add(x(node) - 1, y(node));
  add(x(node) + 1, y(node));
  add(x(node), y(node) - 1);
  add(x(node), y(node) + 1);
  return found;
}

std::vector<int> Tree::top_down() const {
  std::vector<std::vector<int>> children(parent.size());
  for (std::size_t v = 0; v < parent.size(); ++v) {
    if (parent[v] >= 0) children[static_cast<std::size_t>(parent[v])].push_back(static_cast<int>(v));
  }
  std::vector<int> order{root};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& below = children[static_cast<std::size_t>(order[i])];
    order.insert(order.end(), below.begin(), below.end());
  }
  return order;
}

std::vector<int> Tree::depths() const {
  std::vector<int> depth(parent.size(), 0);
  for (const int v : top_down()) {
    if (v != root)
      depth[static_cast<std::size_t>(v)] = depth[static_cast<std::size_t>(parent[static_cast<std::size_t>(v)])] + 1;
  }
  return depth;
}

std::vector<int> Tree::heights(const std::vector<int>& order) const {
  std::vector<int> height(parent.size(), 0);
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    if (*v == root) continue;
    int& above = height[static_cast<std::size_t>(parent[static_cast<std::size_t>(*v)])];
    above = std::max(above, height[static_cast<std::size_t>(*v)] + 1);
  }
  return height;
}

int Tree::depth() const {
  const auto all = depths();
  return *std::max_element(all.begin(), all.end());
}

int step_towards(int from, int to, int n, bool ring, bool tie) {
  if (from == to) return 0;
  if (!ring) return to > from ? 1 : -1;
  const int up = (to - from + n) % n;
  if (2 * up == n) return tie ? 1 : -1;
  return 2 * up < n ? 1 : -1;
}

Tree comb(const Lattice& grid, int root, bool rows_first, bool tie) {
  Tree tree;
  tree.root = root;
  tree.parent.assign(static_cast<std::size_t>(grid.nodes()), -1);
  for (int v = 0; v < grid.nodes(); ++v) {
    if (v == root) continue;
    const int dx = step_towards(grid.x(v), grid.x(root), grid.w, grid.ring_x(), tie);
    const int dy = step_towards(grid.y(v), grid.y(root), grid.h, grid.ring_y(), tie);
    const bool along_row = dx != 0 && (rows_first || dy == 0);
    const int nx = grid.x(v) + (along_row ? dx : 0), ny = grid.y(v) + (along_row ? 0 : dy);
    tree.parent[static_cast<std::size_t>(v)] = grid.at((nx + grid.w) % grid.w, (ny + grid.h) % grid.h);
  }
  return tree;
}

namespace {

Split reduced(std::int64_t x, std::int64_t y) {
  const std::int64_t divisor = std::max<std::int64_t>(std::gcd(x, y), 1);
  return {static_cast<int>(x / divisor), static_cast<int>(y / divisor)};
}

}  // namespace

Split gather_split(const Lattice& grid) {
  if (grid.h == 1) return {1, 0};
  if (grid.w == 1) return {0, 1};
  // u = (n - 1) / (n k) is the load of a link of a dimension that carries everything; x (u_c + ..) = ... (section 1).
  const std::int64_t r = grid.h, c = grid.w, kr = grid.ring_y() ? 2 : 1, kc = grid.ring_x() ? 2 : 1;
  return reduced((r - 1) * c * kc - (c - 1) * kr, (c - 1) * r * kr - (r - 1) * kc);
}

std::vector<TreeShare> comb_packing(const Lattice& grid) {
  const std::int64_t r = grid.h, c = grid.w;
  std::vector<TreeShare> trees;
  // Weight of a dimension: 1 for a line, (n - 1) / n for a ring, over the common denominator r c.
  const std::int64_t row_weight = grid.ring_x() ? (c - 1) * r : r * c;  // w_c r c
  const std::int64_t column_weight = grid.ring_y() ? (r - 1) * c : r * c;
  Split split{1, 0};
  if (r > 1 && c > 1) {
    // x : y = (w_r - w_c / r) : (w_c - w_r / c)
    split = reduced((column_weight * r - row_weight) * c, (row_weight * c - column_weight) * r);
  } else if (c == 1) {
    split = {0, 1};
  }
  // The x share is spread over c spines, and over r roots where a spine is a ring; likewise y.
  const std::int64_t x_trees = c == 1 && r > 1 ? 0 : (r == 1 ? (grid.ring_x() ? c : 1) : c * (grid.ring_y() ? r : 1));
  const std::int64_t y_trees = r == 1 ? 0 : (c == 1 ? (grid.ring_y() ? r : 1) : r * (grid.ring_x() ? c : 1));
  const std::int64_t x_units = split.x * std::max<std::int64_t>(y_trees, 1);
  const std::int64_t y_units = split.y * std::max<std::int64_t>(x_trees, 1);
  const std::int64_t divisor = std::max<std::int64_t>(std::gcd(x_units, y_units), 1);
  const int middle_x = (grid.w - 1) / 2, middle_y = (grid.h - 1) / 2;
  // Ties alike for all roots: then the places where rings are cut differ.
  const auto add = [&](int x, int y, bool rows_first, std::int64_t units) {
    trees.push_back({comb(grid, grid.at(x, y), rows_first, false), static_cast<int>(units / divisor)});
  };
  if (grid.line()) {
    const bool row = grid.h == 1;
    const int n = grid.nodes();
    if (row ? grid.ring_x() : grid.ring_y()) {
      for (int i = 0; i < n; ++i) trees.push_back({comb(grid, i, row, false), 1});
    } else {
      trees.push_back({comb(grid, (n - 1) / 2, row, false), 1});
    }
    return trees;
  }
  for (int x = 0; x < grid.w; ++x) {
    for (int y = grid.ring_y() ? 0 : middle_y; y < (grid.ring_y() ? grid.h : middle_y + 1); ++y)
      add(x, y, true, x_units);
  }
  for (int y = 0; y < grid.h; ++y) {
    for (int x = grid.ring_x() ? 0 : middle_x; x < (grid.ring_x() ? grid.w : middle_x + 1); ++x)
      add(x, y, false, y_units);
  }
  return trees;
}

std::vector<Tree> unit_trees(const std::vector<TreeShare>& shares) {
  std::vector<Tree> trees;
  for (const TreeShare& share : shares) trees.insert(trees.end(), static_cast<std::size_t>(share.units), share.tree);
  return trees;
}

Tree rooted(const Tree& tree, int root) {
  Tree moved = tree;
  moved.root = root;
  int child = root, above = tree.parent[static_cast<std::size_t>(root)];
  moved.parent[static_cast<std::size_t>(root)] = -1;
  while (above >= 0) {
    const int next = tree.parent[static_cast<std::size_t>(above)];
    moved.parent[static_cast<std::size_t>(above)] = child;
    child = above;
    above = next;
  }
  return moved;
}

Tree centred(const Tree& tree) {
  const auto farthest = [](const Tree& from) {
    const auto depth = from.depths();
    return static_cast<int>(std::max_element(depth.begin(), depth.end()) - depth.begin());
  };
  const Tree from_end = rooted(tree, farthest(tree));
  int node = farthest(from_end);
  for (int up = from_end.depths()[static_cast<std::size_t>(node)] / 2; up > 0; --up) {
    node = from_end.parent[static_cast<std::size_t>(node)];
  }
  return rooted(tree, node);
}

}  // namespace kernbench::ccl
