#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tp/parallel_state.h"
#include "tlm/kernel/tl.h"

namespace kernbench::tp {

/// The value of element (row, col) of a whole weight, as the model has it before it is split over ranks.
using WeightPattern = std::function<double(std::int64_t row, std::int64_t col)>;

/// How the tensors of a layer spread over the cubes and PEs of each rank's SIP. Which rank owns what does not depend on
/// it.
struct LinearPlacement {
  DPPolicy weight = split();  ///< (in, out) slice of the rank
  DPPolicy output = split();  ///< of the layer
  /// Many rows (more than 512) lie over the cubes, whatever `output` is, where the weight is packed(): of a column
  /// layer with their columns over the PEs of each, of a row layer whole on a PE. The weight then goes round the cubes,
  /// and rows never leave theirs.
  bool many_over_cubes = false;
  DPPolicy input;               ///< of the columns that a layer takes from its input; copied everywhere
  DPPolicy bias;                ///< copied everywhere
  DPPolicy sequence = split();  ///< a rank's rows of a sequence-parallel layer

  /// column_wise over cubes, column_wise over PEs.
  static DPPolicy split();
  /// Columns over the cubes, rows over the PEs of a cube, so that its PEs hold one block of whole columns: a GEMM's
  /// steps of k are long pieces of memory, and its PEs can share rows of the result or steps of k.
  static DPPolicy packed();
  /// Of so many rows of results that would lie as `over_cubes` if they are many.
  DPPolicy of_results(std::int64_t rows, const DPPolicy& over_cubes) const;
};

/// Options of a layer.
struct LinearOptions {
  std::string name = "linear";               ///< of the layer: prefix of its tensors' and launches' names
  DType dtype = DType::f16;                  ///< of weights, input and output
  bool bias = false;                         ///< add a bias
  Activation activation = Activation::none;  ///< of the result
  bool sequence_parallel = false;            ///< rows of the input of a column layer and of the output of a row layer
                                             ///< are split over the ranks (regions.h)
  int overlap_chunks = 1;                    ///< of the rows of a row layer: the GEMM of one goes on while the sums of
                                             ///< the one before are all-reduced. 1: one after the other
  LinearPlacement placement;                 ///< inside each SIP
};

/// Of a row layer.
inline constexpr int kMostOverlapChunks = 16;

/// What a forward pass writes, placed beforehand: place() of a layer makes them. One set serves any number of passes,
/// each of which overwrites it.
struct ForwardTensors {
  Tensor scattered;  ///< of a row layer whose input is not parallel: this rank's columns of it
  Tensor gathered;   ///< of a sequence-parallel column layer: the rows of all ranks, placed by rows_for_gemm()
  Tensor partial;    ///< of a column layer that gathers: this rank's columns of the output; of a sequence-parallel row
                     ///< layer: all rows, before they are reduced and scattered
  std::vector<Tensor> chunks;  ///< of a row layer that overlaps: its rows before bias and activation
  Tensor output;               ///< what forward returns
};

/// y = activation(x W + bias) with W split along its columns: rank r owns columns [r k, (r + 1) k), k = out / ranks.
/// The input is the same on every rank; the bias is split like the columns and added in the GEMM.
class ColumnParallelLinear {
 public:
  /// Places this rank's slices, zero-filled; takes the simulated time of their map messages. Throws
  /// std::invalid_argument if `out` does not divide by the world size, std::logic_error without a parallel state.
  ///
  /// in, out        of the whole layer, elements
  /// gather_output  every rank gets all of y; otherwise its own columns
  ColumnParallelLinear(const ParallelState& state, std::int64_t in, std::int64_t out, LinearOptions options = {},
                       bool gather_output = false);

  void load_weight(const WeightPattern& whole);  ///< takes this rank's columns of (in, out)
  void load_bias(const WeightPattern& whole);    ///< takes this rank's columns of (1, out); REQUIRES: there is one

  /// x (M, in) -> (M, out / ranks), or (M, out) with gather_output. One launch; gathering takes an all-gather. Waits
  /// (pass.h). Places what it writes: that takes the simulated time of the map messages, and the first pass that of
  /// installing queues. Sequence-parallel: x is (M / ranks, in), and an all-gather comes first. Throws
  /// std::invalid_argument on another shape or dtype.
  Tensor forward(const Tensor& x) const;
  /// Places what a pass over `rows` rows (of all ranks together) writes; takes the simulated time of the map messages.
  ForwardTensors place(std::int64_t rows) const;
  /// Installs the queues of such passes, of collectives and of the GEMM; every rank calls it. Takes simulated time.
  /// x: what they will take, of which only the form counts.
  void prepare(const Tensor& x, const ForwardTensors& tensors) const;
  /// The same pass into `tensors`, of place(x's rows): maps nothing, and after prepare() installs nothing. Returns
  /// tensors.output. Throws std::invalid_argument on tensors of another shape, too.
  Tensor forward(const Tensor& x, const ForwardTensors& tensors) const;

  const Tensor& weight() const { return weight_; }  ///< (in, out / ranks)
  const Tensor& bias() const { return bias_; }      ///< (1, out / ranks); an empty handle without one

 private:
  ParallelState state_;
  std::int64_t in_;
  LinearOptions options_;
  bool gather_output_;
  Tensor weight_, bias_;

  std::int64_t rows_of(const Tensor& x) const;  // of all ranks together
};

/// y = activation(x W + bias) with W split along its rows: rank r owns rows [r k, (r + 1) k), k = in / ranks. Each rank
/// multiplies its own columns of x; the partial sums are all-reduced, so that every rank ends with all of y. The bias
/// is added once, after the reduction.
class RowParallelLinear {
 public:
  /// As ColumnParallelLinear, with `in` divided.
  /// Throws std::invalid_argument on chunks that are not 1 to kMostOverlapChunks, or that meet sequence parallelism.
  ///
  /// input_is_parallel  each rank's x is its own columns already, (M, in / ranks); otherwise x is (M, in) on every rank
  ///                    and is scattered first
  RowParallelLinear(const ParallelState& state, std::int64_t in, std::int64_t out, LinearOptions options = {},
                    bool input_is_parallel = true);

  void load_weight(const WeightPattern& whole);  ///< takes this rank's rows of (in, out)
  void load_bias(const WeightPattern& whole);    ///< (1, out), on every rank; REQUIRES: there is one

  /// x -> (M, out). One launch and an all-reduce; another launch each for a bias or activation, and for scattering.
  /// Sequence-parallel: a reduce-scatter instead, and the result is (M / ranks, out), this rank's rows.
  /// With chunks: a launch and an all-reduce for each, and one launch that puts the rows together, with bias and
  /// activation. The GEMMs run on ParallelState::work_stream(). Each chunk is a GEMM of its own and an all-reduce of
  /// its own: alike on all ranks to the bit, but sums may be taken in another order than without chunks.
  /// Waits (pass.h). Places what it writes, as a column layer does. Throws std::invalid_argument on another shape or
  /// dtype.
  Tensor forward(const Tensor& x) const;
  ForwardTensors place(std::int64_t rows) const;                         ///< as of a column layer
  void prepare(const Tensor& x, const ForwardTensors& tensors) const;    ///< as of a column layer
  Tensor forward(const Tensor& x, const ForwardTensors& tensors) const;  ///< as of a column layer

  const Tensor& weight() const { return weight_; }  ///< (in / ranks, out)
  const Tensor& bias() const { return bias_; }      ///< (1, out); an empty handle without one

 private:
  ParallelState state_;
  std::int64_t in_, out_;
  LinearOptions options_;
  bool input_is_parallel_;
  Tensor weight_, bias_;

  Shape output_shape(std::int64_t rows) const;
  std::int64_t chunk_rows(std::int64_t rows) const;  // of every chunk but the last
  bool overlaps() const { return options_.overlap_chunks > 1; }
  void overlapped(const Tensor& x, const ForwardTensors& tensors) const;
};

}  // namespace kernbench::tp
