#pragma once
#include <cstdint>

#include "models/pe/op.h"
#include "models/pe/pe_config.h"

namespace kernbench::pe {

/// How a composite GEMM is cut into tile ops, and where their buffers lie in TCM.
///
/// Output tiles in row-major order; for each: its bias and residual, then for each step along k the tiles of a and b
/// and their product, then the epilogue, then the store. Every buffer exists twice and is used in turn, so that with
/// in-order engines and the scoreboard on the buffers, loads of the next step run while the present one is multiplied,
/// and the epilogue and store of one output tile while the next is computed. Partial sums stay in an accumulator tile
/// of f32 (f64, i32, i64 for those types); the last op on it writes the result type. Where an output tile is one block
/// of an output-stationary array, its sums stay in the array from the first step along k to the last.
///
/// Tile sizes that the configuration leaves open (0): m and n at least four times the array, so that every operand byte
/// serves four blocks; n and k so that rows of b and a are at least 512 B (narrower rows of a wide matrix would fall on
/// one channel of a slice that interleaves 256 B), and weights fill the array; then m and n, the larger first, and at
/// last k are halved until the workspace takes at most a quarter of a kernel's share of TCM.
class CompositePlan {
 public:
  CompositePlan(const PeConfig& config, const CompositeGemm& gemm, std::uint32_t workspace);

  /// With all leading dimensions filled in.
  const CompositeGemm& gemm() const { return gemm_; }
  std::uint64_t workspace_bytes() const { return bytes_; }
  std::int64_t tile_m() const { return tile_m_; }
  std::int64_t tile_n() const { return tile_n_; }
  std::int64_t tile_k() const { return tile_k_; }

  /// Describes the next tile op: kind, unit, stage, tiles, va, stride. False when there is none left.
  bool next(Op& op);

 private:
  enum class Phase : std::uint8_t {
    bias,
    residual,
    load_a,
    load_b,
    product,
    add_bias,
    activation,
    add_residual,
    store
  };
  struct Buffer {
    std::uint32_t at[2] = {0, 0};
  };
  void choose_tile(const PeConfig& config);
  void place_buffers();
  void place(Buffer& buffer, std::uint64_t bytes);
  bool has(Phase phase) const;
  Phase last_math() const;  ///< the phase that writes the result type
  void advance();
  void describe(Op& op) const;
  void describe_load(Op& op, Va base, std::int64_t leading, std::int64_t row, std::int64_t col, std::uint32_t tcm,
                     std::int64_t rows, std::int64_t cols) const;

  CompositeGemm gemm_;
  DType accumulator_;
  std::int64_t tile_m_, tile_n_, tile_k_;
  bool sums_stay_;  // in the array, over the steps of an output tile
  Buffer a_, b_, sum_, out_, bias_, residual_;
  std::uint64_t workspace_, bytes_ = 0;
  std::int64_t i_ = 0, j_ = 0, k_ = 0;   // first row, column, depth of the present tile
  std::uint64_t output_ = 0, step_ = 0;  // counts that choose the buffer
  Phase phase_ = Phase::bias;
  bool finished_ = false;
};

}  // namespace kernbench::pe
