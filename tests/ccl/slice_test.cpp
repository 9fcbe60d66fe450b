#include <gtest/gtest.h>

#include <map>

#include "ccl/rehearsal/slice.h"

namespace kernbench::test {
namespace {

/// A slice of 25.6 GB/s: a row of 4 KiB takes 160 ns, rows of a bank lie 32 KiB apart, a queue has 1 KiB, a piece 128
/// B.
class Served {
 public:
  struct Times {
    double begin = -1, end = -1;  ///< of its first piece, of its last; a write: when its first train, all have entered
  };
  Served() : slice_(rates()) {}
  void read(int id, double time, std::uint64_t at, double bytes) { slice_.read(time, at, bytes, 0, id); }
  void read_slowly(int id, double time, std::uint64_t at, double bytes, double apart) {
    slice_.read(time, at, bytes, apart, id);
  }
  /// All of it there at once.
  void write(int id, double time, std::uint64_t at, double bytes) { slice_.write(time, at, bytes, 0, id); }
  void write_slowly(int id, double time, std::uint64_t at, double bytes, double apart) {
    slice_.write(time, at, bytes, apart, id);
  }
  double answer() const { return slice_.answer_seconds(); }
  const Times& operator[](int id) {
    std::vector<ccl::HbmSlice::Progress> progress;
    for (double now = slice_.next(); now < ccl::HbmSlice::kNever; now = slice_.next()) slice_.advance(now, progress);
    for (const ccl::HbmSlice::Progress& each : progress) {
      if (each.first) times_[each.id].begin = each.begin;
      if (each.last) times_[each.id].end = each.end;
    }
    return times_[id];
  }

 private:
  static PeRates rates() {
    PeRates rates;
    rates.hbm_slice = Rate{25'600'000'000};
    return rates;
  }
  ccl::HbmSlice slice_;
  std::map<int, Times> times_;
};

constexpr double kBurstBytes = 4096, kTakes = 160e-9, kByte = kTakes / kBurstBytes, kQueue = 1024, kPiece = 128,
                 kTrain = 4096;
constexpr std::uint64_t kRow = 4096, kSameBank = 8 * kRow;
constexpr double kCycle = 0.625e-9, kExact = 1e-13;
// HBM3-6400, in cycles: after the last burst tRTP less BL, tCWL + tWR; tRTW less BL, tCWL + tWTR_L.
constexpr double kOpenToRead = 31 * kCycle, kClose = 26 * kCycle, kReadToClose = 7 * kCycle,
                 kWriteToClose = 43 * kCycle, kReadToWrite = 18 * kCycle, kWriteToRead = 20 * kCycle;

TEST(HbmSlice, ReadsOfOneRowFollowEachOther) {
  Served memory;
  memory.read(1, 0, 0, kBurstBytes / 2);
  memory.read(2, 0, kRow / 2, kBurstBytes / 2);
  memory.read(3, 3 * kTakes, 0, kBurstBytes / 2);
  EXPECT_NEAR(memory[1].begin, kOpenToRead, kExact);
  EXPECT_NEAR(memory[1].end, kOpenToRead + kTakes / 2, kExact);
  EXPECT_NEAR(memory[2].begin, kOpenToRead + kTakes / 2, kExact);
  EXPECT_NEAR(memory[3].begin, 3 * kTakes, kExact);
}

/// A queue of 1 KiB lets a row open while the piece before it passes.
TEST(HbmSlice, ARowOfAnotherBankOpensMeanwhile) {
  Served memory;
  memory.read(1, 0, 0, kBurstBytes);
  memory.read(2, 0, kRow, kBurstBytes);
  EXPECT_NEAR(memory[2].begin, kOpenToRead + kTakes, kExact);
}

TEST(HbmSlice, ARowOfTheSameBankOpensAfterThatBeforeIsClosed) {
  Served memory;
  memory.read(1, 0, 0, kBurstBytes);
  memory.read(2, 0, kSameBank, kBurstBytes);
  EXPECT_NEAR(memory[2].begin, kOpenToRead + kTakes + kReadToClose + kClose + kOpenToRead, kExact);
}

TEST(HbmSlice, AnAccessOverTheEndOfARowOpensTheNext) {
  Served memory;
  memory.read(1, 0, kRow / 2, kBurstBytes);  // another bank's, which is open for what follows
  memory.read(2, kTakes * 4, kRow, kBurstBytes / 2);
  EXPECT_NEAR(memory[2].begin, kTakes * 4, kExact);
}

TEST(HbmSlice, TheBusTurnsRoundForWritesAndBack) {
  Served memory;
  memory.read(1, 0, 0, kPiece);
  memory.write(2, 1e-9, kPiece, kQueue);  // it fills its queue
  memory.read(3, 1e-9, 2 * kQueue, kPiece);
  const double read = kOpenToRead + kPiece * kByte;
  EXPECT_NEAR(memory[1].end, read, kExact);
  // Down to one piece, which is less than a fifth of the queue.
  EXPECT_NEAR(memory[3].begin, read + kReadToWrite + (kQueue - kPiece) * kByte + kWriteToRead, kExact);
}

TEST(HbmSlice, ARowOpensAfterAWriteToItsBankHasRecovered) {
  Served memory;
  memory.write(1, 0, 0, kPiece);
  memory.read(2, 20e-9, kSameBank, kPiece);
  EXPECT_EQ(memory[1].end, 0);                          // a write is done when it has entered
  const double passed = kReadToWrite + kPiece * kByte;  // its row opens while the bus turns round
  EXPECT_NEAR(memory[2].begin, passed + kWriteToClose + kClose + kOpenToRead, kExact);
}

TEST(HbmSlice, FewWritesWaitForReads) {
  Served memory;
  memory.read(1, 0, 0, kBurstBytes / 2);
  memory.write(2, 0, kRow, 6 * kPiece);
  memory.read(3, 0, kBurstBytes / 2, kBurstBytes / 2);
  EXPECT_NEAR(memory[3].end, kOpenToRead + kTakes, kExact);
}

/// As the controller's write_low says: writes that follow each other keep the bus.
TEST(HbmSlice, AReadWaitsWhileWritesKeepComing) {
  const auto waits = [](double apart) {
    Served memory;
    memory.write_slowly(1, 0, 0, 2 * kTrain, apart);
    const double comes = kTrain * apart + 10e-9;  // a little after the first train
    memory.read(2, comes, 2 * kRow, kPiece);
    return memory[2].begin - comes;
  };
  EXPECT_GT(waits(kByte / 2), 1.5 * kTakes);
  EXPECT_LT(waits(4 * kByte), 1.25 * kTakes);
}

TEST(HbmSlice, AWriteComesTrainByTrainEachWithItsLastByte) {
  Served memory;
  const double apart = 4 * kByte;
  memory.write_slowly(1, 0, 0, kPiece, apart);
  memory.write_slowly(2, 0, kRow, 2 * kTrain, apart);
  EXPECT_NEAR(memory[1].end, kPiece * apart, kExact);
  EXPECT_GT(memory[2].begin, kTrain * apart) << "it is told of when its first train has entered";
  EXPECT_LT(memory[2].begin, 2 * kTrain * apart);
  EXPECT_GT(memory[2].end, 2 * kTrain * apart);
}

TEST(HbmSlice, TrainsOfAWriteEndAtMultiplesOfTheirLength) {
  Served memory;
  const double apart = 4 * kByte;
  memory.write_slowly(1, 0, kRow - 100, 2 * kPiece, apart);
  EXPECT_NEAR(memory[1].begin, 100 * apart, kExact);
  EXPECT_NEAR(memory[1].end, 2 * kPiece * apart, kExact);
}

/// 33.75 ns for a read of an open row, of which the device takes tCL and BL.
TEST(HbmSlice, AWriteIsAnsweredAfterWhatAReadTakesBesideTheDevice) {
  EXPECT_NEAR(Served().answer(), 33.75e-9 - 22 * kCycle, kExact);
}

TEST(HbmSlice, AWriteComesBetweenReadsThatComeOneByOne) {
  const auto enters = [](double apart) {
    Served memory;
    memory.read_slowly(1, 0, 0, 2 * kBurstBytes, apart);
    memory.write(2, 1e-9, kRow, kPiece);
    return memory[2].end;
  };
  EXPECT_GT(enters(0), kTakes) << "behind what the queue of reads has no room for";
  EXPECT_NEAR(enters(kByte), 1e-9, kExact);
}

TEST(HbmSlice, AReadAndAWriteOfAPieceEachTakeTurnsWithinAccesses) {
  Served memory;
  memory.read(1, 0, 0, kBurstBytes);
  memory.write(2, 0, kRow, kBurstBytes);
  memory[1];
  EXPECT_GT(memory[1].end - memory[1].begin, kTakes + kQueue * kByte);  // writes have passed in between
  EXPECT_GT(memory[2].end, kTakes / 2);                                 // and have not entered all at once
}

TEST(HbmSlice, WritesPassWhileNothingIsRead) {
  Served memory;
  memory.write(1, 0, 0, 512);
  memory.read(2, 10 * kTakes, 0, 512);
  memory.read(3, 10 * kTakes, 512, 512);
  EXPECT_NEAR(memory[3].begin, 10 * kTakes + kTakes / 8, kExact);
}

}  // namespace
}  // namespace kernbench::test
