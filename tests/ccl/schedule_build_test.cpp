#include <gtest/gtest.h>

#include <tuple>

#include "ccl/schedule/build.h"
#include "ccl/schedule/check.h"
#include "tests/ccl/schedule_support.h"

namespace kernbench::ccl {
namespace {

constexpr CollectiveOp kAllOps[] = {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                                    CollectiveOp::reduce,     CollectiveOp::broadcast,  CollectiveOp::all_to_all,
                                    CollectiveOp::gather,     CollectiveOp::scatter,    CollectiveOp::send_recv};
constexpr int kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};

TEST(DirectSchedule, EveryOperationOnEverySizeIsExact) {
  for (const CollectiveOp op : kAllOps) {
    for (const int p : kSizes) {
      for (const bool ports : {false, true}) {
        for (const int lambda : {0, 2}) {
          SCOPED_TRACE(testing::Message() << to_string(op) << " on " << p << " lambda " << lambda);
          ASSERT_NO_THROW(check(direct_schedule({op, p - 1, p / 2}, p, 3, lambda, ports)));
        }
      }
    }
  }
  ASSERT_NO_THROW(check(direct_schedule({CollectiveOp::send_recv, -1, 1}, 5, 1, 2, false)));
}

TEST(DirectSchedule, EveryTurnIsExact) {
  for (const CollectiveOp op : kAllOps) {
    for (const int p : {2, 3, 5, 8}) {
      const Schedule schedule = direct_schedule({op, p - 1, p / 2}, p, 3, 0, false, p - 1);
      ASSERT_EQ(schedule.variants.size(), static_cast<std::size_t>(p - 2));
      ASSERT_NO_THROW(check(schedule)) << to_string(op) << " on " << p;
    }
  }
}

TEST(DirectSchedule, TurnsBeginWithDifferentPartners) {
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_to_all}) {
    const Schedule schedule = direct_schedule({op}, 5, 2, 0, false, 4);
    for (std::int32_t node = 0; node < 5; ++node) {
      for (std::int32_t variant = 0; variant < 4; ++variant) {
        const Step& first = schedule.lists(static_cast<std::size_t>(variant))[static_cast<std::size_t>(node)].front();
        EXPECT_EQ(first.kind, StepKind::send);
        EXPECT_EQ(first.peer, (node + 1 + variant) % 5)
            << to_string(op) << ", node " << node << ", variant " << variant;
      }
    }
  }
}

TEST(CheckSchedule, ProvesTheListsOfEveryTurn) {
  Schedule schedule = direct_schedule({CollectiveOp::all_gather}, 3, 1, 0, false, 2);
  schedule.variants.front()[1].pop_back();
  EXPECT_ANY_THROW(check(schedule));
}

TEST(CombGatherSchedule, IsExactOnEveryGrid) {
  for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    for (const auto& [w, h] : {std::pair{1, 1}, {2, 1}, {3, 1}, {8, 1}, {1, 5}, {2, 2}, {3, 2}, {4, 4}, {3, 5}}) {
      for (int wraps = 0; wraps < 4; ++wraps) {
        SCOPED_TRACE(testing::Message() << to_string(op) << " " << w << " x " << h << " wraps " << wraps);
        const Lattice grid{w, h, (wraps & 1) != 0, (wraps & 2) != 0};
        ASSERT_NO_THROW(check(comb_gather_schedule({op}, grid, 2, 2)));
      }
    }
  }
}

TEST(CombGatherSchedule, IsExactByDiagonals) {
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    for (const auto& [w, h, diagonals] : {std::tuple{4, 4, 2}, {8, 8, 2}, {8, 8, 4}, {6, 3, 3}, {8, 4, 2}}) {
      for (const int lambda : {0, 2}) {
        SCOPED_TRACE(testing::Message() << to_string(op) << " " << w << " x " << h << ", " << diagonals);
        ASSERT_NO_THROW(check(comb_gather_schedule({op}, {w, h, true, true}, 4, lambda, diagonals)));
      }
    }
  }
}

TEST(PackingSchedule, IsExactOnEveryGrid) {
  for (const auto& [w, h] : {std::pair{1, 1}, {2, 1}, {5, 1}, {1, 8}, {2, 2}, {3, 2}, {4, 4}, {3, 5}}) {
    for (int wraps = 0; wraps < 4; ++wraps) {
      SCOPED_TRACE(testing::Message() << w << " x " << h << " wraps " << wraps);
      ASSERT_NO_THROW(check(packing_schedule({w, h, (wraps & 1) != 0, (wraps & 2) != 0}, 2, 1)));
    }
  }
}

TEST(PackingSchedule, EveryTurnIsExact) {
  for (const auto& [w, h] : {std::pair{2, 2}, {3, 2}, {4, 4}, {3, 5}}) {
    for (int wraps = 0; wraps < 4; ++wraps) {
      const Lattice grid{w, h, (wraps & 1) != 0, (wraps & 2) != 0};
      for (int variants = 2; variants <= packing_trees(grid); ++variants) {
        if (packing_trees(grid) % variants != 0) continue;
        SCOPED_TRACE(testing::Message() << w << " x " << h << " wraps " << wraps << ", " << variants << " variants");
        const Schedule schedule = packing_schedule(grid, 2, 1, variants);
        ASSERT_EQ(schedule.variants.size() + 1, static_cast<std::size_t>(variants));
        ASSERT_EQ(schedule.units * variants, packing_trees(grid));
        ASSERT_NO_THROW(check(schedule));
      }
    }
  }
}

TEST(ExchangeSchedule, IsExactOnEveryGrid) {
  for (const auto& [w, h] : {std::pair{1, 1}, {2, 1}, {5, 1}, {1, 8}, {2, 2}, {3, 2}, {4, 4}, {3, 5}}) {
    for (int wraps = 0; wraps < 4; ++wraps) {
      SCOPED_TRACE(testing::Message() << w << " x " << h << " wraps " << wraps);
      ASSERT_NO_THROW(check(exchange_schedule({w, h, (wraps & 1) != 0, (wraps & 2) != 0}, 1, 2)));
    }
  }
}

TEST(RootedSchedule, IsExactOnEveryGrid) {
  for (const CollectiveOp op : {CollectiveOp::reduce, CollectiveOp::broadcast, CollectiveOp::gather,
                                CollectiveOp::scatter, CollectiveOp::send_recv}) {
    for (const auto& [w, h] : {std::pair{1, 1}, {2, 1}, {5, 1}, {1, 8}, {3, 2}, {4, 4}}) {
      for (const int trees : {1, 2, 4}) {
        SCOPED_TRACE(testing::Message() << to_string(op) << " " << w << " x " << h << " trees " << trees);
        const Graph graph = Graph::of({w, h, true, false});
        ASSERT_NO_THROW(check(rooted_schedule({op, w * h - 1, 0}, graph, trees, 2, 2)));
      }
    }
  }
}

/// Calls f(request) for machines of all kinds, with one cube per SIP and with several.
template <class F>
void on_machines(CollectiveOp op, F&& f) {
  for (std::int32_t kind = kRing1d; kind <= kFullyConnected; ++kind) {
    for (const auto& [w, h] : {std::pair{1, 1}, {2, 1}, {3, 1}, {8, 1}, {3, 2}, {4, 4}}) {
      for (const auto& [cube_w, cube_h] : {std::pair{1, 1}, {2, 1}, {3, 2}}) {
        SCOPED_TRACE(testing::Message() << to_string(op) << " kind " << kind << ", " << w << " x " << h << " SIPs of "
                                        << cube_w << " x " << cube_h);
        f(test::machine(op, kind, w, h, cube_w, cube_h));
      }
    }
  }
}

TEST(FloodSchedule, IsExactOnEveryMachine) {
  on_machines(CollectiveOp::all_reduce, [](const PlanRequest& request) {
    ASSERT_NO_THROW(check(flood_schedule(request, {}, 2)));
    ASSERT_NO_THROW(check(flood_schedule(request, {2}, 2)));
    if (request.cubes() == 1) {
      ASSERT_NO_THROW(check(flood_schedule(request, {2, false, true}, 2)));
    }
    for (const bool straight : {false, true}) {
      for (const std::int32_t units : {1, request.cube_w}) {
        ASSERT_NO_THROW(check(flood_schedule(request, {units, true, straight, !straight}, 2)));
        ASSERT_NO_THROW(check(flood_schedule(request, {units, true, straight, straight}, 2)));
      }
    }
  });
}

TEST(FunnelSchedule, IsExactOnEveryMachine) {
  on_machines(CollectiveOp::reduce_scatter, [](const PlanRequest& request) {
    for (const bool to_columns : {false, true}) ASSERT_NO_THROW(check(funnel_schedule(request, to_columns)));
  });
}

TEST(FunnelSchedule, RefusesLongLines) {
  try {
    funnel_schedule(test::machine(CollectiveOp::reduce_scatter, kRing1d, 17, 1), false);
    FAIL() << "not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "a line of 17 SIPs is too long for queues between all of them; at most 16");
  }
}

TEST(ProductSchedule, IsExactOnEveryMachine) {
  for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::reduce, CollectiveOp::broadcast}) {
    on_machines(op, [](const PlanRequest& request) {
      ASSERT_NO_THROW(check(product_schedule(request, 2, 2, 1)));
      ASSERT_NO_THROW(check(one_tree_schedule(request, 2)));
    });
  }
}

TEST(ProductGatherSchedule, IsExactOnEveryMachine) {
  for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    on_machines(op, [](const PlanRequest& request) { ASSERT_NO_THROW(check(product_gather_schedule(request, 1, 2))); });
  }
}

TEST(PeerSchedules, AreExactOnEverySize) {
  for (const int p : kSizes) {
    SCOPED_TRACE(p);
    ASSERT_NO_THROW(check(halving_doubling_schedule(p, 2)));
    ASSERT_NO_THROW(check(double_tree_schedule(p, 2)));
    for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
      ASSERT_NO_THROW(check(one_direction_schedule({op}, p, 2, 2)));
    }
  }
}

}  // namespace
}  // namespace kernbench::ccl
