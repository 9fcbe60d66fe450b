#include <algorithm>
#include <queue>
#include <random>
#include <tuple>

#include "ccl/schedule/lattice.h"

namespace kernbench::ccl {
namespace {

struct Arc {
  int to = 0;
  std::size_t edge = 0;  ///< of the graph
  std::size_t load = 0;  ///< whose load it counts to: the edge, or this direction of it
};

std::vector<std::vector<Arc>> arcs_of(const Graph& graph, bool directed = false) {
  std::vector<std::vector<Arc>> arcs(static_cast<std::size_t>(graph.nodes));
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    arcs[static_cast<std::size_t>(graph.edges[e].a)].push_back({graph.edges[e].b, e, directed ? 2 * e : e});
    arcs[static_cast<std::size_t>(graph.edges[e].b)].push_back({graph.edges[e].a, e, directed ? 2 * e + 1 : e});
  }
  return arcs;
}

/// Random integers from the standard engine alone: distributions differ between libraries.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

/// Grows one tree from `root`, always by the node that is reached over the least loaded edge, then the shallowest.
Tree grow(const Graph& graph, const std::vector<std::vector<Arc>>& arcs, std::vector<int>& load, int root, Dice& dice) {
  Tree tree;
  tree.root = root;
  tree.parent.assign(static_cast<std::size_t>(graph.nodes), -1);
  std::vector<bool> in(static_cast<std::size_t>(graph.nodes), false);
  using Entry = std::tuple<double, int, std::uint32_t, std::size_t, int, int>;  // load, depth, tie, counter, from, to
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::vector<int> depth(static_cast<std::size_t>(graph.nodes), 0);
  const auto enter = [&](int v) {
    in[static_cast<std::size_t>(v)] = true;
    for (const Arc& arc : arcs[static_cast<std::size_t>(v)]) {
      if (in[static_cast<std::size_t>(arc.to)]) continue;
      open.emplace(load[arc.load] / graph.edges[arc.edge].capacity, depth[static_cast<std::size_t>(v)] + 1, dice(),
                   arc.load, v, arc.to);
    }
  };
  enter(root);
  while (!open.empty()) {
    const auto [weight, at, tie, counter, from, to] = open.top();
    open.pop();
    if (in[static_cast<std::size_t>(to)]) continue;
    tree.parent[static_cast<std::size_t>(to)] = from;
    depth[static_cast<std::size_t>(to)] = at;
    ++load[counter];
    enter(to);
  }
  return tree;
}

}  // namespace

Graph Graph::of(const Lattice& grid) {
  Graph graph;
  graph.nodes = grid.nodes();
  for (int v = 0; v < grid.nodes(); ++v) {
    for (const int other : grid.neighbours(v)) {
      if (v < other) graph.edges.push_back({v, other, 1});
    }
  }
  return graph;
}

Graph Graph::complete(int nodes) {
  Graph graph;
  graph.nodes = nodes;
  for (int a = 0; a < nodes; ++a) {
    for (int b = a + 1; b < nodes; ++b) graph.edges.push_back({a, b, 1});
  }
  return graph;
}

Tree shortest_path_tree(const Graph& graph, int root) {
  const auto arcs = arcs_of(graph);
  Tree tree;
  tree.root = root;
  tree.parent.assign(static_cast<std::size_t>(graph.nodes), -1);
  std::vector<bool> in(static_cast<std::size_t>(graph.nodes), false);
  in[static_cast<std::size_t>(root)] = true;
  std::vector<int> order{root};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Arc& arc : arcs[static_cast<std::size_t>(order[i])]) {
      if (in[static_cast<std::size_t>(arc.to)]) continue;
      in[static_cast<std::size_t>(arc.to)] = true;
      tree.parent[static_cast<std::size_t>(arc.to)] = order[i];
      order.push_back(arc.to);
    }
  }
  return tree;
}

int eccentricity(const Graph& graph, int node) { return shortest_path_tree(graph, node).depth(); }

int centre(const Graph& graph) {
  int best = 0, best_hops = eccentricity(graph, 0);
  for (int v = 1; v < graph.nodes; ++v) {
    const int hops = eccentricity(graph, v);
    if (hops < best_hops) {
      best = v;
      best_hops = hops;
    }
  }
  return best;
}

std::vector<Tree> least_loaded_trees(const Graph& graph, int count, std::optional<int> root, bool directed) {
  const auto arcs = arcs_of(graph, directed);
  const int at = root.value_or(centre(graph));
  std::vector<Tree> best;
  double best_load = 0;
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    Dice dice(seed);
    std::vector<int> load(graph.edges.size() * 2, 0);
    std::vector<Tree> trees;
    trees.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) trees.push_back(grow(graph, arcs, load, at, dice));
    double most = 0;
    for (std::size_t i = 0; i < load.size(); ++i) {
      most = std::max(most, load[i] / graph.edges[directed ? i / 2 : std::min(i, graph.edges.size() - 1)].capacity);
    }
    if (best.empty() || most < best_load) {
      best = std::move(trees);
      best_load = most;
    }
  }
  return best;
}

}  // namespace kernbench::ccl
