#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tp/linear.h"

namespace kernbench::tp {

/// Options of an embedding.
struct EmbeddingOptions {
  std::string name = "embedding";  ///< of the layer
  DType dtype = DType::f16;        ///< of the table and the output
  /// Of the table: whole rows on the PEs.
  DPPolicy weight = DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::row_wise);
  LinearPlacement placement;       ///< of the result, as of a row layer's
  bool sequence_parallel = false;  ///< each rank ends with its own rows (regions.h)
};

/// Row `token` of a table whose rows are split over the ranks: rank r owns [r k, (r + 1) k), k = vocabulary / ranks. A
/// rank looks up what it owns, zeros stand for the rest, and an all-reduce makes the rows whole on every rank.
///
/// Tokens are the host's: they travel as arguments, at most kMostTokens a launch.
class VocabParallelEmbedding {
 public:
  static constexpr std::int64_t kMostTokens = 896;  ///< 3.5 KiB of the 4 KiB that a launch may carry

  /// Places this rank's rows, zero-filled. Throws std::invalid_argument if the ranks do not divide the vocabulary.
  VocabParallelEmbedding(const ParallelState& state, std::int64_t vocabulary, std::int64_t width,
                         EmbeddingOptions options = {});

  void load_weight(const WeightPattern& whole);  ///< takes this rank's rows of (vocabulary, width)

  /// M tokens -> (M, width) on every rank. A launch for each kMostTokens tokens, and an all-reduce; waits (pass.h).
  /// Throws std::invalid_argument on a token that is not in the vocabulary, naming its place. Sequence-parallel: (M /
  /// ranks, width), this rank's rows, by a reduce-scatter.
  Tensor forward(const std::vector<std::int64_t>& tokens) const;
  ForwardTensors place(std::int64_t rows) const;      ///< what a pass over so many tokens writes
  void prepare(const ForwardTensors& tensors) const;  ///< installs the queues of such passes; every rank calls it
  /// The same into `tensors`. Returns tensors.output.
  Tensor forward(const std::vector<std::int64_t>& tokens, const ForwardTensors& tensors) const;

  const Tensor& weight() const { return weight_; }  ///< (vocabulary / ranks, width)

 private:
  ParallelState state_;
  std::int64_t vocabulary_, width_, own_;
  EmbeddingOptions options_;
  Tensor weight_;
};

}  // namespace kernbench::tp
