#include <algorithm>
#include <map>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

/// A list is a lattice with one side of 1; then only one kind of comb exists.
struct Kind {
  bool rows_first;
  std::int32_t units;
};

std::vector<Kind> kinds_of(const Lattice& grid) {
  const Split split = gather_split(grid);
  std::vector<Kind> kinds;
  if (split.x > 0) kinds.push_back({true, split.x});
  if (split.y > 0) kinds.push_back({false, split.y});
  return kinds;
}

/// Nodes from `from` to `to`: along the row first or along the column first.
std::vector<std::int32_t> path(const Lattice& grid, std::int32_t from, std::int32_t to, bool rows_first, bool tie) {
  std::vector<std::int32_t> nodes{from};
  int x = grid.x(from), y = grid.y(from);
  const auto walk = [&](bool row) {
    int& at = row ? x : y;
    const int n = row ? grid.w : grid.h;
    const int target = row ? grid.x(to) : grid.y(to);
    const int step = step_towards(at, target, n, row ? grid.ring_x() : grid.ring_y(), tie);
    while (at != target) {
      at = (at + step + n) % n;
      nodes.push_back(grid.at(x, y));
    }
  };
  walk(rows_first);
  walk(!rows_first);
  return nodes;
}

}  // namespace

Schedule comb_gather_schedule(Operation operation, const Lattice& grid, int pieces, int lambda, int diagonals) {
  const OperationFacts& facts = facts_of(operation.op);
  const bool reduces = facts.combines(), divides = facts.sums_for_all();  // among the roots
  const auto kinds = kinds_of(grid);
  const std::int32_t p = grid.nodes();
  std::int32_t piece_units = 0, largest = 0;
  for (const Kind& kind : kinds) {
    piece_units += kind.units;
    largest = std::max(largest, kind.units);
  }
  const std::int32_t region_units = piece_units * pieces;

  Fabric fabric = Fabric::of(Graph::of(grid));
  fabric.assume(lambda, largest);
  TaskGraph graph(fabric, operation.op);
  // What a reduce_scatter waits for is one piece of everything (decision 0340).
  const bool some = pieces >= TaskGraph::kManyPieces / 2 && pieces < TaskGraph::kManyPieces;
  const bool together = diagonals == 1 && !(reduces && !divides && some);
  for (std::int32_t m = 0; m < pieces; ++m) {
    for (std::int32_t root = 0; root < p; ++root) {
      std::int32_t begin = m * piece_units + (divides ? root * region_units : 0);
      const std::int32_t along = grid.x(root) + grid.y(root);
      for (const Kind& kind : kinds) {
        const bool tie = (along / diagonals + m) % 2 != 0;
        const Tree tree = comb(grid, root, kind.rows_first, tie);
        const std::int32_t b = graph.add_block_of(root, begin, begin + kind.units);
        begin += kind.units;
        const bool whole = reduces && 4 * m >= 3 * pieces;
        const std::int64_t order = (together ? TaskGraph::base_of_piece(m, pieces)
                                             : TaskGraph::base_of_part(m, whole ? 0 : along % diagonals, diagonals)) +
                                   std::int64_t{m} * p + root;
        graph.up_and_down(tree, b, order, TaskGraph::kSecond + order);
      }
    }
  }
  if (!grid.regular()) graph.hold_back_groups();
  return assemble(graph, list_schedule(graph), divides ? region_units * p : region_units);
}

namespace {

/// The lists of every `of`-th tree, from tree `variant` on, with a period of at least `period`.
Schedule packing_variant(const Lattice& grid, int lambda, int tries, std::size_t variant, std::size_t of,
                         std::int64_t period) {
  Fabric fabric = Fabric::of(Graph::of(grid));
  fabric.assume(lambda, 1);
  TaskGraph graph(fabric, CollectiveOp::all_reduce);
  const std::vector<Tree> trees = unit_trees(comb_packing(grid));
  std::int32_t unit = 0;
  for (std::size_t i = variant; i < trees.size(); i += of, ++unit) {
    const std::int32_t b = graph.add_block({kEveryNode, kEveryNode, 0, 0, unit, unit + 1});
    graph.copy_down(trees[i], b, 0, graph.reduce_up(trees[i], b, 0));
  }
  return assemble(graph, modulo_schedule(graph, tries, period), unit);
}

/// Adds the lists of another variant: a link is of any of them, with the slots that each of them needs.
void add_variant(Schedule& schedule, Schedule variant) {
  schedule.length = std::max(schedule.length, variant.length);
  std::map<std::pair<std::int32_t, std::int32_t>, ScheduleLink> links;
  for (const auto* some : {&schedule.links, &variant.links}) {
    for (const ScheduleLink& link : *some) {
      ScheduleLink& joint = links.try_emplace({link.a, link.b}, link).first->second;
      joint.slots = std::max(joint.slots, link.slots);
    }
  }
  schedule.links.clear();
  for (const auto& [ends, link] : links) schedule.links.push_back(link);
  schedule.variants.push_back(std::move(variant.steps));
}

}  // namespace

Schedule packing_schedule(const Lattice& grid, int lambda, int tries, int variants) {
  const auto of = static_cast<std::size_t>(variants);
  std::vector<Schedule> made;
  std::int64_t period = 0;
  for (std::size_t variant = 0; variant < of; ++variant) {
    made.push_back(packing_variant(grid, lambda, tries, variant, of, 0));
    period = std::max(period, made.back().period);
  }
  for (std::size_t variant = 0; variant < of; ++variant) {
    if (made[variant].period < period) made[variant] = packing_variant(grid, lambda, tries, variant, of, period);
  }
  Schedule schedule = std::move(made.front());
  for (std::size_t variant = 1; variant < of; ++variant) add_variant(schedule, std::move(made[variant]));
  return schedule;
}

int packing_trees(const Lattice& grid) { return static_cast<int>(unit_trees(comb_packing(grid)).size()); }

namespace {

int colours_of(const Lattice& grid) { return grid.line() ? 1 : 2; }

}  // namespace

int exchange_parts(const Lattice& grid) {
  const bool ties = (grid.ring_x() && grid.w % 2 == 0) || (grid.ring_y() && grid.h % 2 == 0);
  return colours_of(grid) * (ties ? 2 : 1);
}

Schedule exchange_schedule(const Lattice& grid, int pieces, int lambda) {
  const std::int32_t p = grid.nodes();
  const int colours = colours_of(grid), halves = exchange_parts(grid) / colours;
  Fabric fabric = Fabric::of(Graph::of(grid));
  fabric.assume(lambda, 1);
  TaskGraph graph(fabric, CollectiveOp::all_to_all);
  const std::int32_t units = pieces * exchange_parts(grid);
  for (std::int32_t unit = 0; unit < units; ++unit) {
    for (std::int32_t from = 0; from < p; ++from) {
      for (std::int32_t d = 0; d < p; ++d) {
        const std::int32_t to = (from + d) % p;
        const std::int32_t b = graph.add_block({from, to, to, from, unit, unit + 1});
        if (d == 0) continue;
        const bool rows_first = grid.w > 1 && (unit % colours == 0 || grid.h == 1);
        const std::int32_t piece = unit / exchange_parts(grid);
        // Four and more one by one: lanes wait for values of all regions, as those of a reduce_scatter (decision 0340).
        const bool some = pieces >= TaskGraph::kManyPieces / 2 && pieces < TaskGraph::kManyPieces;
        graph.along(path(grid, from, to, rows_first, (unit / colours) % halves != 0), b,
                    (some ? TaskGraph::base_of_part(piece, 0, 1) : TaskGraph::base_of_piece(piece, pieces)) +
                        std::int64_t{unit} * p + d);
      }
    }
  }
  return assemble(graph, list_schedule(graph), units);
}

namespace {

/// Trees from one root that share the links in their direction away from it.
std::vector<Tree> packed_trees(const Graph& net, int count, std::int32_t root) {
  if (count <= 1) return {shortest_path_tree(net, root)};
  const bool cycle = static_cast<std::int32_t>(net.edges.size()) == net.nodes && eccentricity(net, 0) == net.nodes / 2;
  if (count != 2 || !cycle) return least_loaded_trees(net, count, root, true);
  // Both ways round: each tree is the ring with one of the root's links cut.
  std::vector<Tree> ways;
  for (std::size_t cut = 0; cut < net.edges.size(); ++cut) {
    if (net.edges[cut].a != root && net.edges[cut].b != root) continue;
    Graph line = net;
    line.edges.erase(line.edges.begin() + static_cast<std::ptrdiff_t>(cut));
    ways.push_back(shortest_path_tree(line, root));
  }
  return ways;
}

/// The messages of piece `m` of gather, scatter, send_recv or, on graphs that are no grid, all_to_all.
void send_paths(Operation operation, const Graph& net, std::int32_t m, TaskGraph& graph) {
  const auto one = [&](std::int32_t from, std::int32_t to) {
    const std::int32_t b = graph.add_block_between(from, to, m, m + 1);
    const Tree tree = shortest_path_tree(net, to);
    std::vector<std::int32_t> nodes{from};
    while (nodes.back() != to) nodes.push_back(tree.parent[index(nodes.back())]);
    graph.along(nodes, b, b);
  };
  for (std::int32_t v = 0; v < net.nodes; ++v) operation.for_each_pair(v, net.nodes, one);
}

}  // namespace

Schedule rooted_schedule(Operation operation, const Graph& net, int trees, int pieces, int lambda) {
  Fabric fabric = Fabric::of(net);
  fabric.assume(lambda, 1);
  TaskGraph graph(fabric, operation.op);
  std::int32_t units = 1;
  Times times;
  if (graph.facts().combines() || graph.facts().alike) {
    units = std::max(trees, 1);
    const auto packed = packed_trees(net, units, operation.root);
    for (std::int32_t i = 0; i < units; ++i)
      graph.up_and_down(packed[index(i)], graph.add_block_of(operation.root, i, i + 1), i, i);
    times = modulo_schedule(graph, 5);
  } else {
    units = pieces;
    for (std::int32_t m = 0; m < pieces; ++m) send_paths(operation, net, m, graph);
    times = list_schedule(graph);
  }
  Schedule schedule = assemble(graph, times, units);
  schedule.root = operation.root;
  schedule.peer = operation.peer;
  return schedule;
}

}  // namespace kernbench::ccl
