#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <tuple>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

std::int32_t place(std::int32_t node, const Dimension& d) { return node / d.stride % d.size; }
std::int32_t at_place(std::int32_t node, const Dimension& d, std::int32_t to) {
  return node + (to - place(node, d)) * d.stride;
}

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
        const std::int32_t own = place(v, d);
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
    const std::int32_t own = place(v, d), n = d.size;
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
        hop(v, at_place(v, d, (own + by) % n), has_[index(v)][index(own)], i);
      }
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
    for (std::int32_t to = place(v, d) + 1; to < d.size; ++to) pairs.emplace_back(v, at_place(v, d, to));
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

namespace {

/// The SIPs' dimensions. Throws std::invalid_argument where a line is too long for queues between all of it.
std::vector<Dimension> straight_lines(const PlanRequest& request) {
  auto dims = dimensions(request);
  dims.erase(std::remove_if(dims.begin(), dims.end(), [&](const Dimension& d) { return !in_sips(request, d); }),
             dims.end());
  for (const Dimension& d : dims) {
    if (d.size > kMostStraight) {
      throw std::invalid_argument(fmt::format(
          "a line of {} SIPs is too long for queues between all of them; at most {}", d.size, kMostStraight));
    }
  }
  if (request.cube_h > kMostStraight) throw std::invalid_argument("columns of cubes are too long");
  return dims;
}

/// Where a top-row cube's sum of a block goes next: in stage 0 along the first of `lines` and to the owner's column of
/// cubes, in stage 1 along the second.
std::int32_t next_across(const PlanRequest& request, const std::vector<Dimension>& lines, std::size_t stage,
                         std::int32_t node, std::int32_t owner) {
  const std::int32_t n = request.cubes();
  std::int32_t to = node;
  if (stage < lines.size()) to = at_place(node, lines[stage], place(owner, lines[stage]));
  return stage == 0 ? to - to % n + owner % request.cube_w : to;
}

}  // namespace

NodePairs funnel_links(const PlanRequest& request) {
  NodePairs pairs;
  const std::int32_t n = request.cubes(), w = request.cube_w;
  const auto lines = straight_lines(request);
  for (std::int32_t node = 0; node < request.nodes(); ++node) {
    const std::int32_t cube = node % n;
    if (cube >= w) {
      pairs.emplace_back(node - cube + cube % w, node);
      continue;
    }
    // To all cubes of the top rows along the first line; along the second to those of the own column.
    for (std::int32_t sip = 0; sip < (lines.empty() ? 1 : lines[0].size); ++sip) {
      const std::int32_t there = lines.empty() ? node : at_place(node, lines[0], sip);
      for (std::int32_t x = 0; x < w; ++x) pairs.emplace_back(node, there - there % n + x);
    }
    for (std::int32_t sip = 0; lines.size() > 1 && sip < lines[1].size; ++sip) {
      pairs.emplace_back(node, at_place(node, lines[1], sip));
    }
  }
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.first >= pair.second; }),
              pairs.end());
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

Schedule funnel_schedule(const PlanRequest& request, int lambda) {
  const auto lines = straight_lines(request);
  const std::int32_t n = request.cubes(), w = request.cube_w, p = request.nodes();
  Fabric fabric(p);
  for (const auto& [a, b] : funnel_links(request)) fabric.add(a, b, 1, a / n != b / n);
  // What comes from another SIP is long on its way: all that a node does for others comes before it.
  fabric.assume_ticks(lambda > 0 ? 2 * p : 0, lambda);
  TaskGraph graph(fabric, CollectiveOp::reduce_scatter);
  for (std::int32_t owner = 0; owner < p; ++owner) {
    const std::int32_t head = owner - owner % n + owner % w;
    Flood flood(graph, 0, graph.add_block({kEveryNode, owner, owner, 0, 0, 1}));
    // What has the longest way left goes first: other SIPs' blocks before those of the own.
    const auto collect = [&](std::int32_t from, std::int32_t to, std::int64_t stage) {
      const bool leaves = from / n != owner / n;
      if (from != to) flood.collect(from, to, (stage - (leaves ? 8 : 0)) * TaskGraph::kLevel + owner);
    };
    for (std::int32_t node = 0; node < p; ++node) {
      if (node % n >= w) collect(node, node - node % n + node % w, 0);
    }
    for (std::size_t stage = 0; stage < std::max<std::size_t>(lines.size(), 1); ++stage) {
      for (std::int32_t node = 0; node < p; ++node) {
        // In the second stage only SIPs of the owner's column have something, in the owner's column of cubes.
        const bool has = node % n < w && (stage == 0 || next_across(request, lines, 0, node, owner) == node);
        if (has) collect(node, next_across(request, lines, stage, node, owner), static_cast<std::int64_t>(stage) + 1);
      }
    }
    if (head != owner) flood.copy(head, owner, 4 * TaskGraph::kLevel + owner);
  }
  return assemble(graph, list_schedule(graph), 1);
}

}  // namespace kernbench::ccl
