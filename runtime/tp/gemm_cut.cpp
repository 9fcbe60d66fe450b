#include "runtime/tp/gemm_cut.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "runtime/tp/launch_bound.h"

namespace kernbench::tp {

namespace {
using Cubes = std::vector<bool>;  // by number

/// A part of an operand, and the cubes that hold a copy of it.
struct Block {
  Region region;
  std::vector<int> cubes;
};
std::vector<Block> blocks_of(const Tensor& tensor) {
  std::map<std::uint64_t, Block> by_offset;
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.region.empty()) continue;
    Block& block = by_offset[shard.offset_bytes];
    block.region = shard.region;
    block.cubes.push_back(shard.cube);
  }
  std::vector<Block> blocks;
  for (auto& [offset, block] : by_offset) blocks.push_back(std::move(block));
  return blocks;
}

/// Rows, or columns: pieces from first to second, sorted and apart.
using Pieces = std::vector<std::pair<std::int64_t, std::int64_t>>;
Pieces joined(Pieces pieces) {
  std::sort(pieces.begin(), pieces.end());
  Pieces apart;
  for (const auto& [begin, end] : pieces) {
    if (!apart.empty() && begin <= apart.back().second) {
      apart.back().second = std::max(apart.back().second, end);
    } else {
      apart.emplace_back(begin, end);
    }
  }
  return apart;
}
std::int64_t within(const Pieces& pieces, std::int64_t begin, std::int64_t end) {
  std::int64_t sum = 0;
  for (const auto& [from, to] : pieces) sum += std::max<std::int64_t>(0, std::min(to, end) - std::max(from, begin));
  return sum;
}

class Crossing {
 public:
  Crossing(const MachineMap& map, const GemmOperands& operands)
      : map_(map),
        sip_(operands.c.shards().front().sip),
        first_row_(operands.first_row.value_or(0)),
        item_(static_cast<double>(size_of(operands.c.dtype()))),
        a_(blocks_of(operands.a)),
        b_(blocks_of(operands.b)),
        c_(blocks_of(operands.c)) {}

  Ps into(const Cubes& inside) const {
    Pieces rows, cols;
    for (const Block& block : c_) {
      if (!lies_in(block, inside)) continue;
      const Region& part = block.region;
      rows.emplace_back(part.row + first_row_, part.row + first_row_ + part.rows);
      cols.emplace_back(part.col, part.col + part.cols);
    }
    rows = joined(std::move(rows));
    cols = joined(std::move(cols));
    std::int64_t elements = 0;
    for (const Block& block : a_) {
      const Region& part = block.region;
      if (!lies_in(block, inside)) elements += within(rows, part.row, part.row + part.rows) * part.cols;
    }
    for (const Block& block : b_) {
      const Region& part = block.region;
      if (!lies_in(block, inside)) elements += within(cols, part.col, part.col + part.cols) * part.rows;
    }
    const double rate = rate_into(inside);
    return elements == 0 || rate == 0 ? 0 : static_cast<Ps>(static_cast<double>(elements) * item_ / rate * 1e12);
  }

 private:
  static bool lies_in(const Block& block, const Cubes& inside) {
    return std::any_of(block.cubes.begin(), block.cubes.end(),
                       [&](int cube) { return inside[static_cast<std::size_t>(cube)]; });
  }
  double rate_into(const Cubes& inside) const {
    double rate = 0;
    for (const LinkBundle& link : map_.cube_links) {
      if (link.sip != sip_ || link.a == kIoChiplet || link.b == kIoChiplet) continue;  // no way between cubes
      if (inside[link.a] != inside[link.b]) rate += static_cast<double>(link.capacity.bytes_per_second());
    }
    return rate;
  }

  const MachineMap& map_;
  int sip_;
  std::int64_t first_row_;
  double item_;
  std::vector<Block> a_, b_, c_;
};
}  // namespace

Ps least_ucie_time(const MachineMap& map, const GemmOperands& operands) {
  const auto w = std::size_t{map.cube_w}, cubes = w * map.cube_h;
  if (cubes < 2) return 0;
  const Crossing crossing(map, operands);
  Ps longest = 0;
  for (std::size_t cube = 0; cube < cubes; ++cube) {
    Cubes one(cubes);
    one[cube] = true;
    longest = std::max(longest, crossing.into(one));
  }
  const auto both_sides = [&](const auto& before_cut) {
    Cubes before(cubes);
    for (std::size_t cube = 0; cube < cubes; ++cube) before[cube] = before_cut(cube);
    Cubes behind = before;
    behind.flip();
    longest = std::max({longest, crossing.into(before), crossing.into(behind)});
  };
  for (std::size_t x = 1; x < w; ++x) both_sides([&](std::size_t cube) { return cube % w < x; });
  for (std::size_t y = 1; y < map.cube_h; ++y) both_sides([&](std::size_t cube) { return cube / w < y; });
  return longest;
}

}  // namespace kernbench::tp
