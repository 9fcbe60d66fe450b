#include "runtime/tp/gemm_bound.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/tp/gemm_cut.h"
#include "runtime/tp/launch_bound.h"
#include "runtime/tp/own_shard.h"

namespace kernbench::tp {

CellRate cell_rate(const PeEngines& engines, DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return {1, engines.f8_rate};
    case 2:
      return {1, engines.f16_rate};
    case 4:
      return {engines.f32_cycles, 1};
    default:
      return {2 * std::uint64_t{engines.f32_cycles}, 1};
  }
}

namespace {
std::uint64_t shares(std::int64_t whole, std::int64_t part) {
  return static_cast<std::uint64_t>((whole + part - 1) / part);
}

/// An element of the result needs all of its row of a and of its column of b: the part of them that lies farthest from
/// the result's place has to be read and to come all the way, one way. Parts of which there are copies are left out.
Ps farthest_part(const MachineMap& map, const Tensor& operand, const Tensor& c, bool rows, std::int64_t first_row) {
  std::map<std::uint64_t, int> copies;
  for (const ShardSpec& shard : operand.shards()) ++copies[shard.offset_bytes];
  std::set<std::pair<int, int>> seen;  // one pair of PEs for each pair of cubes
  Ps longest = 0;
  for (const ShardSpec& to : c.shards()) {
    if (to.region.empty()) continue;
    const std::int64_t begin = rows ? to.region.row + first_row : to.region.col;
    const std::int64_t end = begin + (rows ? to.region.rows : to.region.cols);
    for (const ShardSpec& from : operand.shards()) {
      const std::int64_t first = rows ? from.region.row : from.region.col;
      const std::int64_t length = rows ? from.region.rows : from.region.cols;
      if (from.region.empty() || first >= end || first + length <= begin || copies[from.offset_bytes] > 1) continue;
      if (seen.insert({from.cube, to.cube}).second)
        longest = std::max(longest, one_way(map, owner_of(from), owner_of(to)));
    }
  }
  return longest;
}

/// Of one PE's array, fill and drain apart.
std::uint64_t pe_cycles(const PeEngines& e, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  const CellRate rate = cell_rate(e, dtype);
  const auto down = static_cast<std::int64_t>(e.gemm_rows), across = static_cast<std::int64_t>(e.gemm_cols);
  const auto at_once = static_cast<std::int64_t>(rate.at_once);
  return e.weights_stay ? shares(k, down * at_once) * shares(n, across) * static_cast<std::uint64_t>(m) * rate.cycles
                        : shares(m, down) * shares(n, across) * shares(k, at_once) * rate.cycles;
}

/// Array cycles of the best split of m, n and k over `pes` PEs. Without padding is less than any split; with it, splits
/// of m and n over up to all PEs, k over the rest.
std::uint64_t least_cycles(const PeEngines& e, DType dtype, std::int64_t whole_m, std::int64_t whole_n,
                           std::int64_t whole_k, std::int64_t pes) {
  std::uint64_t least = ~std::uint64_t{0};
  for (std::int64_t over_m = 1; over_m <= std::min(pes, whole_m); ++over_m) {
    for (std::int64_t over_n = 1; over_n <= std::min(pes / over_m, whole_n); ++over_n) {
      const std::int64_t over_k = std::min(pes / (over_m * over_n), whole_k);
      const auto m = static_cast<std::int64_t>(shares(whole_m, over_m)),
                 n = static_cast<std::int64_t>(shares(whole_n, over_n)),
                 k = static_cast<std::int64_t>(shares(whole_k, over_k));
      least = std::min(least, pe_cycles(e, dtype, m, n, k));
    }
  }
  return least;
}
/// The math engine's, at one multiplication and one addition per lane and cycle.
Ps lanes_time(const PeEngines& e, double macs) {
  return static_cast<Ps>(2 * macs / static_cast<double>(e.math_lanes) / static_cast<double>(e.math_hz) * 1e12);
}

/// A cube of a split k: the PEs that sum over their rows of b, and those that hold rows of its part of c.
struct SplitCube {
  std::vector<ShardSpec> sharers, owners;
  std::int64_t first_row = 0, end_row = 0, cols = 0;  ///< of c
  std::int64_t rows() const { return end_row - first_row; }
};
using SplitCubes = std::map<int, SplitCube>;
SplitCubes split_cubes(const GemmOperands& operands) {
  SplitCubes cubes;
  for (const ShardSpec& shard : operands.c.shards()) {
    if (shard.region.empty()) continue;
    SplitCube& cube = cubes[shard.cube];
    const Region& part = shard.region;
    cube.first_row = cube.owners.empty() ? part.row : std::min(cube.first_row, part.row);
    cube.end_row = std::max(cube.end_row, part.row + part.rows);
    cube.cols = part.cols;
    cube.owners.push_back(shard);
  }
  for (const ShardSpec& shard : operands.b.shards()) {
    if (!shard.region.empty() && cubes.count(shard.cube) > 0) cubes[shard.cube].sharers.push_back(shard);
  }
  return cubes;
}

/// Until the first of the columns [begin, begin + length) of a is with `pe`.
Ps first_of(const MachineMap& map, const Tensor& a, std::int64_t begin, std::int64_t length, PeCoord pe) {
  std::optional<Ps> least;
  for (const ShardSpec& shard : a.shards()) {
    const Region& part = shard.region;
    if (part.empty() || part.col >= begin + length || part.col + part.cols <= begin) continue;
    const Ps way = one_way(map, owner_of(shard), pe);
    least = std::min(least.value_or(way), way);
  }
  return least.value_or(0);
}

/// Of `split` and `lanes`: what a PE waits for its first part of a, and its share of the work.
struct Begins {
  Ps way = 0, work = 0;
};
/// The longest over all PEs, none of which is taken to do more than its share of the best split, `even`.
Begins spread_and_work(const MachineMap& map, const SplitCubes& cubes, const Tensor& a, const PeEngines& e, bool lanes,
                       Ps even) {
  Begins longest;
  for (const auto& [number, cube] : cubes) {
    for (const ShardSpec& share : cube.sharers) {
      const std::int64_t k = share.region.rows;
      const Ps array = cycles_at(pe_cycles(e, a.dtype(), cube.rows(), cube.cols, k), e.gemm_hz);
      const double macs = static_cast<double>(cube.rows()) * static_cast<double>(cube.cols) * static_cast<double>(k);
      const Begins one{first_of(map, a, share.region.row, k, owner_of(share)),
                       std::min(lanes ? lanes_time(e, macs) : array, even)};
      if (one.way + one.work > longest.way + longest.work) longest = one;
    }
  }
  return longest;
}

/// Behind the last product of a split k: the least message between two PEs of a cube, an addition, and rounding if sums
/// are wider. 0 where the last block of rows may be the last PE's own.
Ps summing(const MachineMap& map, const SplitCubes& cubes, DType dtype, const PeEngines& e,
           const GemmMapping& mapping) {
  std::optional<Ps> least;
  for (const auto& [number, cube] : cubes) {
    if (cube.sharers.size() < 2 || cube.owners.size() < 2) return 0;
    if (std::int64_t{mapping.row_blocks} * mapping.tile_m < cube.rows()) return 0;
    for (const ShardSpec& from : cube.sharers) {
      for (const ShardSpec& to : cube.owners) {
        if (from.pe == to.pe) continue;
        const Ps way = least_message(map, owner_of(from), owner_of(to));
        least = std::min(least.value_or(way), way);
      }
    }
  }
  const std::uint64_t passes = compute_type(dtype) == dtype ? 1 : 2;
  return least.value_or(0) + cycles_at(passes * (std::uint64_t{e.math_fill} + 1), e.math_hz);
}
}  // namespace

const char* GemmBound::binds() const {
  const Ps most = std::max({array, memory, ucie});
  return latency > most ? "latency" : array == most ? "array" : memory == most ? "HBM" : "UCIe";
}

GemmBound gemm_bound(const MachineMap& map, const GemmOperands& operands, const GemmMapping& mapping) {
  const std::set<PeCoord> all = holders({operands.a, operands.b, operands.c});
  const PeCoord pe = *all.begin();
  const PeRates rates = map.rates(pe);
  const PeEngines& e = rates.engines;
  const std::int64_t m = operands.c.shape().rows, n = operands.c.shape().cols, k = operands.a.shape().cols;
  const auto pes = static_cast<std::int64_t>(all.size());
  GemmBound bound;
  bound.array = cycles_at(least_cycles(e, operands.c.dtype(), m, n, k, pes), e.gemm_hz);
  const double macs = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  bound.array = std::min(bound.array, lanes_time(e, macs / static_cast<double>(pes)));
  const double of_a = static_cast<double>(m) / static_cast<double>(operands.a.shape().rows);
  const std::vector<Moved> read{{operands.a, of_a}, {operands.b}};
  std::vector<Moved> moved = read;
  moved.push_back({operands.c, 1, 1});
  if (operands.residual) moved.push_back({operands.residual});
  bound.memory = least_memory_time(map, moved, &bound.bytes);
  bound.ucie = least_ucie_time(map, operands);

  const bool lanes = on_math_engine(mapping.kind);
  const Ps fill = lanes ? cycles_at(2 * std::uint64_t{e.math_fill}, e.math_hz) : fill_and_drain(e);
  const Ps fixed = e.dispatch + fill + way_there_and_back(map, pe), near = least_access(map, pe);
  const Ps far = std::max(farthest_part(map, operands.a, operands.c, true, operands.first_row.value_or(0)),
                          farthest_part(map, operands.b, operands.c, false, 0));
  const Ps work = std::max({bound.array, bound.memory, bound.ucie});
  Ps behind_dispatch = std::max(work + near, far);
  if (exchanges_sums(mapping.kind)) {
    const SplitCubes cubes = split_cubes(operands);
    bound.sums = summing(map, cubes, operands.c.dtype(), e, mapping);
    // What was summed before may be written meanwhile, but nothing is left to read.
    const Ps read_last = near + std::max({bound.array, least_memory_time(map, read), bound.ucie}) + bound.sums;
    const bool own_a = mapping.kind == GemmMapping::Kind::ring;
    const Begins late = own_a ? Begins() : spread_and_work(map, cubes, operands.a, e, lanes, bound.array);
    const Ps begun_late = late.way + late.work + bound.sums;
    if (begun_late > std::max(behind_dispatch, read_last)) bound.spread = late.way;
    behind_dispatch = std::max({behind_dispatch, read_last, begun_late});
  }
  bound.time = fixed + behind_dispatch;
  bound.latency = bound.time - work;
  return bound;
}

}  // namespace kernbench::tp
