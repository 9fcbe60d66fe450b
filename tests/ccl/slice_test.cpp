#include <gtest/gtest.h>

#include "ccl/rehearsal/memories.h"

namespace kernbench::test {
namespace {

/// 25.6 GB/s: a piece of 4 KiB takes 160 ns, rows of a bank lie 32 KiB apart.
ccl::Slice slice() {
  PeRates rates;
  rates.hbm_slice = Rate{25'600'000'000};
  return ccl::Slice(rates);
}
constexpr double kPiece = 4096, kTakes = 160e-9;
constexpr std::uint64_t kRow = 4096, kSameBank = 8 * kRow;

TEST(Slice, AccessesPassOneAfterTheOther) {
  ccl::Slice memory = slice();
  EXPECT_DOUBLE_EQ(memory.read(0, 0, kPiece), 0);
  EXPECT_DOUBLE_EQ(memory.read(0, kRow, kPiece), kTakes);
  EXPECT_DOUBLE_EQ(memory.read(3 * kTakes, 2 * kRow, kPiece), 3 * kTakes);
}

TEST(Slice, AnAccessThatMeetsTheOtherDirectionTakesLonger) {
  ccl::Slice memory = slice();
  memory.read(0, 0, kPiece);
  EXPECT_DOUBLE_EQ(memory.write(0, kRow, kPiece), kTakes);
  EXPECT_NEAR(memory.write(0, 2 * kRow, kPiece), 2.4 * kTakes, 1e-12);  // the first one met the read
  EXPECT_NEAR(memory.write(0, 3 * kRow, kPiece), 3.8 * kTakes, 1e-12);  // so did the second
  memory.write(20 * kTakes, 0, kPiece);
  EXPECT_NEAR(memory.write(20 * kTakes, 0, kPiece), 21 * kTakes, 1e-12);
}

TEST(Slice, AnAccessThatMeetsOtherRowsOfItsBankTakesLonger) {
  ccl::Slice memory = slice();
  memory.read(0, 0, kPiece);
  memory.read(0, kSameBank, kPiece);
  EXPECT_NEAR(memory.read(0, 2 * kSameBank, kPiece), 2.2 * kTakes, 1e-12);  // the second took longer
  EXPECT_NEAR(memory.read(0, kRow, kPiece), 3.6 * kTakes, 1e-12);           // the third met two
  EXPECT_NEAR(memory.read(0, kRow, kPiece), 4.6 * kTakes, 1e-12);           // another bank
  memory.read(20 * kTakes, 0, kPiece);
  EXPECT_NEAR(memory.read(20 * kTakes, 0, kPiece), 21 * kTakes, 1e-12);  // what has ended is met by none
}

}  // namespace
}  // namespace kernbench::test
