#include <algorithm>
#include <numeric>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

std::vector<Tree> sip_trees(const PlanRequest& request) {
  if (!all_pairs(request)) return unit_trees(comb_packing(sip_lattice(request)));
  std::vector<Tree> stars;
  stars.reserve(index(request.ranks));
  for (std::int32_t root = 0; root < request.ranks; ++root) {
    stars.push_back(shortest_path_tree(Graph::complete(request.ranks), root));
  }
  return stars;
}

/// Most trees of a schedule: what is beyond is left to chance in exchange for lists of a bearable length.
constexpr std::int64_t kMostTrees = 144;

std::vector<Tree> united_trees(const PlanRequest& request) {
  const auto sips = sip_trees(request);
  const auto cubes = unit_trees(comb_packing(cube_lattice(request)));
  const auto of_sips = static_cast<std::int64_t>(sips.size()), of_cubes = static_cast<std::int64_t>(cubes.size());
  std::int64_t count = std::lcm(of_sips, of_cubes);
  if (count > kMostTrees) count = std::max(of_sips, of_cubes);
  std::vector<Tree> trees;
  for (std::int64_t u = 0; u < count; ++u) {
    // The IO chiplet lies above the cubes' top row: its columns take turns.
    const auto attach = static_cast<std::int32_t>(u % request.cube_w);
    trees.push_back(product_tree(sips[index(u % of_sips)], cubes[index(u % of_cubes)], attach));
  }
  return trees;
}

/// What leaves from the tree's leaves, by tasks from `first` on, does so after all of `before`.
void follow(TaskGraph& graph, const Tree& tree, std::int32_t first, const std::vector<std::int32_t>& before) {
  std::vector<bool> leaf(tree.parent.size(), true);
  for (const std::int32_t parent : tree.parent) {
    if (parent >= 0) leaf[index(parent)] = false;
  }
  for (std::int32_t task = first; task < static_cast<std::int32_t>(graph.tasks().size()); ++task) {
    if (!leaf[index(graph.tasks()[index(task)].from)]) continue;
    for (const std::int32_t other : before) graph.order(other, task);
  }
}

}  // namespace

Schedule product_schedule(const PlanRequest& request, int lambda, int columns, int tries) {
  const Fabric fabric = machine_fabric(request, lambda, columns);
  TaskGraph graph(fabric, request.op);
  std::int32_t unit = 0;
  for (const Tree& tree : united_trees(request)) {
    graph.up_and_down(graph.facts().rooted() ? rooted(tree, request.root) : centred(tree),
                      graph.add_block_of(request.root, unit, unit + 1), 0, 0);
    ++unit;
  }
  Schedule schedule = assemble(graph, modulo_schedule(graph, tries), unit);
  schedule.root = request.root;
  return schedule;
}

Schedule product_gather_schedule(const PlanRequest& request, int pieces, int lambda) {
  const Fabric fabric = machine_fabric(request, lambda);
  const std::int32_t n = request.cubes(), p = request.nodes();
  TaskGraph graph(fabric, request.op);
  const bool divides = graph.facts().sums_for_all();  // among the roots
  // What brings a part's last piece to its root. The next piece follows it: lists that do all that is to do inside the
  // SIPs first leave the links between them idle meanwhile.
  std::vector<std::vector<std::int32_t>> sums(index(p));
  for (std::int32_t m = 0; m < pieces; ++m) {
    for (std::int32_t root = 0; root < p; ++root) {
      const std::int32_t sip = root / n, cube = root % n;
      const bool rows_first = (sip + cube + m) % 2 == 0;
      const Tree across = all_pairs(request) ? shortest_path_tree(sip_graph(request), sip)
                                             : comb(sip_lattice(request), sip, rows_first, (sip + m) % 2 != 0);
      const Tree tree = product_tree(across, comb(cube_lattice(request), cube, rows_first, false), cube);
      const std::int32_t unit = divides ? m * p + root : m;
      const std::int32_t b = graph.add_block_of(root, unit, unit + 1);
      // SIPs in turn, so that the links between them are in use both ways.
      const std::int64_t order =
          TaskGraph::base_of_piece(m, pieces) + std::int64_t{m} * p + std::int64_t{cube} * request.ranks + sip;
      std::vector<std::int32_t> complete;
      if (graph.facts().combines()) {
        const auto first = static_cast<std::int32_t>(graph.tasks().size());
        complete = graph.reduce_up(tree, b, order);
        if (m > 0) follow(graph, tree, first, sums[index(root)]);
        sums[index(root)] = complete;
      }
      if (graph.facts().alike) graph.copy_down(tree, b, TaskGraph::kSecond + order, complete);
    }
  }
  return assemble(graph, list_schedule(graph), divides ? pieces * p : pieces);
}

Schedule one_tree_schedule(const PlanRequest& request, int lambda) {
  const Fabric fabric = machine_fabric(request, lambda);
  const Graph net = machine_graph(request);
  const std::int32_t root = facts_of(request.op).rooted() ? request.root : centre(net);
  // Across SIPs at the root's cube only: as short as any way, and once over every link between SIPs.
  const std::int32_t attach = root % request.cubes();
  const Tree tree = product_tree(shortest_path_tree(sip_graph(request), root / request.cubes()),
                                 shortest_path_tree(Graph::of(cube_lattice(request)), attach), attach);
  TaskGraph graph(fabric, request.op);
  graph.up_and_down(tree, graph.add_block_of(root, 0, 1), 0, 0);
  Schedule schedule = assemble(graph, modulo_schedule(graph, 1), 1);
  schedule.root = request.root;
  return schedule;
}

}  // namespace kernbench::ccl
