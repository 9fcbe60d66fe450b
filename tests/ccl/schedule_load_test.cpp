#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "ccl/schedule/build.h"
#include "ccl/schedule/check.h"
#include "ccl/schedule/tasks.h"
#include "tests/ccl/schedule_support.h"

/// How much the busiest link carries and how long a list takes, against the closed forms of
/// bench/reference/collectives/bounds.md, section 4. Units: regions of one node, times of the whole data on one link.
namespace kernbench::ccl {
namespace {

/// f(grid) for sides from 2 to `most` and all wraps.
template <class F>
void on_grids(int most, F&& f) {
  for (int w = 2; w <= most; ++w) {
    for (int h = 2; h <= most; ++h) {
      for (int wraps = 0; wraps < 4; ++wraps) {
        const Lattice grid{w, h, (wraps & 1) != 0, (wraps & 2) != 0};
        SCOPED_TRACE(testing::Message() << w << " x " << h << " wraps " << wraps);
        f(grid);
      }
    }
  }
}

/// Part of a region that the busiest link of a line or ring carries in an all_to_all.
double exchange_load(int n, bool ring) {
  if (!ring) return static_cast<double>(n * n / 4) / n;
  return n % 2 == 0 ? n / 8.0 : (n * n - 1) / (8.0 * n);
}

TEST(CombGather, LoadsTheBusiestLinkWithTheCutBound) {
  on_grids(9, [](const Lattice& grid) {
    const int p = grid.nodes();
    const Schedule schedule = comb_gather_schedule({CollectiveOp::all_gather}, grid, 2, 0);
    // A node of the fewest links receives p - 1 parts of p; regions here are parts.
    EXPECT_NEAR(link_load(schedule).most, static_cast<double>(p - 1) / test::least_links(grid), 1e-9);
  });
}

TEST(CombGather, TotalTrafficIsTheLeastThereIs) {
  const Schedule schedule = comb_gather_schedule({CollectiveOp::all_gather}, {4, 3, true, false}, 1, 0);
  EXPECT_NEAR(link_load(schedule).total, 12 * 11, 1e-9);  // every node receives every other's part once
}

TEST(CombGather, BusiestLinksNeverIdleWithTwoPieces) {
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    for (const Lattice& grid : {Lattice{5, 1, true}, Lattice{8, 1, true}, Lattice{4, 4, true, true},
                                Lattice{8, 3, true, true}, Lattice{4, 4}, Lattice{7, 3}, Lattice{4, 2}}) {
      const Schedule schedule = comb_gather_schedule({op}, grid, 2, 0);
      EXPECT_EQ(schedule.length, std::llround(link_load(schedule).most * schedule.units)) << grid.w << " x " << grid.h;
    }
  }
}

TEST(CombGather, BusiestLinksNeverIdleWithGroupsOfPieces) {
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    for (const Lattice& grid : {Lattice{5, 1, true}, Lattice{4, 4, true, true}, Lattice{4, 4}, Lattice{7, 3}}) {
      const Schedule schedule = comb_gather_schedule({op}, grid, 8, 0);
      EXPECT_EQ(schedule.length, std::llround(link_load(schedule).most * schedule.units)) << grid.w << " x " << grid.h;
    }
  }
}

TEST(CombGather, BusiestLinksNeverIdleWhenRootsGoByDiagonals) {
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    for (const auto& [w, h, diagonals] : {std::tuple{4, 4, 2}, {8, 8, 2}, {8, 8, 4}, {9, 9, 3}, {8, 4, 2}}) {
      const Schedule schedule = comb_gather_schedule({op}, {w, h, true, true}, 8, 0, diagonals);
      const auto least = std::llround(link_load(schedule).most * schedule.units);
      EXPECT_LE(schedule.length, least + least / 50) << to_string(op) << ", " << w << " x " << h << ", " << diagonals;
    }
  }
}

/// Values of each of 16 memories, in which four regions each lie, among the first `count` that a node reads.
std::vector<int> values_of_memories(const Schedule& schedule, std::size_t node, std::size_t count) {
  std::set<std::int32_t> read;
  std::vector<int> of_memory(16, 0);
  for (const Step& step : schedule.steps[node]) {
    if (read.size() == count || !read.insert(step.block).second) continue;
    ++of_memory[static_cast<std::size_t>(schedule.blocks[static_cast<std::size_t>(step.block)].in_region / 4)];
  }
  return of_memory;
}

TEST(CombGather, NodesReadAllMemoriesWhenRootsGoByDiagonalsAndFewOtherwise) {
  const Lattice grid{8, 8, true, true};
  const Schedule diagonals = comb_gather_schedule({CollectiveOp::reduce_scatter}, grid, 8, 2, 4);
  const Schedule together = comb_gather_schedule({CollectiveOp::reduce_scatter}, grid, 8, 2);
  for (std::size_t node = 0; node < 64; ++node) {
    const auto spread = values_of_memories(diagonals, node, 64), few = values_of_memories(together, node, 64);
    EXPECT_GE(*std::min_element(spread.begin(), spread.end()), 1) << node;
    EXPECT_LE(*std::max_element(spread.begin(), spread.end()), 8) << node;
    EXPECT_EQ(*std::min_element(few.begin(), few.end()), 0) << node;
  }
}

TEST(CombGather, AReduceScatterOfFourPiecesReadsSomeOfEveryRegionInItsFirstHalf) {
  const Schedule schedule = comb_gather_schedule({CollectiveOp::reduce_scatter}, {4, 4, true, true}, 4, 2);
  std::set<std::int32_t> read, regions;
  for (const Step& step : schedule.steps[0]) {
    if (2 * read.size() == schedule.blocks.size() || !read.insert(step.block).second) continue;
    regions.insert(schedule.blocks[static_cast<std::size_t>(step.block)].in_region);
  }
  EXPECT_EQ(regions.size(), 16U);
}

TEST(CombGather, LinksWithLessToDoKeepPaceWithTheBusiest) {
  // The corner of a mesh has two links for its own pieces; the two into another corner carry those of 15 nodes.
  const Schedule schedule = comb_gather_schedule({CollectiveOp::all_gather}, {4, 4}, 16, 0);
  std::int64_t last = 0;
  for (const Step& step : schedule.steps[0]) {
    const bool own = schedule.blocks[static_cast<std::size_t>(step.block)].contributor == 0;
    if (step.kind == StepKind::send && own) last = std::max(last, step.time);
  }
  EXPECT_GE(last, schedule.length * 3 / 4);
}

TEST(HoldBack, AGroupBeginsWhenTheBusiestLinkComesToTheOneBefore) {
  // Node 0 sends two messages of each group, node 1 one.
  const Fabric fabric = Fabric::of(Graph::complete(2));
  TaskGraph graph(fabric, CollectiveOp::all_to_all);
  const std::int32_t block = graph.add_block({});
  for (std::int64_t group = 0; group < 4; ++group) {
    graph.add(0, 1, block, false, group * TaskGraph::kGroup);
    graph.add(0, 1, block, false, group * TaskGraph::kGroup - TaskGraph::kLevel);
    graph.add(1, 0, block, false, group * TaskGraph::kGroup);
  }
  graph.hold_back_groups();
  const Times times = list_schedule(graph);
  const auto starts = [&](std::size_t first) {
    return std::vector<std::int64_t>{times.start[first], times.start[first + 3], times.start[first + 6],
                                     times.start[first + 9]};
  };
  EXPECT_EQ(starts(1), (std::vector<std::int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(starts(0), (std::vector<std::int64_t>{1, 3, 5, 7}));
  EXPECT_EQ(starts(2), (std::vector<std::int64_t>{0, 1, 2, 4}));
}

TEST(CombGather, AllReduceOfRingAndTorusReachesThePartitionBound) {
  for (const Lattice& grid : {Lattice{4, 1, true}, Lattice{8, 1, true}, Lattice{16, 1, true}, Lattice{3, 3, true, true},
                              Lattice{4, 4, true, true}, Lattice{8, 8, true, true}, Lattice{4, 2, true, true}}) {
    const Schedule schedule = comb_gather_schedule({CollectiveOp::all_reduce}, grid, 2, 0);
    const double bound = static_cast<double>(grid.nodes() - 1) / test::edges(grid);
    EXPECT_NEAR(static_cast<double>(schedule.length) / schedule.units, bound, 0.005 * bound)
        << grid.w << " x " << grid.h;
  }
}

TEST(CombPacking, LoadsEveryLinkOfAMeshAlike) {
  for (int w = 2; w <= 12; ++w) {
    for (int h = 2; h <= 12; ++h) {
      const Lattice grid{w, h};
      std::vector<int> load(static_cast<std::size_t>(grid.nodes() * grid.nodes()), 0);
      int units = 0;
      for (const TreeShare& share : comb_packing(grid)) {
        units += share.units;
        for (int v = 0; v < grid.nodes(); ++v) {
          const int parent = share.tree.parent[static_cast<std::size_t>(v)];
          if (parent >= 0)
            load[static_cast<std::size_t>(std::min(v, parent) * grid.nodes() + std::max(v, parent))] += share.units;
        }
      }
      // units trees of p - 1 edges over E links.
      for (const Graph::Edge& edge : Graph::of(grid).edges) {
        EXPECT_EQ(load[static_cast<std::size_t>(edge.a * grid.nodes() + edge.b)] * test::edges(grid),
                  units * (grid.nodes() - 1))
            << w << " x " << h << " link " << edge.a << "-" << edge.b;
      }
    }
  }
}

TEST(CombPacking, ReachesThePartitionBoundWithAnyWraps) {
  on_grids(4, [](const Lattice& grid) {
    const Schedule schedule = packing_schedule(grid, 0, 1);
    EXPECT_NEAR(link_load(schedule).most, static_cast<double>(grid.nodes() - 1) / test::edges(grid), 1e-9);
  });
  for (int n = 2; n <= 9; ++n) {
    EXPECT_NEAR(link_load(packing_schedule({n, 1}, 0, 1)).most, 1, 1e-9) << n;
    EXPECT_NEAR(link_load(packing_schedule({n, 1, true}, 0, 1)).most, n == 2 ? 1 : (n - 1.0) / n, 1e-9) << n;
  }
}

TEST(CombPacking, TurnsTogetherLoadLinksAsAllTreesDo) {
  on_grids(4, [](const Lattice& grid) {
    const Schedule whole = packing_schedule(grid, 0, 1), variants = packing_schedule(grid, 0, 1, packing_trees(grid));
    EXPECT_NEAR(link_load(variants).most, link_load(whole).most, 1e-9);
    EXPECT_NEAR(link_load(variants).total, link_load(whole).total, 1e-9);
    EXPECT_EQ(variants.units, 1);
  });
}

TEST(CombPacking, PeriodIsTheLoadOfTheBusiestLink) {
  const Schedule schedule = packing_schedule({4, 4}, 0, 10);
  EXPECT_EQ(schedule.period, 5);
  EXPECT_EQ(schedule.units, 8);
  // 64 rounds: k M / (k (M - 1) + L) with L = 16 (docs/constructions.md, Packings).
  const double rounds = 64, k = 5, length = static_cast<double>(schedule.length);
  EXPECT_GT(k * rounds / (k * (rounds - 1) + length), 0.95);
}

TEST(Exchange, ReachesTheCutBoundOnRingsAndLines) {
  for (int n = 2; n <= 16; ++n) {
    for (const bool wrap : {false, true}) {
      const Lattice grid{n, 1, wrap};
      const Schedule schedule = exchange_schedule(grid, 1, 0);
      const double bound = exchange_load(n, grid.ring_x());
      EXPECT_NEAR(link_load(schedule).most / n, bound, 1e-9) << n << wrap;
      EXPECT_NEAR(static_cast<double>(schedule.length) / schedule.units / n, bound, 1e-9) << n << wrap;
    }
  }
}

TEST(Exchange, ReachesTheCutBoundOnGrids) {
  for (const Lattice& grid : {Lattice{4, 4, true, true}, Lattice{5, 3, true, true}, Lattice{4, 2, true, true},
                              Lattice{4, 4}, Lattice{7, 3}, Lattice{8, 8}}) {
    const Schedule schedule = exchange_schedule(grid, 1, 0);
    const double bound = std::max(exchange_load(grid.w, grid.ring_x()), exchange_load(grid.h, grid.ring_y()));
    EXPECT_NEAR(link_load(schedule).most / grid.nodes(), bound, 1e-9) << grid.w << " x " << grid.h;
    EXPECT_NEAR(static_cast<double>(schedule.length) / schedule.units / grid.nodes(), bound, 0.02 * bound)
        << grid.w << " x " << grid.h;
  }
}

TEST(Flood, TakesAsManyStepsAsTheLongestWay) {
  for (int n = 2; n <= 9; ++n) {
    EXPECT_EQ(flood_schedule(test::machine(CollectiveOp::all_reduce, kRing1d, n, 1), {}, 0).length, n / 2) << n;
  }
  EXPECT_EQ(flood_schedule(test::machine(CollectiveOp::all_reduce, kTorus2d, 4, 4), {}, 0).length, 4);
  EXPECT_EQ(flood_schedule(test::machine(CollectiveOp::all_reduce, kMesh2d, 4, 3), {}, 0).length, 5);
  EXPECT_EQ(flood_schedule(test::machine(CollectiveOp::all_reduce, kFullyConnected, 8, 1), {}, 0).length, 1);
}

TEST(Flood, AddsInTheOrderOfPlacesOnEveryNode) {
  const Schedule schedule = flood_schedule(test::machine(CollectiveOp::all_reduce, kRing1d, 5, 1), {}, 2);
  for (std::size_t node = 0; node < 5; ++node) {
    std::vector<std::int32_t> order;
    for (const Step& step : schedule.steps[node]) {
      if (step.kind == StepKind::copy || step.kind == StepKind::reduce) order.push_back(step.peer);
    }
    EXPECT_EQ(order, (std::vector<std::int32_t>{1, 2, 3, 4, 5})) << node;  // block 0 is the sum
  }
}

TEST(ProductPacking, LoadsBothLevelsAsTheirOwnPackings) {
  // 2 x 3 SIPs in a torus (E = 9) of 4 x 4 cubes (E = 24).
  const PlanRequest request = test::machine(CollectiveOp::all_reduce, kTorus2d, 3, 2, 4, 4);
  const Schedule schedule = product_schedule(request, 2, 1, 1);
  double inside = 0;
  std::vector<double> across(6 * 6, 0);
  std::vector<double> cube_links(static_cast<std::size_t>(schedule.nodes * schedule.nodes), 0);
  for (std::int32_t node = 0; node < schedule.nodes; ++node) {
    for (const Step& step : schedule.steps[static_cast<std::size_t>(node)]) {
      if (step.kind != StepKind::send) continue;
      if (node / 16 != step.peer / 16) across[static_cast<std::size_t>(node / 16 * 6 + step.peer / 16)] += 1;
      if (node / 16 == step.peer / 16) {
        inside = std::max(inside, cube_links[static_cast<std::size_t>(node * schedule.nodes + step.peer)] += 1);
      }
    }
  }
  EXPECT_NEAR(*std::max_element(across.begin(), across.end()) / schedule.units, 5.0 / 9, 1e-9);
  EXPECT_NEAR(inside / schedule.units, 15.0 / 24, 1e-9);
}

TEST(Direct, ReachesTheBoundBehindASwitchAndOnPairs) {
  const Schedule pairs = direct_schedule({CollectiveOp::all_reduce}, 8, 1, 0, false);
  EXPECT_NEAR(static_cast<double>(pairs.length) / pairs.units, 2.0 / 8, 1e-9);
  const Schedule ports = direct_schedule({CollectiveOp::all_reduce}, 8, 2, 0, true);
  EXPECT_NEAR(static_cast<double>(ports.length) / ports.units, 2.0 * 7 / 8, 0.02);
}

}  // namespace
}  // namespace kernbench::ccl
