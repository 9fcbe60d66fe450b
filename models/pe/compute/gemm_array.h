#pragma once
#include <cstdint>

#include "models/pe/pe_config.h"
#include "tlm/kernel/dtype.h"

namespace kernbench::pe {

/// What a cell of the array does: `at_once` multiply-accumulates every `cycles`.
struct MacRate {
  std::uint64_t cycles, at_once;
};
/// f8 and i8 f8_rate at once; f16, bf16, i16, bool f16_rate at once; f32, i32 in f32_cycles; f64, i64 in 2 f32_cycles
/// (assumed: two passes over half the operand width).
MacRate mac_rate(const GemmConfig& config, DType dtype);
/// Of one array at its best.
double peak_macs_per_second(const GemmConfig& config, DType dtype);

/// What one product, c[m x n] (+)= a[m x k] b[k x n], asks of the array.
struct GemmWork {
  std::uint64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f16;
  bool from_memory = false;  ///< output stationary: it starts from sums that lie in TCM
  bool chained = false;      ///< they are the sums of the product before it
  bool stays = false;        ///< output stationary: its sums stay in the array, for the next product to go on with
};

/// Passes over the array that a product takes: one per block of results (output stationary) or of weights.
std::uint64_t gemm_folds(const GemmConfig& config, const GemmWork& work);

/// When the array has computed a product, in cycles: fill, folds, drain, and what of them overlaps.
///
/// A product is F folds; one streams operands into the edge of the array for s cycles, skewed, so that the last cell is
/// done rows + cols - 2 cycles after the edge.
///   output stationary   F = ceil(m/rows) ceil(n/cols), s = ceil(k/at_once) cycles; a fold's results leave row by row
///   weight stationary   F = ceil(k/(rows at_once)) ceil(n/cols), s = m cycles; a fold's weights enter row by row
/// Shadow registers let results leave, and weights or earlier sums enter, while the next or the previous fold computes:
/// folds of one product follow each other every max(s, rows). The next product may enter as soon as the edge is free:
/// it does not wait for the results of this one. Sums that `stays` are not drained and cost nothing to go on with. In
/// weight-stationary mode sums over k are kept by accumulators beside the array.
/// A product alone: output stationary (F-1) max(s, rows) + s + (rows + cols - 2) + rows, and `rows` in front if it
/// starts from sums in TCM; weight stationary rows + (F-1) max(s, rows) + s + (rows + cols - 2).
class GemmArray {
 public:
  explicit GemmArray(const GemmConfig& config) : config_(config) {}

  struct Times {
    std::uint64_t begin;    ///< the first operands, weights or sums enter
    std::uint64_t accepts;  ///< when the next product may be offered
    std::uint64_t read;     ///< the last operands have entered
    std::uint64_t done;     ///< all results are in TCM; of one that stays: in the array
  };
  /// Takes a product at cycle `now`. REQUIRES: now >= accepts of the one before; m, n and k are not 0.
  Times take(std::uint64_t now, const GemmWork& work);
  /// What was taken last goes on `cycles` later: its operands came too slowly.
  void stall(std::uint64_t cycles);

 private:
  const GemmConfig config_;
  std::uint64_t edge_free_ = 0;   // the last operands of the last fold have entered
  std::uint64_t load_free_ = 0;   // the shadow registers hold nothing that is still to be swapped in
  std::uint64_t drain_free_ = 0;  // the results before have left
  std::uint64_t first_sums_ = 0;  // the sums of the first fold of the last product are in TCM
};

}  // namespace kernbench::pe
