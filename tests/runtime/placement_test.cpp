#include "runtime/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <type_traits>

namespace kernbench {
namespace {

// The same cases in every run, unless the environment asks for others.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=1 max_success=300", 0);

// A policy has no SIP axis and a shard no flat index: what would use them does not compile.
template <class T, class = void>
struct HasSip : std::false_type {};
template <class T>
struct HasSip<T, std::void_t<decltype(std::declval<T&>().sip)>> : std::true_type {};
template <class T, class = void>
struct HasNumSips : std::false_type {};
template <class T>
struct HasNumSips<T, std::void_t<decltype(std::declval<T&>().num_sips)>> : std::true_type {};
template <class T, class = void>
struct HasPeIndex : std::false_type {};
template <class T>
struct HasPeIndex<T, std::void_t<decltype(std::declval<T&>().pe_index)>> : std::true_type {};

template <class T, class = void>
struct TakesSip : std::false_type {};
template <class T>
struct TakesSip<T, std::void_t<decltype(std::declval<T&>().sip(0))>> : std::true_type {};
template <class T, class = void>
struct TakesNumSips : std::false_type {};
template <class T>
struct TakesNumSips<T, std::void_t<decltype(std::declval<T&>().sips(0))>> : std::true_type {};
template <class T, class = void>
struct GivesSip : std::false_type {};
template <class T>
struct GivesSip<T, std::void_t<decltype(std::declval<T&>().sip())>> : std::true_type {};

#define ASSIGNS(Name, member, value) \
  template <class T, class = void>   \
  struct Name : std::false_type {};  \
  template <class T>                 \
  struct Name<T, std::void_t<decltype(std::declval<T&>().member = value)>> : std::true_type {}
ASSIGNS(AssignsCube, cube, CubeSplit::row_wise);
ASSIGNS(AssignsPe, pe, PeSplit::row_wise);
ASSIGNS(AssignsNumPes, num_pes, 1);
ASSIGNS(AssignsNumCubes, num_cubes, 1);
ASSIGNS(AssignsCubeOf, cube(), CubeSplit::row_wise);
ASSIGNS(AssignsPeOf, pe(), PeSplit::row_wise);
#undef ASSIGNS

/// As it was: what the detections above have to find.
struct OpenPolicy {
  CubeSplit cube = CubeSplit::replicate;
  PeSplit pe = PeSplit::replicate;
  std::optional<int> num_pes, num_cubes;
};

TEST(PlacementTypes, PolicyIsNotChangedOnceItIsMade) {
  static_assert(AssignsCube<OpenPolicy>::value && AssignsPe<OpenPolicy>::value && AssignsNumPes<OpenPolicy>::value &&
                AssignsNumCubes<OpenPolicy>::value);
  static_assert(!AssignsCube<DPPolicy>::value && !AssignsPe<DPPolicy>::value && !AssignsNumPes<DPPolicy>::value &&
                !AssignsNumCubes<DPPolicy>::value && !AssignsCubeOf<DPPolicy>::value && !AssignsPeOf<DPPolicy>::value);
  static_assert(!std::is_aggregate_v<DPPolicy>, "its values have no order to be given in");
  const DPPolicy all, some = all.cube(CubeSplit::row_wise).pe(PeSplit::tiled_row_major).pes(4).cubes(2);
  EXPECT_EQ(to_string(all), "cube=replicate,pe=replicate") << "setters leave the policy as it was";
  EXPECT_EQ(to_string(some), "cube=row_wise,pe=tiled_row_major,cubes=2,pes=4");
  EXPECT_EQ(to_string(some.pes(std::nullopt).cubes(std::nullopt)), "cube=row_wise,pe=tiled_row_major");
  EXPECT_EQ(some.num_pes(), 4);
  EXPECT_EQ(some.num_cubes(), 2);
}

TEST(PlacementTypes, NumbersOfPesCubesAndTheSipCannotChangePlaces) {
  using Resolve = decltype(resolve_dp_policy)&;
  static_assert(std::is_invocable_v<Resolve, DPPolicy, Shape, int, NumPes, NumCubes, SipNumber>);
  static_assert(!std::is_invocable_v<Resolve, DPPolicy, Shape, int, NumCubes, NumPes, SipNumber>);
  static_assert(!std::is_invocable_v<Resolve, DPPolicy, Shape, int, NumPes, SipNumber, NumCubes>);
  static_assert(!std::is_invocable_v<Resolve, DPPolicy, Shape, NumPes, int, NumCubes, SipNumber>);
  static_assert(!std::is_invocable_v<Resolve, DPPolicy, Shape, int, int, int, int>);
  static_assert(!std::is_invocable_v<decltype(resolve_pe_split)&, PeSplit, Region, NumPes, int>);
}

TEST(PlacementTypes, PolicyHasNoSipAxis) {
  static_assert(!TakesSip<DPPolicy>::value && !TakesNumSips<DPPolicy>::value && !GivesSip<DPPolicy>::value,
                "policy.sip() must not compile");
  static_assert(!HasSip<DPPolicy>::value, "policy.sip must not compile");
  static_assert(!HasNumSips<DPPolicy>::value, "policy.num_sips must not compile");
}

TEST(PlacementTypes, ShardHasNoFlatPeIndex) {
  static_assert(!HasPeIndex<ShardSpec>::value && !HasPeIndex<LocalShard>::value && !HasPeIndex<DPPolicy>::value,
                "shard.pe_index must not compile");
}

TEST(PlacementTypes, InnerResolverKnowsNoSipAndNoCube) {
  static_assert(HasSip<ShardSpec>::value && !HasSip<LocalShard>::value);
  static_assert(std::is_same_v<decltype(LocalShard::local_pe), int>);
  static_assert(
      std::is_same_v<decltype(resolve_pe_split(PeSplit::replicate, Region{}, 1, NumPes{1}))::value_type, LocalShard>);
}

TEST(PlacementTypes, TargetSipIsRequiredAtTheCall) {
  static_assert(!std::is_invocable_v<decltype(resolve_dp_policy)&, DPPolicy, Shape, int, NumPes, NumCubes>);
  static_assert(std::is_invocable_v<decltype(resolve_dp_policy)&, DPPolicy, Shape, int, NumPes, NumCubes, SipNumber>);
}

constexpr std::array kCubeSplits = {CubeSplit::replicate, CubeSplit::column_wise, CubeSplit::row_wise};
constexpr std::array kPeSplits = {PeSplit::replicate, PeSplit::column_wise, PeSplit::row_wise,
                                  PeSplit::tiled_column_major, PeSplit::tiled_row_major};

struct Case {
  DPPolicy policy;
  Shape shape;
  int itemsize, num_pe, num_cubes;
};

Case any_case() {
  Case c;
  c.policy = c.policy.cube(*rc::gen::elementOf(kCubeSplits)).pe(*rc::gen::elementOf(kPeSplits));
  c.num_pe = *rc::gen::inRange(1, 17);
  c.num_cubes = *rc::gen::inRange(1, 17);
  if (*rc::gen::arbitrary<bool>()) c.policy = c.policy.pes(*rc::gen::inRange(1, c.num_pe + 1));
  if (*rc::gen::arbitrary<bool>()) c.policy = c.policy.cubes(*rc::gen::inRange(1, c.num_cubes + 1));
  c.shape = {*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 40)};
  c.itemsize = *rc::gen::element(1, 2, 4, 8);
  return c;
}

std::vector<ShardSpec> resolve(const Case& c, int sip = 0) {
  return resolve_dp_policy(c.policy, c.shape, c.itemsize, NumPes{c.num_pe}, NumCubes{c.num_cubes}, SipNumber{sip});
}

/// How many shards hold each element.
std::vector<int> cover(const Case& c, const std::vector<ShardSpec>& shards) {
  std::vector<int> count(static_cast<std::size_t>(c.shape.count()), 0);
  for (const ShardSpec& shard : shards) {
    for (std::int64_t r = 0; r < shard.region.rows; ++r) {
      for (std::int64_t col = 0; col < shard.region.cols; ++col) {
        ++count.at(static_cast<std::size_t>((shard.region.row + r) * c.shape.cols + shard.region.col + col));
      }
    }
  }
  return count;
}

template <class Property>
void check(const char* what, const Property& property) {
  EXPECT_TRUE(rc::check(what, property));
}

TEST(Placement, EveryElementIsHeldOncePerReplica) {
  check("tiles exactly once per replica", [] {
    const Case c = any_case();
    const int cubes = c.policy.num_cubes().value_or(c.num_cubes), pes = c.policy.num_pes().value_or(c.num_pe);
    const int replicas =
        (c.policy.cube() == CubeSplit::replicate ? cubes : 1) * (c.policy.pe() == PeSplit::replicate ? pes : 1);
    for (const int count : cover(c, resolve(c))) RC_ASSERT(count == replicas);
  });
}

TEST(Placement, BytesAddUp) {
  check("sum of nbytes", [] {
    const Case c = any_case();
    const auto shards = resolve(c);
    std::uint64_t sum = 0;
    for (const ShardSpec& shard : shards) {
      RC_ASSERT(shard.nbytes == static_cast<std::uint64_t>(shard.region.rows * shard.region.cols * c.itemsize));
      sum += shard.nbytes;
    }
    const auto covered = cover(c, shards);
    RC_ASSERT(sum == static_cast<std::uint64_t>(std::accumulate(covered.begin(), covered.end(), 0) * c.itemsize));
  });
}

TEST(Placement, PackedRangesAreWholeAndDisjoint) {
  check("ranges tile the packed tensor", [] {
    const Case c = any_case();
    std::map<std::uint64_t, std::uint64_t> ranges;
    for (const ShardSpec& shard : resolve(c)) {
      if (shard.nbytes == 0) continue;
      const auto [at, added] = ranges.emplace(shard.offset_bytes, shard.nbytes);
      RC_ASSERT(added || at->second == shard.nbytes);  // replicas share offset and size
    }
    std::uint64_t end = 0;
    for (const auto& [offset, bytes] : ranges) {
      RC_ASSERT(offset == end);
      end = offset + bytes;
    }
    RC_ASSERT(end == static_cast<std::uint64_t>(c.shape.count() * c.itemsize));
  });
}

TEST(Placement, OrderIsCubeMajorAndStructural) {
  check("cube-major, then PE", [] {
    const Case c = any_case();
    const int cubes = c.policy.num_cubes().value_or(c.num_cubes), pes = c.policy.num_pes().value_or(c.num_pe);
    const auto shards = resolve(c);
    RC_ASSERT(shards.size() == static_cast<std::size_t>(cubes * pes));
    for (std::size_t i = 0; i < shards.size(); ++i) {
      RC_ASSERT(shards[i].cube == static_cast<int>(i) / pes);
      RC_ASSERT(shards[i].pe == static_cast<int>(i) % pes);
    }
  });
}

TEST(Placement, AnotherSipChangesTheSipOnly) {
  check("same list with only sip changed", [] {
    const Case c = any_case();
    const auto a = resolve(c, 0), b = resolve(c, 5);
    RC_ASSERT(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      RC_ASSERT(a[i].sip == 0 && b[i].sip == 5);
      RC_ASSERT(std::tie(a[i].cube, a[i].pe, a[i].offset_bytes, a[i].nbytes, a[i].region.row, a[i].region.col) ==
                std::tie(b[i].cube, b[i].pe, b[i].offset_bytes, b[i].nbytes, b[i].region.row, b[i].region.col));
    }
  });
}

TEST(Placement, PartsDifferByAtMostOneRowOrColumn) {
  check("even split", [] {
    Case c = any_case();
    c.policy = c.policy.cube(CubeSplit::row_wise).pe(PeSplit::column_wise);
    std::set<std::int64_t> rows, cols;
    for (const ShardSpec& shard : resolve(c)) {
      rows.insert(shard.region.rows);
      cols.insert(shard.region.cols);
    }
    RC_ASSERT(*rows.rbegin() - *rows.begin() <= 1);
    RC_ASSERT(*cols.rbegin() - *cols.begin() <= 1);
  });
}

TEST(Placement, FirstUnitsGetTheRemainder) {
  const DPPolicy policy = DPPolicy().pe(PeSplit::row_wise);
  const auto shards = resolve_dp_policy(policy, {10, 3}, 2, NumPes{4}, NumCubes{1}, SipNumber{0});
  ASSERT_EQ(shards.size(), 4u);
  const std::vector<std::int64_t> rows = {3, 3, 2, 2};
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(shards[i].region.rows, rows[i]);
    EXPECT_EQ(shards[i].offset_bytes, offset);
    offset += shards[i].nbytes;
  }
}

TEST(Placement, FewerRowsThanPesLeavesEmptyShards) {
  const DPPolicy policy = DPPolicy().pe(PeSplit::row_wise);
  const auto shards = resolve_dp_policy(policy, {2, 3}, 2, NumPes{4}, NumCubes{1}, SipNumber{0});
  EXPECT_FALSE(shards[1].region.empty());
  EXPECT_TRUE(shards[2].region.empty());
  EXPECT_EQ(shards[3].nbytes, 0u);
  EXPECT_EQ(shards[3].offset_bytes, 12u);
}

TEST(Placement, OneKibibyteOver128PesIsEightBytesEach) {
  const DPPolicy policy = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
  for (const ShardSpec& shard : resolve_dp_policy(policy, {1, 512}, 2, NumPes{8}, NumCubes{16}, SipNumber{1}))
    EXPECT_EQ(shard.nbytes, 8u);
}

TEST(Placement, TilesAreDealtAlongRowsOrColumnsOfTheGrid) {
  DPPolicy policy = DPPolicy().pe(PeSplit::tiled_row_major);  // 8 PEs: a grid of 2 x 4
  auto shards = resolve_dp_policy(policy, {4, 8}, 1, NumPes{8}, NumCubes{1}, SipNumber{0});
  EXPECT_EQ(shards[1].region.row, 0);
  EXPECT_EQ(shards[1].region.col, 2);
  EXPECT_EQ(shards[4].region.row, 2);
  EXPECT_EQ(shards[4].region.col, 0);
  policy = policy.pe(PeSplit::tiled_column_major);
  shards = resolve_dp_policy(policy, {4, 8}, 1, NumPes{8}, NumCubes{1}, SipNumber{0});
  EXPECT_EQ(shards[1].region.row, 2);
  EXPECT_EQ(shards[1].region.col, 0);
  EXPECT_EQ(shards[2].region.row, 0);
  EXPECT_EQ(shards[2].region.col, 2);
}

std::string error_of(const DPPolicy& policy, Shape shape, int itemsize, int num_pe, int num_cubes, int sip) {
  try {
    resolve_dp_policy(policy, shape, itemsize, NumPes{num_pe}, NumCubes{num_cubes}, SipNumber{sip});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Placement, BadInputNamesArgumentValueAndRange) {
  DPPolicy policy;
  EXPECT_EQ(error_of(policy, {0, 4}, 2, 8, 16, 0), "rows is 0: give 1 to 9223372036854775807");
  EXPECT_EQ(error_of(policy, {4, -1}, 2, 8, 16, 0), "cols is -1: give 1 to 1152921504606846975");
  EXPECT_EQ(error_of(policy, {4, 4}, 0, 8, 16, 0), "itemsize is 0: give 1 to 8");
  EXPECT_EQ(error_of(policy, {4, 4}, 2, 0, 16, 0), "num_pe is 0: give 1 to 256");
  EXPECT_EQ(error_of(policy, {4, 4}, 2, 8, 300, 0), "num_cubes is 300: give 1 to 256");
  EXPECT_EQ(error_of(policy, {4, 4}, 2, 8, 16, 4096), "target_sip is 4096: give 0 to 4095");
  policy = policy.pes(9);
  EXPECT_EQ(error_of(policy, {4, 4}, 2, 8, 16, 0), "policy.num_pes is 9: give 1 to 8");
  policy = policy.pes(0);
  EXPECT_EQ(error_of(policy, {4, 4}, 2, 8, 16, 0), "policy.num_pes is 0: give 1 to 8");
  policy = policy.pes(std::nullopt).cubes(17);
  EXPECT_EQ(error_of(policy, {4, 4}, 2, 8, 16, 0), "policy.num_cubes is 17: give 1 to 16");
  policy = policy.cubes(std::nullopt).pe(static_cast<PeSplit>(7));
  EXPECT_EQ(error_of(policy, {4, 4}, 2, 8, 16, 0), "policy.pe is 7: give 0 to 4");
}

TEST(Placement, SameInputsGiveTheSameList) {
  check("deterministic", [] {
    const Case c = any_case();
    const auto a = resolve(c), b = resolve(c);
    RC_ASSERT(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      RC_ASSERT(std::tie(a[i].cube, a[i].pe, a[i].offset_bytes, a[i].nbytes) ==
                std::tie(b[i].cube, b[i].pe, b[i].offset_bytes, b[i].nbytes));
    }
  });
}

TEST(Placement, FirstNumPesAndNumCubesAreUsed) {
  const DPPolicy policy = DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::column_wise).cubes(2).pes(3);
  const auto shards = resolve_dp_policy(policy, {4, 6}, 2, NumPes{8}, NumCubes{16}, SipNumber{0});
  ASSERT_EQ(shards.size(), 6u);
  EXPECT_EQ(shards.back().cube, 1);
  EXPECT_EQ(shards.back().pe, 2);
  EXPECT_EQ(shards.back().region.cols, 2);
}

TEST(Placement, OnePeHoldsAll) {
  for (const PeSplit split : kPeSplits) {
    const DPPolicy policy = DPPolicy().pe(split);
    const auto shards = resolve_dp_policy(policy, {5, 7}, 2, NumPes{1}, NumCubes{1}, SipNumber{0});
    ASSERT_EQ(shards.size(), 1u);
    EXPECT_EQ(shards[0].nbytes, 70u);
  }
}

TEST(Placement, RowsAndColumnsOfOneElementWidth) {
  const DPPolicy policy = DPPolicy().pe(PeSplit::column_wise);
  const auto column =
      resolve_dp_policy(policy, {9, 1}, 2, NumPes{4}, NumCubes{1}, SipNumber{0});  // n x 1: one PE gets the column
  EXPECT_EQ(column[0].nbytes, 18u);
  EXPECT_TRUE(column[1].region.empty());
  const auto row = resolve_dp_policy(policy, {1, 9}, 2, NumPes{4}, NumCubes{1}, SipNumber{0});  // 1 x n
  EXPECT_EQ(row[0].region.cols, 3);
  EXPECT_EQ(row[3].region.cols, 2);
}

TEST(Placement, OtherRanksFoldIntoRowsAndColumns) {
  EXPECT_EQ(fold_shape({7}), (Shape{1, 7}));
  EXPECT_EQ(fold_shape({3, 7}), (Shape{3, 7}));
  EXPECT_EQ(fold_shape({2, 3, 4, 5}), (Shape{24, 5}));
  EXPECT_THROW(fold_shape({}), std::invalid_argument);
  try {
    fold_shape({2, 0, 4});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "dimension 1 is 0: give 1 to 1152921504606846975");
  }
}

}  // namespace
}  // namespace kernbench
