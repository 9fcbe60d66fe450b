#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

/// One part of the data of flood_schedule: what every node knows after each stage.
class Flood {
 public:
  /// `first`: the result's block starts with a node's contribution.
  Flood(TaskGraph& graph, std::int32_t unit, std::int32_t result)
      : graph_(graph), unit_(unit), result_(result), done_(index(graph.fabric().nodes())) {}

  /// Afterwards block `result_` of all `nodes` is the sum over their line in this dimension of what it was before.
  /// `first`: before, it was nothing, and the contribution counts.
  void dimension(const Dimension& d, bool first, const std::vector<std::int32_t>& nodes) {
    // One travelling block for each place in the line; the node there starts with it.
    std::vector<std::int32_t> travelling;
    travelling.reserve(index(d.size));
    for (std::int32_t i = 0; i < d.size; ++i) {
      travelling.push_back(graph_.add_block({first ? kEveryNode : kNobody, kNobody, 0, 0, unit_, unit_ + 1}));
    }
    has_.assign(done_.size(), std::vector<std::int32_t>(index(d.size), -1));
    if (!first) {
      for (const std::int32_t v : nodes) {
        const std::int32_t own = d.place(v);
        has_[index(v)][index(own)] = graph_.add_local(v, travelling[index(own)], result_, false);
        for (const std::int32_t before : done_[index(v)]) graph_.order(before, has_[index(v)][index(own)]);
      }
    }
    for (const std::int32_t v : nodes) spread(d, v, travelling);
    for (const std::int32_t v : nodes) sum(d, v, travelling);
  }

  /// Adds `from`'s result to that of `to`, once it is there.
  void collect(std::int32_t from, std::int32_t to, std::int64_t priority) {
    const std::int32_t task = graph_.add(from, to, result_, true, priority);
    for (const std::int32_t before : done_[index(from)]) graph_.order(before, task);
    done_[index(to)].push_back(task);
  }
  /// Copies `from`'s result to `to`.
  void copy(std::int32_t from, std::int32_t to, std::int64_t priority) {
    const std::int32_t task = graph_.add(from, to, result_, false, priority);
    for (const std::int32_t before : done_[index(from)]) graph_.order(before, task);
    done_[index(to)] = {task};
  }

 private:
  void spread(const Dimension& d, std::int32_t v, const std::vector<std::int32_t>& travelling) {
    const std::int32_t own = d.place(v), n = d.size;
    const std::int32_t block = travelling[index(own)];
    const auto hop = [&](std::int32_t from, std::int32_t to, std::int32_t before, int distance) {
      const std::int32_t task = graph_.add(from, to, block, false, distance);
      if (before >= 0) graph_.order(before, task);
      has_[index(to)][index(own)] = task;
      return task;
    };
    if (d.kind == Dimension::Kind::all_pairs) {
      // From the middle of the others outwards: on a ring the farthest first.
      for (std::int32_t i = 1; i < n; ++i) {
        const std::int32_t by = n / 2 + (i % 2 == 0 ? i / 2 : -(i / 2));
        hop(v, d.at_place(v, (own + by) % n), has_[index(v)][index(own)], i);
      }
      return;
    }
    const bool ring = d.kind == Dimension::Kind::ring;
    for (const int by : {1, -1}) {
      // Both ways to the end of a line; half of a ring each, the opposite node from one side only.
      const std::int32_t reach = ring ? (by > 0 ? n / 2 : (n - 1) / 2) : (by > 0 ? n - 1 - own : own);
      std::int32_t from = v, before = has_[index(v)][index(own)];
      for (std::int32_t i = 1; i <= reach; ++i) {
        const std::int32_t to = d.at_place(v, (own + by * i + n) % n);
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
    done_[index(v)] = {before};
  }

  TaskGraph& graph_;
  const std::int32_t unit_, result_;
  std::vector<std::vector<std::int32_t>> done_;  ///< by node: the tasks that make its result
  std::vector<std::vector<std::int32_t>> has_;   ///< by node and place: the task that brings its value
};

/// The next cube on the way from `cube` to `attach` in the top row: up the column, then along the row; straight to the
/// end of either, or to the neighbour.
std::int32_t next_to_top(const PlanRequest& request, std::int32_t cube, std::int32_t attach, bool straight) {
  const std::int32_t w = request.cube_w, x = cube % w;
  if (cube >= w) return straight ? x : cube - w;
  return straight ? attach : x < attach ? cube + 1 : cube - 1;
}

/// Non-neighbours of a line that exchange messages too: of a dimension, at the nodes that `at` takes.
template <class At>
void add_pairs(const Dimension& d, std::int32_t nodes, const At& at, NodePairs& pairs) {
  for (std::int32_t v = 0; v < nodes; ++v) {
    if (!at(v)) continue;
    for (std::int32_t to = d.place(v) + 1; to < d.size; ++to) pairs.emplace_back(v, d.at_place(v, to));
  }
}

bool in_sips(const PlanRequest& request, const Dimension& d) { return d.stride >= request.cubes(); }

std::vector<std::int32_t> nodes_at(const PlanRequest& request, std::int32_t cube) {
  std::vector<std::int32_t> nodes;
  nodes.reserve(index(request.ranks));
  for (std::int32_t sip = 0; sip < request.ranks; ++sip) nodes.push_back(sip * request.cubes() + cube);
  return nodes;
}

/// machine_fabric with links for all of flood_links.
Fabric flood_fabric(const PlanRequest& request, int lambda) {
  Fabric fabric = machine_fabric(request, lambda);
  const std::int32_t width = request.ranks > 1 && fabric.links().back().between_sips ? fabric.links().back().width : 1;
  const NodePairs known = machine_links(request);
  for (const auto& [a, b] : flood_links(request)) {
    if (std::binary_search(known.begin(), known.end(), std::pair(a, b))) continue;
    const bool sips = a / request.cubes() != b / request.cubes();
    fabric.add(a, b, sips ? width : 1, sips);
  }
  fabric.assume_ticks(lambda * width, lambda);
  return fabric;
}

/// Every node floods: one dimension after the other, cubes first; of two units one the other way round.
void flood_all(const PlanRequest& request, std::vector<Dimension> dims, std::int32_t units, TaskGraph& graph) {
  std::vector<std::int32_t> all(index(request.nodes()));
  for (std::size_t v = 0; v < all.size(); ++v) all[v] = static_cast<std::int32_t>(v);
  for (std::int32_t unit = 0; unit < units; ++unit) {
    const bool alone = dims.empty();
    const std::int32_t result = graph.add_block({alone ? kEveryNode : kNobody, kEveryNode, 0, 0, unit, unit + 1});
    Flood flood(graph, unit, result);
    for (std::size_t i = 0; i < dims.size(); ++i) flood.dimension(dims[i], i == 0, all);
    std::reverse(dims.begin(), dims.end());
  }
}

/// Sums of SIPs flood, from one cube of the top row for each unit.
void flood_sums(const PlanRequest& request, std::vector<Dimension> sips, const FloodShape& shape, TaskGraph& graph) {
  const std::int32_t n = request.cubes(), w = request.cube_w;
  for (std::int32_t unit = 0; unit < shape.units; ++unit) {
    const std::int32_t attach = shape.units == 1 ? w / 2 : unit % w;
    const auto next = [&](std::int32_t cube) { return next_to_top(request, cube, attach, shape.straight_cubes); };
    std::vector<std::int32_t> depth(index(n), 0), order;
    for (std::int32_t cube = 0; cube < n; ++cube) {
      for (std::int32_t at = cube; at != attach; at = next(at)) ++depth[index(cube)];
      if (cube != attach) order.push_back(cube);
    }
    const auto distance = [&](std::int32_t a, std::int32_t b) {
      return std::abs(a / w - b / w) + std::abs(a % w - b % w);
    };
    // Deepest first, of equal ones the nearest: what comes from far is added last.
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return std::make_tuple(-depth[index(a)], distance(a, next(a)), a) <
             std::make_tuple(-depth[index(b)], distance(b, next(b)), b);
    });
    Flood flood(graph, unit, graph.add_block({kEveryNode, kEveryNode, 0, 0, unit, unit + 1}));
    for (std::int32_t sip = 0; sip < request.ranks; ++sip) {
      for (const std::int32_t cube : order) {
        flood.collect(sip * n + cube, sip * n + next(cube), -depth[index(cube)] * TaskGraph::kLevel);
      }
    }
    const auto attached = nodes_at(request, attach);
    for (const Dimension& d : sips) flood.dimension(d, false, attached);
    std::reverse(sips.begin(), sips.end());
    for (std::int32_t sip = 0; sip < request.ranks; ++sip) {
      for (auto cube = order.rbegin(); cube != order.rend(); ++cube) {
        flood.copy(sip * n + next(*cube), sip * n + *cube, depth[index(*cube)]);
      }
    }
  }
}

}  // namespace

NodePairs flood_links(const PlanRequest& request) {
  NodePairs pairs = machine_links(request);
  const std::int32_t n = request.cubes(), w = request.cube_w;
  for (const Dimension& d : dimensions(request)) {
    if (d.kind == Dimension::Kind::all_pairs || d.size > kMostStraight) continue;
    add_pairs(
        d, request.nodes(), [&](std::int32_t v) { return v % n < w; }, pairs);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

Schedule flood_schedule(const PlanRequest& request, const FloodShape& shape, int lambda) {
  const Fabric fabric = flood_fabric(request, lambda);
  TaskGraph graph(fabric, CollectiveOp::all_reduce);
  auto dims = dimensions(request);
  for (Dimension& d : dims) {
    const bool straight = shape.straight_sips && in_sips(request, d) && d.size <= kMostStraight;
    if (straight) d.kind = Dimension::Kind::all_pairs;
  }
  if (!shape.at_top) {
    flood_all(request, dims, shape.units, graph);
  } else {
    dims.erase(std::remove_if(dims.begin(), dims.end(), [&](const Dimension& d) { return !in_sips(request, d); }),
               dims.end());
    flood_sums(request, dims, shape, graph);
  }
  return assemble(graph, list_schedule(graph), shape.units);
}

}  // namespace kernbench::ccl
