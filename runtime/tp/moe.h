#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tp/linear.h"
#include "runtime/tp/moe_routing.h"

namespace kernbench::tp {

/// What the mixtures of experts of a program did, for reports and references. Shared by the ranks, which take turns.
struct MoeLog {
  enum class Phase : std::uint8_t { router, dispatch, experts, combine };
  /// Of rank 0.
  struct Span {
    std::string layer;
    Phase phase = Phase::router;
    Ps begin = 0, end = 0;
  };
  /// A pass of a layer of rank 0, and of the ranks that share its experts.
  struct Pass {
    std::string layer;
    Ps begin = 0;
    std::vector<std::int64_t> tokens_per_expert;  ///< without those dropped
    std::int64_t dropped = 0;                     ///< choices
  };
  std::vector<Span> spans;
  std::vector<Pass> passes;

  bool keeps = false;  ///< choices of passes from now on
  /// By layer and data-parallel rank, of each pass: the choices of its tokens; ~expert: dropped.
  std::map<std::pair<std::string, int>, std::vector<std::vector<std::int32_t>>> choices;
};

/// How the experts of a run are used, whatever the model.
struct MoeRun {
  double capacity_factor = 0;             ///< MoeRouting; 0: no token is dropped
  std::optional<AssumedRouting> assumed;  ///< in place of what the router says: where there are no values
  std::shared_ptr<MoeLog> log;            ///< null: none
};

/// Options of a mixture of experts.
struct MoeOptions {
  std::string name = "moe";                  ///< of the layer
  DType dtype = DType::f16;                  ///< of weights, input and output
  std::int64_t experts = 1, per_token = 1;   ///< in all; that each token goes to
  Activation activation = Activation::silu;  ///< of the experts, which are gated
  bool sequence_parallel = false;            ///< input and output are the rank's rows; needs as many expert-parallel
                                             ///< ranks as tensor-parallel ones
  LinearPlacement placement;                 ///< inside each SIP, of the experts' matrices
  MoeRun run;
};

/// Tensors that depend on how many tokens go where: made when a pass first needs them, kept for the next.
struct MoePool {
  struct Blocks {
    Tensor mine;    ///< (ranks block, width): what the rank sends, and what it gets back
    Tensor theirs;  ///< what it receives, and the experts' results; none where one rank has all experts
  };
  struct Expert {
    Tensor input, up, gate, down;
  };
  std::map<std::int64_t, Blocks> blocks;   ///< by rows of a block
  std::map<std::int64_t, Expert> experts;  ///< by rows of an expert
};

/// What a pass writes, placed beforehand by place().
struct MoeTensors {
  std::int64_t tokens = 0;
  Tensor logits;              ///< (own tokens, experts); none on a rank without tokens
  Tensor chosen, all_chosen;  ///< choose_experts(), of this rank; of all that share the experts, if there are several
  Tensor weights;             ///< choose_experts()
  Tensor combined;            ///< (rows of a rank, width)
  Tensor gathered;            ///< (ranks rows, width), if there are several ranks and it is not sequence-parallel
  Tensor output;              ///< what forward returns: one of these, or the rows of `gathered` that are tokens
  std::shared_ptr<MoePool> pool;
};

/// A mixture of experts (Mixtral's): logits = x W_r in the layer's dtype, the k largest of each token, of equal ones
/// the first, weights by soft max over these k; the sum of these experts' gated MLPs, weighted.
///
/// Expert-parallel as Megatron's: each rank routes its own rows of x, tokens go to the ranks of their experts by one
/// all-to-all, expert after expert, and come back by another; then the ranks' rows are all-gathered (sequence-parallel:
/// stay). Blocks of the all-to-all are as large as the largest of all pairs of ranks: counts differ and its blocks do
/// not. Fewer expert-parallel ranks than tensor-parallel ones: the others share each expert as they do an MLP, each
/// exchanges among those with its part, and the ranks' sums are all-reduced.
///
/// The choices go to the host, since launches' shapes and the order of rows depend on them: after an all-gather over
/// the expert-parallel ranks each rank's host reads them by a message and waits for it.
class MoeMlp {
 public:
  /// Places the rank's weights, zero-filled. Throws std::invalid_argument naming layer, dimension and world size where
  /// the expert-parallel ranks do not divide the experts, the others not `hidden`, more experts are chosen than there
  /// are, or sequence parallelism meets fewer expert-parallel ranks.
  MoeMlp(const ParallelState& state, std::int64_t width, std::int64_t hidden, MoeOptions options);

  void load_router(const WeightPattern& whole);  ///< (width, experts)
  /// Of one expert: (width, hidden), twice, and (hidden, width). Experts of other ranks are passed over.
  void load_expert(std::int64_t expert, const WeightPattern& up, const WeightPattern& gate, const WeightPattern& down);
  bool owns(std::int64_t expert) const;  ///< this rank has it, or a part of it

  MoeTensors place(std::int64_t rows) const;  ///< of passes over so many rows of all ranks together
  /// Installs the queues of such passes, and places what one with balanced (or the assumed) routing needs; every rank
  /// calls it.
  void prepare(const MoeTensors& tensors) const;
  /// x (M, width) -> (M, width) on every rank; sequence-parallel (M / ranks, width), this rank's rows. Waits.
  /// Throws std::invalid_argument on another shape or dtype, std::runtime_error on logits that are no numbers.
  Tensor forward(const Tensor& x, const MoeTensors& tensors) const;

 private:
  struct Weights {
    Tensor up, gate, down;
  };
  struct Timed;
  int ranks() const { return state_.expert_model_parallel_world_size(); }
  int rank() const { return state_.expert_model_parallel_rank(); }
  std::int64_t first_expert() const { return rank() * static_cast<std::int64_t>(experts_.size()); }
  MoeShape shape(std::int64_t tokens) const {
    return {tokens, options_.experts, options_.per_token, ranks(), options_.run.capacity_factor};
  }
  MoeRouting route(const Tensor& x, const MoeTensors& tensors) const;
  std::vector<std::int32_t> choices(const MoeTensors& tensors) const;
  MoePool::Blocks& blocks(const MoeTensors& tensors, const MoeRouting& routing) const;
  MoePool::Expert& expert_tensors(const MoeTensors& tensors, std::int64_t rows) const;
  void dispatch(const Tensor& x, const MoeRouting& routing, const MoePool::Blocks& blocks) const;
  void run_experts(const Tensor& x, const MoeTensors& tensors, const MoeRouting& routing,
                   const MoePool::Blocks& blocks) const;
  void combine(const MoeTensors& tensors, const MoeRouting& routing, const MoePool::Blocks& blocks) const;
  void keep(const MoeRouting& routing, Ps begin) const;

  ParallelState state_;
  std::int64_t width_, own_hidden_;
  MoeOptions options_;
  Tensor router_;
  std::vector<Weights> experts_;  // of this rank
};

}  // namespace kernbench::tp
