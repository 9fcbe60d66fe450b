#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ccl/schedule/build.h"
#include "ccl/schedule/check.h"

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

TEST(PackingSchedule, IsExactOnEveryGrid) {
  for (const auto& [w, h] : {std::pair{1, 1}, {2, 1}, {5, 1}, {1, 8}, {2, 2}, {3, 2}, {4, 4}, {3, 5}}) {
    for (int wraps = 0; wraps < 4; ++wraps) {
      SCOPED_TRACE(testing::Message() << w << " x " << h << " wraps " << wraps);
      ASSERT_NO_THROW(check(packing_schedule({w, h, (wraps & 1) != 0, (wraps & 2) != 0}, 2, 1)));
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
      for (const int trees : {1, 4}) {
        SCOPED_TRACE(testing::Message() << to_string(op) << " " << w << " x " << h << " trees " << trees);
        const Graph graph = Graph::of({w, h, true, false});
        ASSERT_NO_THROW(check(rooted_schedule({op, w * h - 1, 0}, graph, trees, 2)));
      }
    }
  }
}

TEST(FloodSchedule, IsExactOnEveryGrid) {
  for (const auto& [w, h] : {std::pair{1, 1}, {2, 1}, {5, 1}, {1, 8}, {2, 2}, {3, 2}, {4, 4}, {3, 5}}) {
    for (int wraps = 0; wraps < 4; ++wraps) {
      for (const int colours : {1, 2}) {
        SCOPED_TRACE(testing::Message() << w << " x " << h << " wraps " << wraps);
        ASSERT_NO_THROW(check(flood_schedule({w, h, (wraps & 1) != 0, (wraps & 2) != 0}, colours, 2)));
      }
    }
  }
}

}  // namespace
}  // namespace kernbench::ccl
