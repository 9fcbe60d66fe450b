#include "sc_main/validate/one_direction_ring.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace kernbench::validate {
namespace {

/// 50 GB/s, 500 ns and 10 ns per message; sums at 1600 GB/s of memory.
OneDirectionRing small(OneDirectionRing::Shape shape, unsigned w, unsigned h, CollectiveOp op, std::uint64_t bytes) {
  OneDirectionRing ring;
  ring.shape = shape;
  ring.dims[0] = w;
  ring.dims[1] = h;
  ring.op = op;
  ring.bytes = bytes;
  ring.bytes_per_second = 50'000'000'000;
  ring.latency_ns = 500;
  ring.endpoint_ns = 10;
  ring.memory_bytes_per_second = 1600e9;
  ring.data = true;
  return ring;
}
using Shape = OneDirectionRing::Shape;

/// A message of `bytes` over so many links that store it; three passes through memory if it is summed.
double hop_ns(double bytes, double links = 1) { return 10 + links * (500 + bytes / 50); }
double sum_ns(double bytes) { return 3 * bytes / 1600; }

void expect_right(const OneDirectionRing& ring, double ns) {
  const RingTime time = run_one_direction_ring(ring);
  EXPECT_EQ(time.wrong, 0U);
  EXPECT_NEAR(time.ns, ns, 0.01 * ns);
}

TEST(OneDirectionRing, AllReduceOnARingTakesTwiceAllButOneStep) {
  expect_right(small(Shape::ring, 4, 1, CollectiveOp::all_reduce, 65'536), 6 * hop_ns(16'384) + 3 * sum_ns(16'384));
}

TEST(OneDirectionRing, AllGatherOnFullyConnectedRanksUsesOneLinkEach) {
  expect_right(small(Shape::fully_connected, 5, 1, CollectiveOp::all_gather, 40'960), 4 * hop_ns(8'192));
}

TEST(OneDirectionRing, ReduceScatterOverASwitchThatCutsThroughPaysTheWireOnce) {
  expect_right(small(Shape::fabric, 4, 1, CollectiveOp::reduce_scatter, 65'536),
               3 * (hop_ns(16'384) + 500 + sum_ns(16'384)));
}

TEST(OneDirectionRing, ASwitchThatStoresMessagesPaysTheWireTwice) {
  expect_right(small(Shape::storing_fabric, 4, 1, CollectiveOp::all_reduce, 65'536),
               6 * hop_ns(16'384, 2) + 3 * sum_ns(16'384));
}

TEST(OneDirectionRing, AllReduceOnATorusScattersGathersAndReducesWhatIsLeft) {
  const double row = 65'536.0 / 4, column = row / 2;
  expect_right(small(Shape::torus, 4, 2, CollectiveOp::all_reduce, 65'536),
               6 * hop_ns(row) + 3 * sum_ns(row) + 2 * hop_ns(column) + sum_ns(column));
}

TEST(OneDirectionRing, WholeAllReducePerDimension) {
  OneDirectionRing ring = small(Shape::torus, 2, 3, CollectiveOp::all_reduce, 48'000);
  ring.whole_per_dimension = true;
  expect_right(ring, 2 * hop_ns(24'000) + sum_ns(24'000) + 4 * hop_ns(16'000) + 2 * sum_ns(16'000));
}

TEST(OneDirectionRing, GathersColumnsBeforeRowsOnATorus) {
  expect_right(small(Shape::torus, 3, 2, CollectiveOp::all_gather, 48'000), hop_ns(8'000) + 2 * hop_ns(16'000));
}

TEST(OneDirectionRing, ScattersRowsBeforeColumnsOnATorus) {
  expect_right(small(Shape::torus, 3, 2, CollectiveOp::reduce_scatter, 48'000),
               2 * (hop_ns(16'000) + sum_ns(16'000)) + hop_ns(8'000) + sum_ns(8'000));
}

TEST(OneDirectionRing, PiecesOverlapSumsAndWires) {
  OneDirectionRing whole = small(Shape::ring, 4, 1, CollectiveOp::reduce_scatter, 1 << 20), pieces = whole;
  pieces.pieces = 4;
  const RingTime time = run_one_direction_ring(pieces);
  EXPECT_EQ(time.wrong, 0U);
  // The wire carries all of every step; of latency and sums only the last piece's stays in the way.
  EXPECT_GT(time.ns, 3 * (1 << 18) / 50.0);
  EXPECT_LT(time.ns, 3 * (hop_ns(1 << 18) + sum_ns(1 << 18)) - 2 * 500);
}

TEST(OneDirectionRing, RefusesBytesThatDoNotDivide) {
  try {
    run_one_direction_ring(small(Shape::ring, 4, 1, CollectiveOp::all_reduce, 1'000'004));
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "1000004 B do not divide into 1 pieces of f32 for each of 4 ranks");
  }
}

}  // namespace
}  // namespace kernbench::validate
