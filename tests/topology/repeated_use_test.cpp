#include "topology/machine/repeated_use.h"

#include <gtest/gtest.h>

namespace kernbench::topology {
namespace {

constexpr std::uint32_t kSlices = 8;
constexpr Ps kSlice = Ps{1} << Usage::kLeastShift;
const RepeatedUse::Work kWork{3, 0};

PlaceUse use(Ps busy, std::uint64_t bytes, std::uint64_t messages, Ps waited = 0, std::uint32_t mark = 0) {
  return {busy, bytes, messages, {waited, 0, waited}, mark};
}

/// What repeats did at a place, in a run of `end`.
RepeatedUse::Sum sum_of(RepeatedUse& repeated, Ps end, std::uint32_t place, std::uint16_t sip = 0) {
  const std::uint32_t shift = repeated.prepare(Usage::kLeastShift, end);
  RepeatedUse::Sum sum;
  sum.slices.resize(((end - 1) >> shift) + 1);
  sum.reasons.resize(sum.slices.size());
  repeated.add(sip, place, 1, sum);
  return sum;
}

TEST(RepeatedUse, EachRepeatDoesTheMeanOfTheOccurrences) {
  RepeatedUse repeated(kSlices);
  repeated.simulated(kWork, {use(100, 10, 1), use(7, 3, 1, 50, 2)}, false);
  repeated.simulated(kWork, {use(200, 20, 2), use(8, 3, 1, 51, 4)}, false);
  for (int i = 0; i < 3; ++i) repeated.repeated(kWork, 0, 1'000 * i, 1'000 * i + 900);
  const RepeatedUse::Sum first = sum_of(repeated, kSlice, 0), second = sum_of(repeated, kSlice, 1);
  EXPECT_EQ(first.total.busy, 450u);
  EXPECT_EQ(first.total.bytes, 45u);
  EXPECT_EQ(first.total.messages, 5u) << "4.5, rounded";
  EXPECT_EQ(second.total.busy, 23u) << "22.5";
  EXPECT_EQ(second.total.waited[0] + second.total.waited[2], 304u) << "151.5 twice, each rounded";
  EXPECT_EQ(second.total.waited[1], 0u);
  EXPECT_EQ(second.slices[0].waiting, 304u) << "as much as for all reasons";
  EXPECT_EQ(second.total.mark, 4u);
  EXPECT_EQ(second.slices[0].mark, 4u);
}

TEST(RepeatedUse, OccurrencesThatCountNoMoreAreForgotten) {
  RepeatedUse repeated(kSlices);
  repeated.simulated(kWork, {use(900, 90, 9)}, false);
  repeated.simulated(kWork, {use(100, 10, 1)}, true);
  repeated.repeated(kWork, 0, 0, 1'000);
  EXPECT_EQ(sum_of(repeated, kSlice, 0).total.busy, 100u);
}

TEST(RepeatedUse, ARepeatIsSpreadEvenlyOverItsTime) {
  RepeatedUse repeated(kSlices);
  repeated.simulated(kWork, {use(1'000, 400, 4, 300)}, false);
  repeated.repeated(kWork, 0, kSlice, 3 * kSlice);
  const RepeatedUse::Sum sum = sum_of(repeated, 4 * kSlice, 0);
  EXPECT_EQ(sum.reasons[1], (Usage::Waits{150, 0, 150}));
  EXPECT_EQ(sum.reasons[3], Usage::Waits{});
  const std::uint64_t bytes[] = {0, 200, 200, 0};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sum.slices[i].bytes, bytes[i]) << i;
  EXPECT_EQ(sum.slices[1].messages + sum.slices[2].messages, 4u);
}

TEST(RepeatedUse, SlicesAddUpToTheTotalWhateverIsRounded) {
  RepeatedUse repeated(kSlices);
  repeated.simulated(kWork, {use(10, 1, 1)}, false);
  repeated.simulated(kWork, {use(10, 0, 0)}, false);
  repeated.simulated(kWork, {use(11, 0, 0)}, false);
  for (int i = 0; i < 30; ++i) repeated.repeated(kWork, 0, i * kSlice, i * kSlice + 500);
  const RepeatedUse::Sum sum = sum_of(repeated, 30 * kSlice, 0);
  Usage::Slice all;
  for (const Usage::Slice& slice : sum.slices) all += slice;
  EXPECT_LE(sum.slices.size(), kSlices) << "they grow with the run";
  EXPECT_EQ(all.bytes, 10u);
  EXPECT_EQ(sum.total.bytes, 10u);
  EXPECT_EQ(all.busy, 310u);
  EXPECT_EQ(sum.total.busy, 310u);
}

TEST(RepeatedUse, NoSliceIsBusyForLongerThanItIs) {
  RepeatedUse repeated(kSlices);
  repeated.simulated(kWork, {use(kSlice, 1, 1)}, false);
  repeated.repeated(kWork, 0, 0, kSlice / 2);
  repeated.prepare(Usage::kLeastShift, kSlice / 2);
  RepeatedUse::Sum sum;
  sum.slices.resize(1);
  sum.slices[0].busy = kSlice / 8;  // simulated
  EXPECT_TRUE(repeated.add(0, 0, 1, sum));
  EXPECT_EQ(sum.slices[0].busy, kSlice / 2);
  EXPECT_EQ(sum.total.busy, kSlice / 2 - kSlice / 8);
}

TEST(RepeatedUse, SipsAndPlacesThatDidNothingHaveNothing) {
  RepeatedUse repeated(kSlices);
  repeated.simulated(kWork, {use(10, 1, 1), use(0, 0, 0)}, false);
  repeated.repeated(kWork, 1, 0, 100);
  repeated.repeated({4, 0}, 1, 0, 100);  // of which no occurrence was whole
  repeated.prepare(Usage::kLeastShift, kSlice);
  RepeatedUse::Sum sum;
  sum.slices.resize(1);
  EXPECT_FALSE(repeated.add(0, 0, 1, sum)) << "another SIP";
  EXPECT_FALSE(repeated.add(1, 1, 1, sum));
  EXPECT_FALSE(repeated.add(1, 2, 1, sum)) << "a place that the occurrence did not have";
  EXPECT_TRUE(repeated.add(1, 0, 1, sum));
}

}  // namespace
}  // namespace kernbench::topology
