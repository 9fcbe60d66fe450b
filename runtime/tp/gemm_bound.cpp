#include "runtime/tp/gemm_bound.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/tp/launch_bound.h"

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

/// Array cycles of the best split of m, n and k over `pes` PEs. Without padding is less than any split; with it, splits
/// of m and n over up to all PEs, k over the rest.
std::uint64_t least_cycles(const PeEngines& e, DType dtype, std::int64_t whole_m, std::int64_t whole_n,
                           std::int64_t whole_k, std::int64_t pes) {
  const CellRate rate = cell_rate(e, dtype);
  const auto down = static_cast<std::int64_t>(e.gemm_rows), across = static_cast<std::int64_t>(e.gemm_cols);
  const auto at_once = static_cast<std::int64_t>(rate.at_once);
  std::uint64_t least = ~std::uint64_t{0};
  for (std::int64_t over_m = 1; over_m <= std::min(pes, whole_m); ++over_m) {
    for (std::int64_t over_n = 1; over_n <= std::min(pes / over_m, whole_n); ++over_n) {
      const std::int64_t over_k = std::min(pes / (over_m * over_n), whole_k);
      const auto m = static_cast<std::int64_t>(shares(whole_m, over_m)),
                 n = static_cast<std::int64_t>(shares(whole_n, over_n)),
                 k = static_cast<std::int64_t>(shares(whole_k, over_k));
      const std::uint64_t cycles =
          e.weights_stay ? shares(k, down * at_once) * shares(n, across) * static_cast<std::uint64_t>(m) * rate.cycles
                         : shares(m, down) * shares(n, across) * shares(k, at_once) * rate.cycles;
      least = std::min(least, cycles);
    }
  }
  return least;
}
}  // namespace

const char* GemmBound::binds() const {
  return latency > std::max(array, memory) ? "latency" : array >= memory ? "array" : "HBM";
}

GemmBound gemm_bound(const MachineMap& map, const GemmOperands& operands) {
  const std::set<PeCoord> all = holders({operands.a, operands.b, operands.c});
  const PeCoord pe = *all.begin();
  const PeRates rates = map.rates(pe);
  const PeEngines& e = rates.engines;
  const std::int64_t m = operands.c.shape().rows, n = operands.c.shape().cols, k = operands.a.shape().cols;
  const auto pes = static_cast<std::int64_t>(all.size());
  GemmBound bound;
  bound.array = cycles_at(least_cycles(e, operands.c.dtype(), m, n, k, pes), e.gemm_hz);
  const auto lanes = static_cast<double>(e.math_lanes) * static_cast<double>(pes);
  const double macs = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  bound.array = std::min(bound.array, static_cast<Ps>(2 * macs / lanes / static_cast<double>(e.math_hz) * 1e12));
  const double of_a = static_cast<double>(m) / static_cast<double>(operands.a.shape().rows);
  std::vector<Moved> moved{{operands.a, of_a}, {operands.b}, {operands.c}};
  if (operands.residual) moved.push_back({operands.residual});
  bound.memory = least_memory_time(map, moved, &bound.bytes);
  const Ps least_fill = std::min(fill_and_drain(e), cycles_at(2 * std::uint64_t{e.math_fill}, e.math_hz));
  const Ps fixed = e.dispatch + least_fill + way_there_and_back(map, pe), near = least_access(map, pe);
  const Ps far = std::max(farthest_part(map, operands.a, operands.c, true, operands.first_row.value_or(0)),
                          farthest_part(map, operands.b, operands.c, false, 0));
  bound.latency = fixed + std::max(near, far);
  // What lies far away may come while work goes on with what lies near.
  bound.time = fixed + std::max(std::max(bound.array, bound.memory) + near, far);
  return bound;
}

}  // namespace kernbench::tp
