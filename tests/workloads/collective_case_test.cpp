#include "sc_main/workloads/collective_case.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "ccl/contract/legal.h"

namespace kernbench {
namespace {

/// Two cubes with two PEs each.
PlacementUnits units() {
  PlacementUnits units;
  units.cubes = {0, 1};
  units.pes = {{0, 1}, {0, 1}};
  return units;
}

DPPolicy split() { return DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise); }

CollectiveCase case_of(CollectiveOp op, Scope scope = Scope::sip, int ranks = 2) {
  CollectiveCase c;
  c.op = op;
  c.scope = scope;
  c.ranks = ranks;
  c.dtype = DType::i32;
  c.in_place = false;
  c.in_policy = c.out_policy = split();
  return c;
}

/// "rank.index+rank.index>rank.index": where element `element` of a flow comes from and goes to.
std::string element_of(const Flow& flow, std::int64_t element) {
  std::string text;
  const auto list = [&](const std::vector<Place>& places) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      text += (i == 0 ? "" : "+") + std::to_string(places[i].rank) + "." +
              std::to_string(places[i].tile.at(places[i].offset + element));
    }
  };
  list(flow.sources);
  text += ">";
  list(flow.destinations);
  return text;
}

/// The last element of every flow.
std::vector<std::string> flows_of(const CollectiveCase& c, std::int64_t n) {
  std::vector<std::string> list;
  for (const Flow& flow : CollectiveLayout(c, units(), n).flows()) list.push_back(element_of(flow, n - 1));
  return list;
}

TEST(CollectiveLayout, ScopeSipCountsRanks) {
  using Op = CollectiveOp;
  const std::int64_t n = 5;
  EXPECT_EQ(flows_of(case_of(Op::all_reduce), n), (std::vector<std::string>{"0.4+1.4>0.4+1.4"}));
  EXPECT_EQ(flows_of(case_of(Op::reduce), n), (std::vector<std::string>{"0.4+1.4>0.4"}));
  EXPECT_EQ(flows_of(case_of(Op::broadcast), n), (std::vector<std::string>{"0.4>0.4+1.4"}));
  EXPECT_EQ(flows_of(case_of(Op::all_gather), n), (std::vector<std::string>{"0.4>0.4+1.4", "1.4>0.9+1.9"}));
  EXPECT_EQ(flows_of(case_of(Op::gather), n), (std::vector<std::string>{"0.4>0.4", "1.4>0.9"}));
  EXPECT_EQ(flows_of(case_of(Op::scatter), n), (std::vector<std::string>{"0.4>0.4", "0.9>1.4"}));
  EXPECT_EQ(flows_of(case_of(Op::reduce_scatter), n), (std::vector<std::string>{"0.4+1.4>0.4", "0.9+1.9>1.4"}));
  EXPECT_EQ(flows_of(case_of(Op::all_to_all), n),
            (std::vector<std::string>{"0.4>0.4", "1.4>0.9", "0.9>1.4", "1.9>1.9"}));
  EXPECT_EQ(flows_of(case_of(Op::send_recv, Scope::sip, 3), n),
            (std::vector<std::string>{"2.4>0.4", "0.4>1.4", "1.4>2.4"}));
}

TEST(CollectiveLayout, ScopeCubeCountsTheTilesOfCubes) {
  using Op = CollectiveOp;
  // Tiles of 5 beside each other in a row of 10: the last element of tile 0 is 4, of tile 1 9.
  EXPECT_EQ(flows_of(case_of(Op::all_reduce, Scope::cube), 5),
            (std::vector<std::string>{"0.4+0.9+1.4+1.9>0.4+0.9+1.4+1.9"}));
  EXPECT_EQ(flows_of(case_of(Op::all_gather, Scope::cube), 5),
            (std::vector<std::string>{"0.4>0.4+1.4", "0.9>0.9+1.9", "1.4>0.14+1.14", "1.9>0.19+1.19"}));
  // Tiles of 20 in a row of 40.
  EXPECT_EQ(flows_of(case_of(Op::reduce_scatter, Scope::cube), 5),
            (std::vector<std::string>{"0.4+0.24+1.4+1.24>0.4", "0.9+0.29+1.9+1.29>0.9", "0.14+0.34+1.14+1.34>1.4",
                                      "0.19+0.39+1.19+1.39>1.9"}));
  EXPECT_EQ(flows_of(case_of(Op::send_recv, Scope::cube), 5),
            (std::vector<std::string>{"1.4>0.4", "1.9>0.9", "0.4>1.4", "0.9>1.9"}));
  EXPECT_EQ(CollectiveLayout(case_of(Op::all_reduce, Scope::pe), units(), 5).contributions(), 8);
}

TEST(CollectiveLayout, InPlaceUsesTheOwnBlock) {
  CollectiveCase c = case_of(CollectiveOp::all_gather);
  c.in_place = true;
  EXPECT_EQ(flows_of(c, 5), (std::vector<std::string>{"0.4>0.4+1.4", "1.9>0.9+1.9"}));
  c.op = CollectiveOp::reduce_scatter;
  EXPECT_EQ(flows_of(c, 5), (std::vector<std::string>{"0.4+1.4>0.4", "0.9+1.9>1.9"}));
  c.op = CollectiveOp::reduce;
  EXPECT_EQ(flows_of(c, 5), (std::vector<std::string>{"0.4+1.4>0.4", "1.4>1.4"})) << "others keep what they have";
}

TEST(CollectiveLayout, RefusesWhatCannotBeMeant) {
  CollectiveCase c = case_of(CollectiveOp::all_to_all);
  c.in_place = true;
  EXPECT_THROW(CollectiveLayout(c, units(), 5), std::invalid_argument);
  c = case_of(CollectiveOp::reduce_scatter, Scope::cube);
  c.out_policy = c.out_policy.cube(CubeSplit::replicate);
  EXPECT_THROW(CollectiveLayout(c, units(), 5), std::invalid_argument) << "copies that differ";
  c = case_of(CollectiveOp::all_reduce, Scope::cube);
  c.out_policy = c.out_policy.cubes(1);
  EXPECT_THROW(CollectiveLayout(c, units(), 5), std::invalid_argument) << "two tiles in, one out";
}

TEST(CollectiveLayout, PlacesWithRowsHaveEqualTilesToo) {
  for (const CubeSplit cube : {CubeSplit::column_wise, CubeSplit::row_wise}) {
    for (const PeSplit pe : {PeSplit::replicate, PeSplit::column_wise, PeSplit::row_wise, PeSplit::tiled_row_major}) {
      for (const Scope scope : {Scope::cube, Scope::pe}) {
        for (const std::int64_t n : {1, 7, 12}) {
          CollectiveCase c = case_of(CollectiveOp::all_reduce, scope);
          c.in_policy = c.in_policy.cube(cube);
          c.out_policy = c.out_policy.cube(cube);
          c.in_policy = c.in_policy.pe(pe);
          c.out_policy = c.out_policy.pe(pe);
          const CollectiveLayout layout(c, units(), n);
          EXPECT_EQ(layout.contributions(), scope == Scope::cube ? 4 : 8);
        }
      }
    }
  }
}

TEST(CompareCollective, FindsEveryWrongElement) {
  const CollectiveCase c = case_of(CollectiveOp::all_reduce);
  const CollectiveLayout layout(c, units(), 3);
  CollectiveData data;
  const auto bytes = [](std::vector<std::int32_t> values) {
    std::vector<std::uint8_t> list(values.size() * 4);
    for (std::size_t i = 0; i < values.size(); ++i) store_integer(list.data(), DType::i32, i, values[i]);
    return list;
  };
  data.inputs = {bytes({1, 2, 3}), bytes({10, 20, 30})};
  data.outputs = {{bytes({11, 22, 33})}, {bytes({11, 22, 33})}};
  EXPECT_EQ(compare_collective(c, layout, data).mismatches, 0u);
  data.outputs[1][0] = bytes({11, 23, 33});
  // It is not the sum, and it is not what rank 0 has: one element that is wrong.
  EXPECT_EQ(compare_collective(c, layout, data).mismatches, 1u);
  EXPECT_EQ(compare_collective(c, layout, data).max_abs_error, 1);
  data.outputs[1] = {bytes({11, 22, 33}), bytes({11, 22, 34})};
  EXPECT_EQ(compare_collective(c, layout, data).mismatches, 1u) << "every copy counts";
}

/// Each within what rounding may do, and yet ranks do not agree.
TEST(CompareCollective, CountsWhatDiffersFromRankToRankThoughAllAreNear) {
  CollectiveCase c = case_of(CollectiveOp::all_reduce);
  c.dtype = DType::f16;
  const CollectiveLayout layout(c, units(), 1);
  const auto one = [](double value) {
    std::vector<std::uint8_t> list(2);
    store_element(list.data(), DType::f16, 0, value);
    return list;
  };
  CollectiveData data;
  data.inputs = {one(2048), one(1)};  // 2049 lies between two of the type
  data.outputs = {{one(2048)}, {one(2048)}};
  EXPECT_EQ(compare_collective(c, layout, data).mismatches, 0u);
  data.outputs[1][0] = one(2050);
  EXPECT_EQ(compare_collective(c, layout, data).mismatches, 1u);
}

TEST(CompareCollective, WantsTheBitsOfWhatIsMoved) {
  CollectiveCase c = case_of(CollectiveOp::broadcast);
  c.dtype = DType::f32;
  const CollectiveLayout layout(c, units(), 1);
  CollectiveData data;
  const auto one = [](double value) {
    std::vector<std::uint8_t> list(4);
    store_element(list.data(), DType::f32, 0, value);
    return list;
  };
  data.inputs = {one(0.0), {}};
  data.outputs = {{one(0.0)}, {one(-0.0)}};
  EXPECT_EQ(compare_collective(c, layout, data).mismatches, 1u) << "equal as numbers";
}

TEST(BusFactor, FollowsNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::all_reduce, 4), 1.5);
  for (const CollectiveOp op : {CollectiveOp::reduce_scatter, CollectiveOp::all_gather, CollectiveOp::all_to_all,
                                CollectiveOp::gather, CollectiveOp::scatter}) {
    EXPECT_DOUBLE_EQ(bus_factor(op, 4), 0.75) << to_string(op);
    EXPECT_EQ(blocks_in_size(op, 4), 4) << to_string(op);
  }
  for (const CollectiveOp op : {CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::send_recv}) {
    EXPECT_DOUBLE_EQ(bus_factor(op, 4), 1) << to_string(op);
    EXPECT_EQ(blocks_in_size(op, 4), 1) << to_string(op);
  }
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::all_reduce, 1), 0);
}

}  // namespace
}  // namespace kernbench
