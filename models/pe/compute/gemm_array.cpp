#include "models/pe/compute/gemm_array.h"

#include <algorithm>

#include "tlm/kernel/rounding.h"

namespace kernbench::pe {

MacRate mac_rate(const GemmConfig& config, DType dtype) {
  switch (dtype) {
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::i8:
      return {1, config.f8_rate};
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::boolean:
      return {1, config.f16_rate};
    case DType::f32:
    case DType::i32:
      return {config.f32_cycles, 1};
    case DType::f64:
    case DType::i64:
      return {2 * std::uint64_t{config.f32_cycles}, 1};
  }
  return {1, 1};
}

double peak_macs_per_second(const GemmConfig& config, DType dtype) {
  const MacRate mac = mac_rate(config, dtype);
  return static_cast<double>(config.rows) * config.cols * static_cast<double>(config.clock_hz) *
         static_cast<double>(mac.at_once) / static_cast<double>(mac.cycles);
}

std::uint64_t gemm_folds(const GemmConfig& config, const GemmWork& work) {
  const std::uint64_t down = config.dataflow == GemmDataflow::output_stationary
                                 ? ceil_div(work.m, config.rows)
                                 : ceil_div(work.k, config.rows * mac_rate(config, work.dtype).at_once);
  return down * ceil_div(work.n, config.cols);
}

GemmArray::Times GemmArray::take(std::uint64_t now, const GemmWork& work) {
  const std::uint64_t rows = config_.rows, skew = std::uint64_t{config_.rows} + config_.cols - 2;
  const bool outputs_stay = config_.dataflow == GemmDataflow::output_stationary;
  const MacRate mac = mac_rate(config_, work.dtype);
  const std::uint64_t folds = gemm_folds(config_, work);
  const std::uint64_t steps = (outputs_stay ? ceil_div(work.k, mac.at_once) : work.m) * mac.cycles;
  const std::uint64_t last_fold = (folds - 1) * std::max(steps, rows);  // begins so long after the first one

  Times times{std::max(now, edge_free_), 0, 0, 0};
  std::uint64_t first = times.begin;  // operands enter
  if (!outputs_stay || work.from_memory) {
    times.begin = std::max(now, load_free_);
    if (work.chained && outputs_stay) times.begin = std::max(times.begin, first_sums_);
    first = std::max(first, times.begin + rows);
  }
  load_free_ = first + last_fold;
  edge_free_ = load_free_ + steps;
  times.read = edge_free_;
  times.done = edge_free_ + skew;
  first_sums_ = first + steps + skew + rows;
  if (outputs_stay && !work.stays) {
    const std::uint64_t leave = std::max(times.done, drain_free_);
    edge_free_ += leave - times.done;  // the sums before hold the way out
    times.done = drain_free_ = leave + rows;
  }
  times.accepts = std::max(load_free_, edge_free_ - std::min(edge_free_, rows));
  return times;
}

void GemmArray::stall(std::uint64_t cycles) {
  for (std::uint64_t* free : {&edge_free_, &load_free_, &drain_free_, &first_sums_}) *free += cycles;
}

}  // namespace kernbench::pe
