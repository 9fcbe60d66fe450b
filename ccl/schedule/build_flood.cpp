#include <algorithm>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

std::int32_t place(std::int32_t node, const Dimension& d) { return node / d.stride % d.size; }
std::int32_t at_place(std::int32_t node, const Dimension& d, std::int32_t to) {
  return node + (to - place(node, d)) * d.stride;
}

/// One part of the data of flood_schedule: what every node knows after each dimension.
class Flood {
 public:
  Flood(TaskGraph& graph, std::int32_t unit, std::int32_t result)
      : graph_(graph), unit_(unit), result_(result), done_(index(graph.fabric().nodes()), -1) {}

  /// Afterwards block `result_` of every node is the sum over its line in this dimension of what it was before.
  void dimension(const Dimension& d, bool first) {
    // One travelling block for each place in the line; the node there starts with it.
    std::vector<std::int32_t> travelling;
    for (std::int32_t i = 0; i < d.size; ++i) {
      travelling.push_back(graph_.add_block({first ? kEveryNode : kNobody, kNobody, 0, 0, unit_, unit_ + 1}));
    }
    has_.assign(done_.size(), std::vector<std::int32_t>(index(d.size), -1));
    if (!first) {
      for (std::size_t v = 0; v < done_.size(); ++v) {
        const std::int32_t own = place(static_cast<std::int32_t>(v), d);
        has_[v][index(own)] = graph_.add_local(static_cast<std::int32_t>(v), travelling[index(own)], result_, false);
        graph_.order(done_[v], has_[v][index(own)]);
      }
    }
    for (std::size_t v = 0; v < done_.size(); ++v) spread(d, static_cast<std::int32_t>(v), travelling);
    for (std::size_t v = 0; v < done_.size(); ++v) sum(d, static_cast<std::int32_t>(v), travelling);
  }

 private:
  void spread(const Dimension& d, std::int32_t v, const std::vector<std::int32_t>& travelling) {
    const std::int32_t own = place(v, d), n = d.size;
    const std::int32_t block = travelling[index(own)];
    const auto hop = [&](std::int32_t from, std::int32_t to, std::int32_t before, int distance) {
      const std::int32_t task = graph_.add(from, to, block, false, distance);
      if (before >= 0) graph_.order(before, task);
      has_[index(to)][index(own)] = task;
      return task;
    };
    if (d.kind == Dimension::Kind::all_pairs) {
      for (std::int32_t by = 1; by < n; ++by) hop(v, at_place(v, d, (own + by) % n), has_[index(v)][index(own)], by);
      return;
    }
    const bool ring = d.kind == Dimension::Kind::ring;
    for (const int by : {1, -1}) {
      // Both ways to the end of a line; half of a ring each, the opposite node from one side only.
      const std::int32_t reach = ring ? (by > 0 ? n / 2 : (n - 1) / 2) : (by > 0 ? n - 1 - own : own);
      std::int32_t from = v, before = has_[index(v)][index(own)];
      for (std::int32_t i = 1; i <= reach; ++i) {
        const std::int32_t to = at_place(v, d, (own + by * i + n) % n);
        before = hop(from, to, before, i);
        from = to;
      }
    }
  }

  /// Adds what has come in the order of the places, once all is there.
  void sum(const Dimension& d, std::int32_t v, const std::vector<std::int32_t>& travelling) {
    std::int32_t before = -1;
    for (std::int32_t i = 0; i < d.size; ++i) {
      const std::int32_t task = graph_.add_local(v, result_, travelling[index(i)], i > 0);
      if (before >= 0) {
        graph_.order(before, task);
      } else {
        for (const std::int32_t arrived : has_[index(v)]) {
          if (arrived >= 0) graph_.order(arrived, task);
        }
      }
      before = task;
    }
    done_[index(v)] = before;
  }

  TaskGraph& graph_;
  const std::int32_t unit_, result_;
  std::vector<std::int32_t> done_;              ///< by node: its last local step
  std::vector<std::vector<std::int32_t>> has_;  ///< by node and place: the task that brings its value
};

}  // namespace

Schedule flood_schedule(const PlanRequest& request, int colours, int lambda) {
  const Fabric fabric = machine_fabric(request, lambda);
  auto dims = dimensions(request);
  TaskGraph graph(fabric, CollectiveOp::all_reduce);
  for (std::int32_t unit = 0; unit < colours; ++unit) {
    const bool alone = dims.empty();
    const std::int32_t result = graph.add_block({alone ? kEveryNode : kNobody, kEveryNode, 0, 0, unit, unit + 1});
    Flood flood(graph, unit, result);
    for (std::size_t i = 0; i < dims.size(); ++i) flood.dimension(dims[i], i == 0);
    std::reverse(dims.begin(), dims.end());
  }
  return assemble(graph, list_schedule(graph), colours);
}

}  // namespace kernbench::ccl
