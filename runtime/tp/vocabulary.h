#pragma once
#include <cstdint>
#include <string>

#include "runtime/tp/linear.h"

/// What follows the output matrix, a ColumnParallelLinear of (width, vocabulary): logits whose columns, the vocabulary,
/// are split over the ranks and over the PEs of each.
namespace kernbench::tp {

/// Soft max and arg max of each row over all ranks. Each PE reduces its own columns once; what one PE has to tell is a
/// number a row, so that the ranks exchange numbers, never logits.
class VocabParallelLogits {
 public:
  /// Places what the passes need beside their results.
  ///
  /// logits      of any pass: (M, columns of the rank), placed by columns
  /// vocabulary  columns of all ranks together that count; those beyond are padding
  /// Throws      std::invalid_argument if its placement splits rows, or the ranks' columns are fewer than the
  /// vocabulary
  VocabParallelLogits(const ParallelState& state, std::string name, const Tensor& logits, std::int64_t vocabulary);

  void prepare() const;  ///< installs the queues of all passes; every rank calls it

  /// exp(x - max) / sum over all ranks' columns, of this rank's columns; padding gets 0. Two passes over the logits:
  /// 3 launches and 2 all-reduces of a number for each PE and row; waits for them.
  ///
  /// probabilities  shape and placement of the logits, any floating-point type
  void soft_max(const Tensor& logits, const Tensor& probabilities) const;

  /// The column of all ranks' together with the largest value, of equals the first: (1, M) i32, alike on every rank.
  /// One pass over the logits: 3 launches and 2 all-reduces; waits for them.
  Tensor arg_max(const Tensor& logits) const;

 private:
  void check(const char* what, const Tensor& logits) const;

  ParallelState state_;
  std::string name_;
  Shape shape_;
  std::string policy_;
  std::int64_t vocabulary_;
  Tensor maxima_, all_maxima_, sums_, scaled_, index_, candidates_,
      result_;  // a row for each PE, a column for each row of the logits
};

}  // namespace kernbench::tp
