#include <gtest/gtest.h>

#include "ccl/rehearsal/memories.h"

namespace kernbench::test {
namespace {

/// 25.6 GB/s: a row of 4 KiB takes 160 ns, rows of a bank lie 32 KiB apart, a queue has 1 KiB.
ccl::Slice slice() {
  PeRates rates;
  rates.hbm_slice = Rate{25'600'000'000};
  return ccl::Slice(rates);
}
constexpr double kPiece = 4096, kTakes = 160e-9, kQueue = 40e-9;
constexpr std::uint64_t kRow = 4096, kSameBank = 8 * kRow;
constexpr double kCycle = 0.625e-9, kExact = 1e-15;
// HBM3-6400, in cycles: after the last burst tRTP less BL, tCWL + tWR; tRTW less BL, tCWL + tWTR_L.
constexpr double kOpenToRead = 31 * kCycle, kOpenToWrite = 15 * kCycle, kClose = 26 * kCycle, kReadToClose = 7 * kCycle,
                 kWriteToClose = 43 * kCycle, kReadToWrite = 18 * kCycle, kWriteToRead = 20 * kCycle;

TEST(Slice, ReadsOfOneRowFollowEachOther) {
  ccl::Slice memory = slice();
  EXPECT_NEAR(memory.read(0, 0, kPiece / 2), kOpenToRead, kExact);
  EXPECT_NEAR(memory.read(0, kRow / 2, kPiece / 2), kOpenToRead + kTakes / 2, kExact);
  EXPECT_NEAR(memory.read(3 * kTakes, 0, kPiece / 2), 3 * kTakes, kExact);
}

TEST(Slice, ARowOfAnotherBankOpensMeanwhile) {
  ccl::Slice memory = slice();
  memory.read(0, 0, kPiece);
  EXPECT_NEAR(memory.read(0, kRow, kPiece), kOpenToRead + kTakes, kExact);
}

TEST(Slice, ARowOfTheSameBankOpensAfterThatBeforeIsClosed) {
  ccl::Slice memory = slice();
  memory.read(0, 0, kPiece);
  const double closes = kOpenToRead + kTakes + kReadToClose;
  EXPECT_NEAR(memory.read(0, kSameBank, kPiece), closes + kClose + kOpenToRead, kExact);
}

TEST(Slice, AnAccessOverTheEndOfARowOpensTheNext) {
  ccl::Slice memory = slice();
  memory.read(0, kRow / 2, kPiece);  // another bank's, which is open for what follows
  EXPECT_NEAR(memory.read(kTakes * 4, kRow, kPiece / 2), kTakes * 4, kExact);
}

TEST(Slice, TheBusTurnsRoundForWritesAndBack) {
  ccl::Slice memory = slice();
  const double read = memory.read(0, 0, kPiece / 2) + kTakes / 2;
  EXPECT_NEAR(memory.write(0, kRow / 2, kPiece / 4), read - kQueue, kExact);  // it fills the queue and passes at once
  const double written = read + kReadToWrite + kTakes / 4;
  EXPECT_NEAR(memory.read(0, 0, kPiece / 2), written + kWriteToRead, kExact);
}

TEST(Slice, ARowOpensWhenTheBusServesItsDirection) {
  ccl::Slice memory = slice();
  const double read = memory.read(0, 0, kPiece) + kTakes;
  memory.write(0, kRow, kPiece / 4);
  const double written = read + std::max(kReadToWrite, kOpenToWrite) + kTakes / 4;
  EXPECT_NEAR(memory.read(0, kRow + kSameBank, kPiece), written + kWriteToClose + kClose + kOpenToRead, kExact);
}

TEST(Slice, FewWritesWaitForReads) {
  ccl::Slice memory = slice();
  EXPECT_EQ(memory.write(0, kRow, 512), 0);
  const double read = memory.read(0, 0, kPiece / 2) + kTakes / 2;
  EXPECT_NEAR(read, kOpenToRead + kTakes / 2, kExact);
  memory.write(0, kRow + 512, 512);  // they are enough to go before the next read
  EXPECT_GT(memory.read(0, 0, kPiece / 2), read + kTakes / 4 + kWriteToRead);
}

TEST(Slice, WritesPassWhileNothingIsRead) {
  ccl::Slice memory = slice();
  memory.write(0, 0, 512);
  memory.read(10 * kTakes, 0, 512);
  EXPECT_NEAR(memory.read(10 * kTakes, 512, 512), 10 * kTakes + kTakes / 8, kExact);
}

}  // namespace
}  // namespace kernbench::test
