#pragma once
#include <cstdint>
#include <optional>
#include <vector>

/// Grids of nodes and the trees on them that load all links alike: docs/constructions.md, Combs and Packings.
namespace kernbench::ccl {

/// w x h nodes, row by row; a wrapped dimension of three or more is a ring, a shorter one a line.
struct Lattice {
  int w = 1, h = 1;
  bool wrap_x = false, wrap_y = false;

  int nodes() const { return w * h; }
  int x(int node) const { return node % w; }
  int y(int node) const { return node / w; }
  int at(int x, int y) const { return y * w + x; }
  bool ring_x() const { return wrap_x && w > 2; }
  bool ring_y() const { return wrap_y && h > 2; }
  bool line() const { return w == 1 || h == 1; }                                 ///< one dimension only
  bool regular() const { return (ring_x() || w <= 2) && (ring_y() || h <= 2); }  ///< all nodes have as many links
  /// Next nodes, each once.
  std::vector<int> neighbours(int node) const;
};

/// A spanning tree: parent by node, -1 at the root.
struct Tree {
  int root = 0;
  std::vector<int> parent;

  std::vector<int> top_down() const;                                 ///< parents before children
  std::vector<int> depths() const;                                   ///< hops to the root, by node
  std::vector<int> heights(const std::vector<int>& top_down) const;  ///< hops to the deepest node below, by node
  int depth() const;                                                 ///< of the deepest node
};

/// Trees of a packing share the data in proportion to `units`.
struct TreeShare {
  Tree tree;
  int units = 1;
};

/// Shortest way in one dimension: +1, -1 or 0; `tie` chooses at the opposite node of an even ring.
int step_towards(int from, int to, int n, bool ring, bool tie);

/// Every node's way to `root`: first along its row, then along the root's column (rows_first), or the other way round.
Tree comb(const Lattice& grid, int root, bool rows_first, bool tie);

/// Shares of row-combs and column-combs, x : y, with which trees from all roots load rows and columns alike. One
/// dimension: 1 : 0 or 0 : 1.
struct Split {
  int x = 1, y = 0;
};
Split gather_split(const Lattice& grid);

/// Spanning trees for all_reduce that together load every link alike: a row-comb for each column and a column-comb for
/// each row, rooted in the middle of their spine, or at every node of a spine that is a ring.
std::vector<TreeShare> comb_packing(const Lattice& grid);
/// One tree per unit: a tree of four units stands there four times.
std::vector<Tree> unit_trees(const std::vector<TreeShare>& shares);

/// An undirected graph with capacities.
struct Graph {
  struct Edge {
    int a = 0, b = 0;
    double capacity = 1;
  };
  int nodes = 1;
  std::vector<Edge> edges;

  static Graph of(const Lattice& grid);
  static Graph complete(int nodes);
};

/// Breadth-first tree; of equal parents the first one.
Tree shortest_path_tree(const Graph& graph, int root);
/// Hops of the farthest node.
int eccentricity(const Graph& graph, int node);
/// A node from which all others are near.
int centre(const Graph& graph);
/// `count` trees for any graph, one after the other, each growing from its root by (load / capacity, depth); the best
/// of a few orders. `root`: of all of them; absent: the centre. `directed`: the trees are used one way only, so that
/// the two directions of an edge are loaded apart.
std::vector<Tree> least_loaded_trees(const Graph& graph, int count, std::optional<int> root, bool directed);

/// The tree with its root moved to the middle of its longest path.
Tree centred(const Tree& tree);
/// The tree with its root moved to `root`.
Tree rooted(const Tree& tree, int root);

}  // namespace kernbench::ccl
