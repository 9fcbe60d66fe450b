#pragma once
#include <optional>
#include <vector>

#include "sc_main/workloads/tp_transformer.h"

namespace kernbench {

/// What one rank of a run has and does: its stage of the pipeline, for its share of the sequences.
class TpTransformer::Rank {
 public:
  Rank(const TpTransformer& work, Context& ctx, Case& run, TpTimes& times);
  /// Set-up and timed passes. Results of the last one are kept; where reading takes time those of one more.
  void program();

 private:
  void place();
  void load();
  void prepare();
  void piece(std::size_t number, bool keep);
  void whole_step(std::size_t step, bool keep);
  /// A phase begins with piece `number`, or (of all pieces) the last has ended: keeps the machine's work of the one
  /// before.
  void meter(std::size_t number);
  void keep(std::size_t step, std::size_t micro, const Tensor& x);

  bool first() const { return stage_ == 0; }
  bool last() const { return stage_ == work_.pp_ - 1; }
  bool staged() const { return work_.pp_ > 1; }
  /// Of the step: 0 with a prefill, otherwise the decode steps'.
  std::size_t phase_of(std::size_t step) const { return work_.prompt_ > 0 && step == 0 ? 0 : tensors_.size() - 1; }
  /// First sequence of a micro-batch of this rank.
  std::int64_t first_entry(std::size_t micro) const {
    return (data_ * work_.micro_ + static_cast<std::int64_t>(micro)) * work_.entries();
  }
  /// The tokens of a step that belong to a micro-batch of this rank.
  std::vector<std::int64_t> tokens(std::size_t step, std::size_t micro) const;

  const TpTransformer& work_;
  Context& ctx_;
  Case& run_;
  TpTimes& times_;
  const tp::ParallelState state_;
  const std::int64_t tensor_, data_, stage_;  // its places
  const std::size_t micro_;                   // micro-batches
  tp::TransformerOptions options_;
  std::optional<tp::Transformer> model_;
  std::vector<std::vector<tp::TransformerTensors>> tensors_;  // by phase and micro-batch
  std::vector<std::vector<Tensor>> received_;                 // likewise, behind the first stage
  std::vector<std::vector<Tensor>> inputs_;  // by step and micro-batch, of the first stage where there is no embedding
  MachineWork before_, piece_before_;        // rank 0's: at the start of the phase, and of the piece
  std::size_t begun_ = 0;                    // phases, of all passes
  Tensor x_;                                 // between the pieces of a step
};

}  // namespace kernbench
