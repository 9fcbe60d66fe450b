#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/tp/linear.h"

namespace kernbench::tp {

/// Options of an MLP.
struct MlpOptions {
  std::string name = "mlp";                  ///< of the layer
  DType dtype = DType::f16;                  ///< of weights, input and output
  bool gated = false;                        ///< activation(x gate) * (x up), as SwiGLU has it; else activation(x up)
  Activation activation = Activation::gelu;  ///< silu makes a gated one SwiGLU
  bool bias = false;                         ///< of every matrix
  bool sequence_parallel = false;            ///< rows of input and output are split over the ranks (regions.h)
  int overlap_chunks = 1;                    ///< of the rows, in the last matrix (LinearOptions)
  LinearPlacement placement;                 ///< inside each SIP
};

/// What a pass writes, placed beforehand by place().
struct MlpTensors {
  ForwardTensors up, gate, down;  ///< gate of a gated one only
};

/// (width) -> (hidden) -> (width): column-parallel, activation, row-parallel. The activation is the end of the GEMM; a
/// gated one multiplies where the columns lie, one pass.
class Mlp {
 public:
  /// Places the rank's weights, zero-filled. Throws std::invalid_argument if the ranks do not divide `hidden`.
  Mlp(const ParallelState& state, std::int64_t width, std::int64_t hidden, MlpOptions options = {});

  /// Of the whole model: (width, hidden), (width, hidden) of a gated one and nothing otherwise, (hidden, width).
  void load_weights(const WeightPattern& up, const WeightPattern& gate, const WeightPattern& down);
  /// (1, columns) of the same.
  void load_biases(const WeightPattern& up, const WeightPattern& gate, const WeightPattern& down);

  MlpTensors place(std::int64_t rows) const;  ///< of passes of so many rows
  void prepare(const Tensor& x,
               const MlpTensors& tensors) const;  ///< installs the queues of such passes; every rank calls it
  /// x (M, width) -> (M, width) on every rank. 2 launches, gated 4, with biases one more, and an all-reduce; waits
  /// (pass.h). Sequence-parallel: both are (M / ranks, width), the rank's rows, by an all-gather and a reduce-scatter.
  Tensor forward(const Tensor& x, const MlpTensors& tensors) const;
  Tensor forward(const Tensor& x) const;  ///< places the tensors, too

 private:
  ParallelState state_;
  MlpOptions options_;
  std::optional<ColumnParallelLinear> up_, gate_;
  std::optional<RowParallelLinear> down_;
};

}  // namespace kernbench::tp
