#include "tlm/observe/usage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace kernbench {
namespace {

constexpr std::uint32_t kShift = 10;  // slices of 1024 ps

Usage::Slice sum_of(const std::vector<Usage::Slice>& slices) {
  Usage::Slice sum;
  for (const Usage::Slice& slice : slices) sum += slice;
  return sum;
}

TEST(Usage, SpreadsAnIntervalOverTheSlicesThatItMeets) {
  UsageSlices common(8, kShift);
  Usage usage(common);
  usage.busy(512, 512 + 2048, 64, 8);
  const auto slices = usage.slices(kShift, 3072);
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(slices[0].busy, 512U);
  EXPECT_EQ(slices[1].busy, 1024U);
  EXPECT_EQ(slices[2].busy, 512U);
  EXPECT_EQ(slices[0].bytes, 16U);
  EXPECT_EQ(slices[1].bytes, 32U);
  EXPECT_EQ(slices[2].bytes, 16U);
  EXPECT_EQ(slices[0].messages, 2U);
  EXPECT_EQ(slices[1].messages, 4U);
  EXPECT_EQ(slices[2].messages, 2U);
}

TEST(Usage, CountsOneMessageWhereItEnds) {
  UsageSlices common(8, kShift);
  Usage usage(common);
  usage.busy(1000, 3000, 64, 1);
  const auto slices = usage.slices(kShift, 3072);
  EXPECT_EQ(slices[0].messages + slices[1].messages, 0U);
  EXPECT_EQ(slices[2].messages, 1U);
}

// Whatever was booked last; folding keeps the larger of two.
TEST(Usage, KeepsTheHighestLevelOfEachSlice) {
  UsageSlices common(8, kShift);
  Usage usage(common);
  usage.level(3, 100);
  usage.level(2, 200);
  usage.busy(2100, 2200, 1, 1);
  usage.level(5, 1500);  // in a slice before
  usage.level(1, 2150);
  auto slices = usage.slices(kShift, 3072);
  EXPECT_EQ(slices[0].mark, 3U);
  EXPECT_EQ(slices[1].mark, 5U);
  EXPECT_EQ(slices[2].mark, 1U);
  usage.level(4, 8 * 1024);  // beyond the eight slices
  slices = usage.slices(kShift + 1, 8 * 1024 + 1);
  EXPECT_EQ(slices[0].mark, 5U);
  EXPECT_EQ(slices[1].mark, 1U);
  EXPECT_EQ(slices[4].mark, 4U);
}

// Folding loses nothing and never more than halves what it can tell apart.
TEST(Usage, KeepsItsSumsInBoundedSlicesHoweverLongTheRun) {
  UsageSlices common(8, kShift);
  Usage usage(common);
  usage.keep_reasons();
  Usage::Waits waited{};
  std::mt19937_64 random(1);
  Ps busy = 0, waiting = 0, last = 0;
  std::uint64_t bytes = 0, messages = 0, most = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Ps begin = last + random() % 5000, end = begin + random() % 3000;
    usage.busy(begin, end, i % 97, i % 5);
    messages += static_cast<std::uint64_t>(i % 5);
    usage.level(i % 89, end);
    most = std::max<std::uint64_t>(most, i % 89);
    busy += end - begin;
    bytes += static_cast<std::uint64_t>(i % 97);
    const Ps since = begin - std::min<Ps>(begin, random() % 9000);  // of an earlier slice, mostly
    usage.wait(since, begin, static_cast<unsigned>(i % 3));
    waiting += begin - since;
    waited[static_cast<std::size_t>(i % 3)] += begin - since;
    last = end;
  }
  const auto slices = usage.slices(usage.shift(), last);
  EXPECT_LE(slices.size(), 8U);
  EXPECT_GT(slices.size(), 4U);
  const Usage::Slice sum = sum_of(slices);
  EXPECT_EQ(sum.busy, busy);
  EXPECT_EQ(sum.waiting, waiting);
  EXPECT_EQ(usage.waited(0) + usage.waited(1) + usage.waited(2), waiting);
  const auto reasons = usage.reasons(usage.shift(), last);
  ASSERT_EQ(reasons.size(), slices.size());
  Usage::Waits of{};
  for (std::size_t i = 0; i < slices.size(); ++i) {
    EXPECT_EQ(reasons[i][0] + reasons[i][1] + reasons[i][2], slices[i].waiting) << i;
    for (unsigned reason = 0; reason < Usage::kReasons; ++reason) of[reason] += reasons[i][reason];
  }
  EXPECT_EQ(of, waited);
  EXPECT_EQ(sum.bytes, bytes);
  EXPECT_EQ(sum.messages, messages);
  EXPECT_EQ(sum.mark, most);
}

// Slices are kept in 16 B until one of them holds more than that has room for: both sides of each limit.
TEST(Usage, LosesNothingOfASliceThatHoldsMoreThanOthers) {
  constexpr std::uint64_t k24 = std::uint64_t{1} << 24, k32 = std::uint64_t{1} << 32;
  constexpr Ps kSlice = 2 * k32;
  const auto book = [](Usage& usage, Ps begin, const Usage::Slice& what) {
    usage.busy(begin, begin + what.busy, what.bytes, what.messages);
    usage.wait(begin, begin + what.waiting);
    usage.level(what.mark, begin);
  };
  const auto expect_equal = [](const Usage::Slice& slice, const Usage::Slice& wanted) {
    EXPECT_EQ(slice.busy, wanted.busy);
    EXPECT_EQ(slice.waiting, wanted.waiting);
    EXPECT_EQ(slice.bytes, wanted.bytes);
    EXPECT_EQ(slice.messages, wanted.messages);
    EXPECT_EQ(slice.mark, wanted.mark);
  };
  const Usage::Slice small{3, 4, 5, 6, 7};
  for (const Usage::Slice& large :
       {Usage::Slice{k32 - 1, k32 - 1, k24 - 1, 65535, k24 - 1}, Usage::Slice{k32, 1, 1, 1, 1},
        Usage::Slice{1, k32, 1, 1, 1}, Usage::Slice{1, 1, k24, 1, 1}, Usage::Slice{1, 1, 1, 65536, 1},
        Usage::Slice{1, 1, 1, 1, k24}}) {
    UsageSlices common(8, 33);
    Usage usage(common), other(common);
    book(other, 0, small);
    book(usage, 0, small);
    book(usage, kSlice, large);
    book(usage, 2 * kSlice, small);
    book(other, kSlice, small);
    const auto slices = usage.slices(33, 3 * kSlice), others = other.slices(33, 3 * kSlice);
    expect_equal(slices[0], small);
    expect_equal(slices[1], large);
    expect_equal(slices[2], small);
    expect_equal(others[0], small);
    expect_equal(others[1], small);
    book(usage, kSlice, small);  // once more, into what is kept
    book(usage, 3 * kSlice, small);
    Usage::Slice both = large;
    expect_equal(usage.slices(33, 4 * kSlice)[1], both += small);
  }
}

TEST(Usage, KeepsReasonsOfWaitingApartInTheSlicesInWhichTheyWaited) {
  UsageSlices common(8, kShift);  // 1,024 ps
  Usage usage(common);
  usage.keep_reasons();
  usage.wait(100, 300, 0);
  usage.wait(200, 500, 1);
  usage.wait(1'000, 2'100, 2);  // over three slices
  usage.wait(2'060, 2'070, 0);
  usage.wait(600, 650, 1);  // back to the first
  using Waits = Usage::Waits;
  const std::vector<Waits> expected{{200, 350, 24}, {0, 0, 1'024}, {10, 0, 52}};
  EXPECT_EQ(usage.reasons(kShift, 2'200), expected);
  EXPECT_EQ(usage.reasons(kShift + 1, 2'200), (std::vector<Waits>{{200, 350, 1'048}, {10, 0, 52}}));
  Usage without(common);
  without.wait(0, 100);
  EXPECT_TRUE(without.reasons(kShift, 2'200).empty());
}

// A router books a packet's flits at its tail, a wire what slips in over what is under way.
TEST(Usage, FillsNoSliceBeyondItsLength) {
  UsageSlices common(8, kShift);
  Usage usage(common);
  usage.busy(0, 500, 1, 1);
  usage.busy(1024, 2048, 1, 1);
  usage.busy(1100, 1600, 1, 1);  // 500 ps more than the second slice has: they were in the first
  const auto slices = usage.slices(kShift, 2048);
  EXPECT_EQ(slices[0].busy, 1000U);
  EXPECT_EQ(slices[1].busy, 1024U);
}

TEST(Usage, CountsSeveralUnitsTogether) {
  UsageSlices common(8, kShift);
  Usage usage(common, 2);
  usage.busy(0, 1024, 2048, 7, 1);
  EXPECT_EQ(usage.slices(kShift, 1024)[0].busy, 2048U);
}

// Slices come in blocks of 65,536; here there are not two usages' in one.
TEST(Usage, HasSlicesOfItsOwn) {
  constexpr std::uint32_t kMost = 40'000;
  UsageSlices common(kMost, kShift);
  std::deque<Usage> usages;
  constexpr Ps kEnd = Ps{kMost} << kShift;
  for (int i = 0; i < 3; ++i) usages.emplace_back(common).busy(0, kEnd, 0, 0);
  for (const Usage& usage : usages) {
    const auto slices = usage.slices(kShift, kEnd);
    EXPECT_EQ(std::count_if(slices.begin(), slices.end(), [](const auto& slice) { return slice.busy == 1024; }),
              std::ptrdiff_t{kMost});
  }
}

TEST(UsageBook, GivesAllResourcesTheSlicesOfTheLongest) {
  UsageBook book(16);
  Usage* early = book.add();
  Usage* late = book.add();
  early->busy(0, 10, 1, 1);
  late->busy(1'000'000, 1'000'010, 1, 1);
  const std::uint32_t shift = book.shift(2'000'000);
  EXPECT_LE((2'000'000U >> shift) + 1, 16U);
  const auto first = early->slices(shift, 2'000'000), second = late->slices(shift, 2'000'000);
  EXPECT_EQ(first.size(), second.size());
  EXPECT_EQ(first[0].busy, 10U);
  EXPECT_EQ(sum_of(second).busy, 10U);
}

TEST(Usage, SumsWhatItWasBookedForUpToNow) {
  UsageSlices common(8, Usage::kLeastShift);
  Usage usage(common);
  const Ps slice = Ps{1} << Usage::kLeastShift;
  usage.busy(10, 20, 100, 1);
  usage.busy(slice - 10, 3 * slice, 50, 2);      // over several slices
  usage.busy(5 * slice, 5 * slice + 7, 8, 1);    // in another one
  usage.busy(40 * slice, 40 * slice + 1, 1, 1);  // slices grow
  EXPECT_EQ(usage.sum().busy, 10 + 2 * slice + 10 + 7 + 1);
  EXPECT_EQ(usage.sum().bytes, 159u);
  EXPECT_EQ(usage.sum().messages, 5u);
}

TEST(Usage, KnowsTheLargestMarkSinceAnInstant) {
  UsageSlices common(8, Usage::kLeastShift);
  Usage usage(common);
  const Ps slice = Ps{1} << Usage::kLeastShift;
  usage.level(9, 0);
  usage.level(3, 2 * slice);
  usage.level(4, 3 * slice);
  EXPECT_EQ(usage.mark(0), 9u);
  EXPECT_EQ(usage.mark(slice), 4u);
  EXPECT_EQ(usage.mark(4 * slice), 0u);
}

}  // namespace
}  // namespace kernbench
