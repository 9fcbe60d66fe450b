#include "runtime/tp/gemm_bound.h"

#include <algorithm>

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
  bound.memory = least_memory_time(map, {{operands.a, of_a}, {operands.b}, {operands.c}}, &bound.bytes);
  const Ps least_fill = std::min(fill_and_drain(e), cycles_at(2 * std::uint64_t{e.math_fill}, e.math_hz));
  bound.latency = e.dispatch + least_access(map, pe) + least_fill + way_there_and_back(map, pe);
  bound.time = std::max(bound.array, bound.memory) + bound.latency;
  return bound;
}

}  // namespace kernbench::tp
