#include <array>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

/// Recursive halving and doubling on 2^q ranks; the others hand over first and get the result last.
class Halving {
 public:
  Halving(int nodes, TaskGraph& graph) : nodes_(nodes), graph_(graph) {
    while (2 * power_ <= nodes) power_ *= 2;
    last_.assign(index(power_), std::vector<std::int32_t>(index(power_), -1));
  }

  std::int32_t all_reduce() {
    for (std::int32_t b = 0; b < power_; ++b) graph_.add_block({kEveryNode, kEveryNode, 0, 0, b, b + 1});
    for (std::int32_t extra = power_; extra < nodes_; ++extra) {
      for (std::int32_t b = 0; b < power_; ++b) move(extra, extra - power_, b, true);
    }
    // Halving: with the partner at `distance`, a node gives up the half of its blocks that the partner keeps.
    for (std::int32_t distance = power_ / 2; distance > 0; distance /= 2) exchange(distance, true);
    for (std::int32_t distance = 1; distance < power_; distance *= 2) exchange(distance, false);
    for (std::int32_t extra = power_; extra < nodes_; ++extra) {
      for (std::int32_t b = 0; b < power_; ++b) move(extra - power_, extra, b, false);
    }
    return power_;
  }

 private:
  /// The blocks that a node works on when partners are `distance` apart share its number above that bit.
  void exchange(std::int32_t distance, bool reduce) {
    std::vector<std::array<std::int32_t, 3>> moves;
    for (std::int32_t v = 0; v < power_; ++v) {
      const std::int32_t partner = v ^ distance;
      for (std::int32_t b = 0; b < power_; ++b) {
        const std::int32_t keeper = reduce ? partner : v;
        if (b / distance == keeper / distance) moves.push_back({v, partner, b});
      }
    }
    for (const auto& [from, to, block] : moves) move(from, to, block, reduce);
  }

  void move(std::int32_t from, std::int32_t to, std::int32_t block, bool reduce) {
    const std::int32_t task = graph_.add(from, to, block, reduce, static_cast<std::int64_t>(graph_.tasks().size()));
    if (from < power_ && last_[index(from)][index(block)] >= 0) graph_.order(last_[index(from)][index(block)], task);
    if (to < power_) {
      // Additions to one block follow one another.
      std::int32_t& last = last_[index(to)][index(block)];
      if (last >= 0) graph_.order(last, task);
      last = task;
    }
  }

  const std::int32_t nodes_;
  std::int32_t power_ = 1;
  TaskGraph& graph_;
  std::vector<std::vector<std::int32_t>> last_;  ///< by node below 2^q and block: the task that changed it last
};

/// In-order binary tree over `nodes` places: odd ones are inner nodes, the deeper the fewer trailing zeros.
void in_order(std::int32_t begin, std::int32_t end, std::int32_t parent, std::vector<int>& parents) {
  if (begin >= end) return;
  std::int32_t span = 1;
  while (2 * span <= end - begin) span *= 2;
  // The root's left part is complete.
  const std::int32_t root = begin + span - 1;
  parents[index(root)] = parent;
  in_order(begin, root, root, parents);
  in_order(root + 1, end, root, parents);
}

}  // namespace

Schedule halving_doubling_schedule(int nodes, int lambda) {
  Fabric fabric = Fabric::of(Graph::complete(nodes));
  fabric.assume(lambda, 1);
  TaskGraph graph(fabric, CollectiveOp::all_reduce);
  const std::int32_t units = Halving(nodes, graph).all_reduce();
  return assemble(graph, list_schedule(graph), units);
}

Schedule double_tree_schedule(int nodes, int lambda) {
  Fabric fabric = Fabric::of(Graph::complete(nodes));
  fabric.assume(lambda, 1);
  TaskGraph graph(fabric, CollectiveOp::all_reduce);
  // Place i of the second tree is node i + 1: leaves (even places) of one tree are inner nodes of the other.
  std::vector<int> places(index(nodes), -1);
  in_order(0, nodes, -1, places);
  for (std::int32_t shift = 0; shift < 2; ++shift) {
    Tree tree;
    tree.parent.assign(index(nodes), -1);
    for (std::int32_t place = 0; place < nodes; ++place) {
      const std::int32_t node = (place + shift) % nodes, parent = places[index(place)];
      tree.parent[index(node)] = parent < 0 ? -1 : (parent + shift) % nodes;
      if (parent < 0) tree.root = node;
    }
    const std::int32_t b = graph.add_block({kEveryNode, kEveryNode, 0, 0, shift, shift + 1});
    graph.copy_down(tree, b, 0, graph.reduce_up(tree, b, 0));
  }
  return assemble(graph, modulo_schedule(graph, 5), 2);
}

Schedule one_direction_schedule(Operation operation, int nodes, int pieces, int lambda) {
  Fabric fabric = Fabric::of(Graph::of(Lattice{nodes, 1, true, false}));
  fabric.assume(lambda, 1);
  TaskGraph graph(fabric, operation.op);
  const bool whole = graph.facts().sums_for_all();
  for (std::int32_t m = 0; m < pieces; ++m) {
    for (std::int32_t owner = 0; owner < nodes; ++owner) {
      // The path that ends at the owner, and the one that begins there, both with the ring.
      Tree towards, away;
      towards.root = away.root = owner;
      for (std::int32_t v = 0; v < nodes; ++v) {
        towards.parent.push_back(v == owner ? -1 : (v + 1) % nodes);
        away.parent.push_back(v == owner ? -1 : (v + nodes - 1) % nodes);
      }
      const std::int32_t unit = whole ? m * nodes + owner : m;
      const std::int32_t b = graph.add_block_of(owner, unit, unit + 1);
      const std::int64_t order = std::int64_t{m} * nodes + owner;
      std::vector<std::int32_t> complete;
      if (graph.facts().combines()) complete = graph.reduce_up(towards, b, order);
      if (graph.facts().alike) graph.copy_down(away, b, TaskGraph::kLevel * (1 << 20) + order, complete);
    }
  }
  return assemble(graph, list_schedule(graph), whole ? pieces * nodes : pieces);
}

}  // namespace kernbench::ccl
