#pragma once
#include <cstdint>
#include <utility>

#include "runtime/tp/parallel_state.h"
#include "runtime/tp/rope.h"

namespace kernbench::tp {

/// Cosines and sines of rotary position embedding, f32 (of f64 layers f64), for positions from 0 on: element i of the
/// first half of a head turns against element i of the second by position * rotary_frequency(theta, i) (as in Llama's
/// published weights). One serves all layers of a rank.
class RotaryTable {
 public:
  RotaryTable() = default;  ///< none: heads stay as they are
  /// Places and fills it, a copy in each cube, neighbouring positions on different PEs. Throws std::invalid_argument on
  /// an odd head dimension. `dtype`: of the layers.
  RotaryTable(const ParallelState& state, std::int64_t positions, std::int64_t head_dim, double theta,
              DType dtype = DType::f32, const RopeScaling& scaling = {});
  /// Of a table that is placed already: (positions, head_dim), cosines in the first half of a row, sines behind.
  explicit RotaryTable(Tensor table) : table_(std::move(table)), positions_(table_.shape().rows) {}
  explicit operator bool() const { return static_cast<bool>(table_); }  ///< there is one
  /// (rows, head_dim): cosines, sines. Position p is row (p mod stripes) (rows / stripes) + p / stripes.
  const Tensor& table() const { return table_; }
  std::int64_t stripes() const { return stripes_; }      ///< positions one behind the other that lie apart; 1: none
  std::int64_t positions() const { return positions_; }  ///< 0 to positions - 1 are there

 private:
  Tensor table_;
  std::int64_t stripes_ = 1, positions_ = 0;
};

}  // namespace kernbench::tp
