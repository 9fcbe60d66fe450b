#include <algorithm>
#include <stdexcept>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

/// Makes the messages of direct_schedule.
class Direct {
 public:
  Direct(Operation operation, int nodes, int pieces, TaskGraph& graph)
      : operation_(operation), nodes_(nodes), pieces_(pieces), graph_(graph) {}

  std::int32_t make() {
    const bool whole = operation_.op == CollectiveOp::all_reduce;
    for (int m = 0; m < pieces_; ++m) {
      for (std::int32_t j = 0; j < nodes_; ++j) part(m, j, whole ? m * nodes_ + j : m);
    }
    return whole ? pieces_ * nodes_ : pieces_;
  }

 private:
  /// What belongs to node j, piece m.
  void part(int m, std::int32_t j, std::int32_t unit) {
    const std::int32_t root = operation_.root;
    switch (operation_.op) {
      case CollectiveOp::all_reduce: {
        const std::int32_t b = add({kEveryNode, kEveryNode, 0, 0, unit, unit + 1});
        spread(j, b, m, collect(j, b, m));
        return;
      }
      case CollectiveOp::reduce_scatter:
        collect(j, add({kEveryNode, j, j, 0, unit, unit + 1}), m);
        return;
      case CollectiveOp::all_gather:
        spread(j, add({j, kEveryNode, 0, j, unit, unit + 1}), m, {});
        return;
      case CollectiveOp::reduce:
        if (j == root) collect(j, add({kEveryNode, j, 0, 0, unit, unit + 1}), m);
        return;
      case CollectiveOp::broadcast:
        if (j == root) spread(j, add({j, kEveryNode, 0, 0, unit, unit + 1}), m, {});
        return;
      case CollectiveOp::gather:
        one(j, root, {j, root, 0, j, unit, unit + 1}, m);
        return;
      case CollectiveOp::scatter:
        one(root, j, {root, j, j, 0, unit, unit + 1}, m);
        return;
      case CollectiveOp::all_to_all:
        for (std::int32_t d = 0; d < nodes_; ++d) {
          const std::int32_t to = (j + d) % nodes_;
          one(j, to, {j, to, to, j, unit, unit + 1}, m);
        }
        return;
      case CollectiveOp::send_recv:
        if (root < 0)
          one(j, (j + operation_.peer) % nodes_, {j, (j + operation_.peer) % nodes_, 0, 0, unit, unit + 1}, m);
        if (root == j) one(j, operation_.peer, {j, operation_.peer, 0, 0, unit, unit + 1}, m);
        return;
      case CollectiveOp::barrier:
        break;
    }
    throw std::invalid_argument("barrier moves no data");
  }

  std::int32_t add(const Block& block) { return graph_.add_block(block); }
  std::int64_t priority(std::int32_t from, std::int32_t to, int m) const {
    return std::int64_t{m} * nodes_ + (to - from + nodes_) % nodes_;
  }
  void one(std::int32_t from, std::int32_t to, const Block& block, int m) {
    const std::int32_t b = add(block);
    if (from != to) graph_.add(from, to, b, false, priority(from, to, m));
  }
  std::vector<std::int32_t> collect(std::int32_t at, std::int32_t block, int m) {
    std::vector<std::int32_t> tasks;
    for (std::int32_t d = 1; d < nodes_; ++d) {
      const std::int32_t from = (at + nodes_ - d) % nodes_;
      tasks.push_back(graph_.add(from, at, block, true, priority(from, at, m)));
    }
    return tasks;
  }
  void spread(std::int32_t from, std::int32_t block, int m, const std::vector<std::int32_t>& before) {
    for (std::int32_t d = 1; d < nodes_; ++d) {
      const std::int32_t to = (from + d) % nodes_;
      const std::int32_t task = graph_.add(from, to, block, false, TaskGraph::kLevel + priority(from, to, m));
      for (const std::int32_t other : before) graph_.order(other, task);
    }
  }

  const Operation operation_;
  const int nodes_, pieces_;
  TaskGraph& graph_;
};

}  // namespace

Schedule direct_schedule(Operation operation, int nodes, int pieces, int lambda, bool ports) {
  Fabric fabric = Fabric::of(Graph::complete(nodes));
  fabric.assume(lambda, 1);
  TaskGraph graph(fabric, operation.op);
  const std::int32_t units = Direct(operation, nodes, pieces, graph).make();
  Schedule schedule = assemble(graph, list_schedule(graph, ports), units);
  schedule.root = operation.root;
  schedule.peer = operation.peer;
  return schedule;
}

}  // namespace kernbench::ccl
