#include "runtime/tp/gemm_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace kernbench::testing {
namespace {

using Messages = std::map<std::pair<int, int>, std::vector<int>>;  // by sender and receiver: whose blocks, in order

int neighbour(int w, int cube, const Direction& way) {
  if (way == Direction::north()) return cube - w;
  if (way == Direction::south()) return cube + w;
  return way == Direction::east() ? cube + 1 : cube - 1;
}

/// What all cubes pass on, and what they wait for.
std::pair<Messages, Messages> messages_of(int w, int h) {
  Messages sent, awaited;
  for (int cube = 0; cube < w * h; ++cube) {
    for (const auto& [comes, goes] : tp::ring_turns(w, h, cube)) {
      if (comes) awaited[{neighbour(w, cube, comes->way), cube}].push_back(comes->cube);
      if (goes) sent[{cube, neighbour(w, cube, goes->way)}].push_back(goes->cube);
    }
  }
  return {sent, awaited};
}

constexpr std::pair<int, int> kMeshes[] = {{1, 1}, {2, 1}, {1, 2}, {3, 1}, {1, 5}, {2, 2}, {3, 2}, {2, 3},
                                           {3, 3}, {4, 3}, {3, 4}, {4, 4}, {5, 3}, {8, 1}, {6, 5}};

TEST(GemmRing, EveryCubeGetsEveryOtherBlockOnceAndPassesOnWhatItHas) {
  for (const auto& [w, h] : kMeshes) {
    for (int cube = 0; cube < w * h; ++cube) {
      std::set<int> has{cube};
      for (const auto& [comes, goes] : tp::ring_turns(w, h, cube)) {
        EXPECT_TRUE(!goes || has.count(goes->cube) == 1) << w << " x " << h << ": cube " << cube;
        EXPECT_TRUE(!comes || has.insert(comes->cube).second) << w << " x " << h << ": cube " << cube;
      }
      EXPECT_EQ(has.size(), static_cast<std::size_t>(w * h)) << w << " x " << h << ": cube " << cube;
    }
  }
}

/// A queue keeps its order: what a cube takes from one is what the neighbour put into it.
TEST(GemmRing, CubesAwaitWhatTheirNeighboursPassOnInThatOrder) {
  for (const auto& [w, h] : kMeshes) {
    const auto [sent, awaited] = messages_of(w, h);
    EXPECT_EQ(sent, awaited) << w << " x " << h;
  }
}

/// Of n cubes n - 1 blocks come to each: on a ring half of them each way, on a line at worst all.
TEST(GemmRing, OverALinkGoHalfOfTheBlocksWhereTheMeshHasARing) {
  for (const auto& [w, h] : kMeshes) {
    std::size_t most = 0;
    for (const auto& [link, blocks] : messages_of(w, h).first) most = std::max(most, blocks.size());
    const bool ring = (w > 1 && h > 1 && w * h % 2 == 0) || w * h <= 2;
    EXPECT_EQ(most, static_cast<std::size_t>(ring ? w * h / 2 : w * h - 1)) << w << " x " << h;
    EXPECT_EQ(tp::most_over_a_link(w, h), static_cast<int>(most)) << w << " x " << h;
  }
}

}  // namespace
}  // namespace kernbench::testing
