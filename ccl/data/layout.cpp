#include "ccl/data/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/contract/error.h"
#include "ccl/contract/verbs.h"
#include "ccl/data/spread.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

/// The shards that hold the same elements and take their result from one reduction: by cube, then PE.
using Copies = std::map<int, std::vector<const TensorShard*>>;

void check_even(const Copies& copies, bool gaps_allowed) {
  std::map<int, std::vector<int>> pes;
  for (const auto& [cube, shards] : copies) {
    for (const TensorShard* shard : shards) pes[cube].push_back(shard->owner.pe);
  }
  check_copies(pes, gaps_allowed, copies.begin()->second.front()->owner.sip);
}

/// With scope cube every cube's tile is a contribution: all must look alike, PE by PE.
void check_tiles(const std::vector<TensorShard>& shards) {
  std::map<int, std::map<int, std::int64_t>> tiles;
  for (const TensorShard& shard : shards) {
    if (shard.rows * shard.cols > 0) tiles[shard.owner.cube][shard.owner.pe] = shard.rows * shard.cols;
  }
  for (const auto& [cube, tile] : tiles) {
    if (tile == tiles.begin()->second) continue;
    const auto elements = [](const std::map<int, std::int64_t>& of) {
      std::int64_t sum = 0;
      for (const auto& [pe, count] : of) sum += count;
      return sum;
    };
    throw Error(
        fmt::format("scope cube needs equal tiles: cube {} holds {} elements on {} PEs, cube {} holds {} on {}; choose "
                    "a shape that divides",
                    tiles.begin()->first, elements(tiles.begin()->second), tiles.begin()->second.size(), cube,
                    elements(tile), tile.size()));
  }
}

ShardView part_of(const ShardView& shard, std::size_t index, std::size_t parts, std::size_t item) {
  const Slice part =
      Slice{shard.va, shard.count(), item}.part(static_cast<std::int64_t>(index), static_cast<std::int64_t>(parts));
  if (parts == 1) return shard;
  return {part.va, 1, part.count};
}

}  // namespace

bool lacks_pes(const MachineMap& map) {
  return std::find(map.pe_nodes.begin(), map.pe_nodes.end(), kNoNode) != map.pe_nodes.end();
}

Layout::Layout(const MachineMap& map, Scope scope, Va base, const std::vector<TensorShard>& shards, std::size_t item) {
  std::map<std::pair<int, std::uint64_t>, Copies> groups;  // by (cube with scope cube, offset)
  std::vector<int> cubes;
  for (const TensorShard& shard : shards) {
    if (shard.rows * shard.cols == 0) continue;
    const int cube = shard.owner.cube;
    groups[{scope == Scope::cube ? cube : -1, shard.offset_bytes}][cube].push_back(&shard);
    if (std::find(cubes.begin(), cubes.end(), cube) == cubes.end()) cubes.push_back(cube);
  }
  if (scope == Scope::cube && !cubes.empty()) {
    check_tiles(shards);
    std::sort(cubes.begin(), cubes.end());
    const int count = static_cast<int>(cubes.size());
    if (cubes.back() != count - 1 || (count > map.cube_w && count % map.cube_w != 0)) {
      throw Error(
          fmt::format("scope cube needs tiles on cube 0 and the cubes after it in one row or in full rows of {}; "
                      "{} cubes up to cube {} hold one",
                      map.cube_w, count, cubes.back()));
    }
    cube_w = std::min<int>(count, map.cube_w);
    cube_h = count / cube_w;
  }
  for (auto& [key, copies] : groups) {
    for (auto& [cube, held] : copies) {
      std::sort(held.begin(), held.end(), [](const auto* a, const auto* b) { return a->owner < b->owner; });
    }
    check_even(copies, lacks_pes(map));
    const Grid grid = Grid::mesh(map.cube_w, static_cast<int>(copies.size()));
    const int root = copies.size() > 1 ? tree_root(grid) : copies.begin()->first;
    for (const auto& [cube, held] : copies) {
      for (std::size_t i = 0; i < held.size(); ++i) {
        const TensorShard& shard = *held[i];
        PeWork pe;
        pe.shard = {base + shard.offset_bytes, shard.rows, shard.cols};
        pe.part = part_of(pe.shard, i, held.size(), item);
        pe.reduces = cube == root;
        if (copies.size() > 1) pe.cubes = tree_position(grid, cube, false);
        pe.line_index = static_cast<int>(i);
        pe.line_size = static_cast<int>(held.size());
        if (i > 0) pe.before = Direction::local(held[i - 1]->owner.pe);
        if (i + 1 < held.size()) pe.after = Direction::local(held[i + 1]->owner.pe);
        n_elem = std::max(n_elem, pe.part.count());
        work.emplace(std::pair(cube, int{shard.owner.pe}), std::move(pe));
      }
    }
  }
}

}  // namespace kernbench::ccl
