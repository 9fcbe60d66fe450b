#include "runtime/tp/own_shard.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

namespace kernbench::tp {

OwnShard own_shard(Va base, const TensorGeometry& geometry, const Tl& tl) {
  const std::uint64_t offset = tl.shard(base).va - base;
  std::set<std::uint64_t> seen;
  for (const ShardSpec& shard : geometry.shards()) {
    if (shard.region.empty()) continue;
    seen.insert(shard.offset_bytes);
    if (shard.offset_bytes == offset) return {shard.region, static_cast<int>(seen.size()) - 1};
  }
  throw KernelError("the PE holds no part of the tensor that it is to write");
}

Region own_rows(Va base, const TensorGeometry& geometry, const Tl& tl) {
  const Region own = own_shard(base, geometry, tl).region;
  const auto cube = static_cast<int>(tl.cube_place(base));
  std::map<std::int64_t, std::int64_t> columns;  // of the cube's shards of these rows: first, number
  std::int64_t holders = 0;
  for (const ShardSpec& shard : geometry.shards()) {
    const Region& region = shard.region;
    if (shard.cube == cube && !region.empty() && region.row == own.row && region.rows == own.rows) {
      columns[region.col] = region.cols;
      ++holders;
    }
  }
  const auto sharers = static_cast<std::int64_t>(columns.size());
  if (holders != sharers) return own;  // copies: what one writes of another's columns would reach one copy only
  Region all{own.row, columns.begin()->first, own.rows, 0};
  for (const auto& [first, number] : columns) {
    if (first != all.col + all.cols) return own;
    all.cols += number;
  }
  if (own.rows < sharers) return own;
  const std::int64_t place = std::distance(columns.begin(), columns.find(own.col));
  all.row = own.row + own.rows * place / sharers;
  all.rows = own.row + own.rows * (place + 1) / sharers - all.row;
  return all;
}

std::uint64_t pes_of_every_cube(const Tensor& tensor) {
  std::map<int, std::uint64_t> cubes;
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.pe >= 64) return 0;
    cubes[shard.cube] |= std::uint64_t{1} << shard.pe;
  }
  const std::uint64_t first = cubes.begin()->second;
  return std::all_of(cubes.begin(), cubes.end(), [&](const auto& one) { return one.second == first; }) ? first : 0;
}

std::vector<unsigned> by_place(std::uint64_t pes) {
  std::vector<unsigned> list;
  for (unsigned pe = 0; pe < 64; ++pe) {
    if ((pes >> pe & 1) != 0) list.push_back(pe);
  }
  return list;
}

int distinct_shards(const TensorGeometry& geometry) {
  std::set<std::uint64_t> seen;
  for (const ShardSpec& shard : geometry.shards()) {
    if (!shard.region.empty()) seen.insert(shard.offset_bytes);
  }
  return static_cast<int>(seen.size());
}

LaunchOptions on_pes_of(const Tensor& tensor) {
  LaunchOptions options;
  options.alone = true;
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.region.empty()) continue;
    options.targets.push_back({static_cast<std::uint16_t>(shard.sip), static_cast<std::uint16_t>(shard.cube),
                               static_cast<std::uint16_t>(shard.pe)});
  }
  return options;
}

namespace {
/// Of the largest batch that every cube holds for itself. assumed: 8 rows a PE of the default machine.
constexpr std::int64_t kFewRows = 64;
/// More rows than these lie over the cubes: more than 32, the array's rows, in each of the 16 cubes of `default`.
/// measured: a layer of llama3-8b at TP 8 on a SIP: of 256 rows 116 us so and 88 with whole rows on the PEs; of 512 125
/// and 139, where weights load the links so that the grades differ by 3.4 % (accurate: 129 and 138)
constexpr std::int64_t kManyRows = 512;
}  // namespace

DPPolicy rows_for_gemm(std::int64_t rows) {
  if (rows <= kFewRows) return DPPolicy().pe(PeSplit::row_wise);
  return many_rows(rows) ? rows_over_cubes() : dense_rows();
}

bool many_rows(std::int64_t rows) { return rows > kManyRows; }

DPPolicy rows_over_cubes() { return DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::column_wise); }

DPPolicy dense_rows() { return DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::row_wise); }

}  // namespace kernbench::tp
