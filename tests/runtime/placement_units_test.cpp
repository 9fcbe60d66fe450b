#include "runtime/placement_units.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace kernbench {
namespace {

/// 2 SIPs x 3 cubes x 4 PEs, without some.
MachineMap machine_without(const std::set<PeCoord>& missing) {
  MachineMap map;
  map.sips = 2;
  map.cube_w = 3;
  map.cube_h = 1;
  map.pes_per_cube = 4;
  std::uint32_t next = 0;
  for (std::uint16_t sip = 0; sip < 2; ++sip) {
    for (std::uint16_t cube = 0; cube < 3; ++cube) {
      for (std::uint16_t pe = 0; pe < 4; ++pe) {
        map.pe_nodes.push_back(missing.count({sip, cube, pe}) != 0 ? kNoNode : NodeId{next++});
      }
    }
  }
  return map;
}

using Lists = std::vector<std::vector<int>>;

TEST(PlacementUnits, AWholeMachineOffersEverything) {
  const PlacementUnits units = placement_units(machine_without({}));
  EXPECT_TRUE(units.all);
  EXPECT_EQ(units.cubes, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(units.pes, (Lists(3, {0, 1, 2, 3})));
}

TEST(PlacementUnits, APeThatOneSipLacksIsUsedOnNone) {
  const PlacementUnits units = placement_units(machine_without({{1, 1, 2}}));
  EXPECT_FALSE(units.all);
  EXPECT_EQ(units.pes, (Lists(3, {0, 1, 3})));  // the same positions in every cube, so that PE i faces PE i
}

TEST(PlacementUnits, CubesThatLackDifferentPesOfferEquallyMany) {
  const PlacementUnits units = placement_units(machine_without({{0, 0, 0}, {1, 1, 3}}));
  EXPECT_EQ(units.pes, (Lists{{1, 2, 3}, {0, 1, 2}, {0, 1, 2}}));
}

TEST(PlacementUnits, ACubeWithoutPesIsLeftOut) {
  const PlacementUnits units = placement_units(machine_without({{0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {0, 1, 3}}));
  EXPECT_EQ(units.cubes, (std::vector<int>{0, 2}));
  EXPECT_EQ(units.pes, (Lists(2, {0, 1, 2, 3})));
}

TEST(PlacementUnits, ShardsCarryThePesThatExist) {
  const DPPolicy policy = DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::column_wise);
  const PlacementUnits units =
      placement_units(machine_without({{1, 1, 2}, {0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 3}}));
  const auto shards = place_shards(policy, {4, 6}, 2, units, 1);
  ASSERT_EQ(shards.size(), 6u);  // cubes 1 and 2, PEs 0, 1, 3
  EXPECT_EQ(shards[2].cube, 1);
  EXPECT_EQ(shards[2].pe, 3);
  EXPECT_EQ(shards[2].region.col, 4);
  EXPECT_EQ(shards[3].cube, 2);
  EXPECT_EQ(shards[3].sip, 1);
}

TEST(PlacementUnits, ACountBeyondWhatIsLeftIsNamed) {
  const DPPolicy policy = DPPolicy().pes(4);
  try {
    place_shards(policy, {4, 6}, 2, placement_units(machine_without({{1, 1, 2}})), 0);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "policy.num_pes is 4: give 1 to 3, the PEs that every cube offers: some are missing on this machine");
  }
}

}  // namespace
}  // namespace kernbench
