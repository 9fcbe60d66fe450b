#include "models/pe/cpu/scoreboard.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace kernbench::pe {
namespace {

Range read(std::uint64_t begin, std::uint64_t bytes) { return Range::of(Range::Space::tcm, begin, bytes, false); }
Range write(std::uint64_t begin, std::uint64_t bytes) { return Range::of(Range::Space::tcm, begin, bytes, true); }

/// Enters two ops with one range each; whether the second one waits.
bool waits(const Range& first, const Range& second) {
  Scoreboard board;
  Hazard a, b;
  board.enter(a, &first, 1);
  board.enter(b, &second, 1);
  return b.pending > 0;
}

TEST(Scoreboard, OverlapWithAWriteKeepsOrder) {
  EXPECT_TRUE(waits(write(0, 8), read(7, 8)));   // RAW
  EXPECT_TRUE(waits(read(0, 8), write(7, 8)));   // WAR
  EXPECT_TRUE(waits(write(0, 8), write(7, 8)));  // WAW
  EXPECT_FALSE(waits(read(0, 8), read(0, 8)));
}

TEST(Scoreboard, NeighboursAndOtherSpacesDoNotWait) {
  EXPECT_FALSE(waits(write(0, 8), read(8, 8)));
  EXPECT_FALSE(waits(write(8, 8), write(0, 8)));
  EXPECT_FALSE(waits(write(0, 8), Range::of(Range::Space::va, 0, 8, true)));
  EXPECT_FALSE(waits(write(0, 8), write(4, 0)));
}

TEST(Scoreboard, AnOpIsReadyWhenTheLastOneItWaitsForEnds) {
  Scoreboard board;
  Hazard a, b, c;
  const Range ra = write(0, 8), rb = write(8, 8);
  const Range rc[] = {read(0, 8), read(8, 8), write(16, 8)};
  board.enter(a, &ra, 1);
  board.enter(b, &rb, 1);
  board.enter(c, rc, 3);
  std::vector<Hazard*> ready;
  board.release(a, Scoreboard::What::all, ready);
  EXPECT_TRUE(ready.empty());
  board.release(b, Scoreboard::What::all, ready);
  EXPECT_EQ(ready, (std::vector<Hazard*>{&c}));
  board.release(c, Scoreboard::What::all, ready);
  EXPECT_EQ(board.size(), 0u);
}

TEST(Scoreboard, ReleasedReadsLetAWriterGoButNotAReaderOfTheResult) {
  Scoreboard board;
  Hazard store, writer, reader;
  const Range rs[] = {read(0, 8), Range::of(Range::Space::va, 100, 8, true)};
  const Range rw = write(0, 8), rr = Range::of(Range::Space::va, 100, 8, false);
  board.enter(store, rs, 2);
  board.enter(writer, &rw, 1);
  board.enter(reader, &rr, 1);
  std::vector<Hazard*> ready;
  board.release(store, Scoreboard::What::reads, ready);
  EXPECT_EQ(ready, (std::vector<Hazard*>{&writer}));
  board.release(store, Scoreboard::What::all, ready);
  EXPECT_EQ(ready, (std::vector<Hazard*>{&writer, &reader}));
}

std::set<std::uint64_t> bytes_of(std::uint64_t begin, std::uint64_t row, std::uint64_t stride, std::uint64_t rows) {
  std::set<std::uint64_t> bytes;
  for (std::uint64_t r = 0; r < rows; ++r) {
    for (std::uint64_t i = 0; i < row; ++i) bytes.insert(begin + r * stride + i);
  }
  return bytes;
}

TEST(Scoreboard, StridedOverlapIsExactForOneStrideAndForIntervals) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t stride = 1 + below(12);
    struct Shape {
      std::uint64_t begin, row, stride, rows;
    };
    const Shape a{below(60), below(8), stride, below(5)};
    const Shape b{below(60), below(8), stride, below(2) == 0 ? 1 : below(5)};
    const auto make = [](const Shape& s) {
      return Range::strided(Range::Space::va, s.begin, s.row, s.stride, s.rows, true);
    };
    const auto bytes_a = bytes_of(a.begin, a.row, a.stride, a.rows),
               bytes_b = bytes_of(b.begin, b.row, b.stride, b.rows);
    bool expected = false;
    for (const std::uint64_t byte : bytes_a) expected = expected || bytes_b.count(byte) > 0;
    ASSERT_EQ(overlap(make(a), make(b)), expected) << a.begin << " " << a.row << " " << a.rows << " / " << b.begin
                                                   << " " << b.row << " " << b.rows << " by " << stride;
    ASSERT_EQ(overlap(make(b), make(a)), expected);
  }
}

TEST(Scoreboard, DifferentStridesNeverMissAnOverlap) {
  std::mt19937 random(8);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int i = 0; i < 5'000; ++i) {
    const std::uint64_t ba = below(60), ra = 1 + below(4), sa = 1 + below(12), na = 1 + below(4);
    const std::uint64_t bb = below(60), rb = 1 + below(4), sb = 1 + below(12), nb = 1 + below(4);
    const auto bytes_a = bytes_of(ba, ra, sa, na), bytes_b = bytes_of(bb, rb, sb, nb);
    bool shared = false;
    for (const std::uint64_t byte : bytes_a) shared = shared || bytes_b.count(byte) > 0;
    const bool found = overlap(Range::strided(Range::Space::va, ba, ra, sa, na, true),
                               Range::strided(Range::Space::va, bb, rb, sb, nb, true));
    ASSERT_TRUE(found || !shared);
  }
}

}  // namespace
}  // namespace kernbench::pe
