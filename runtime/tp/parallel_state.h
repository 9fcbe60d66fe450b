#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/runtime.h"

namespace kernbench::tp {

class GemmPlans;
struct LaunchesUnderWay;

/// Ranks that split the model in one way, as one of them sees it.
struct ParallelGroup {
  int rank = 0;  ///< this one's number in the group
  int size = 1;  ///< members
  Group group;   ///< for collectives
};

/// One rank's place in the groups of tensor (TP), data (DP) and pipeline (PP) parallelism. Made by
/// initialize_model_parallel; layers keep a copy. A default-constructed one stands for "not initialised": every use is
/// a std::logic_error that says so.
class ParallelState {
 public:
  ParallelState() = default;                           ///< not initialised
  int tensor_model_parallel_rank() const;              ///< 0 to world size - 1
  int tensor_model_parallel_world_size() const;        ///< ranks that share a layer
  const Group& tensor_model_parallel_group() const;    ///< of ranks that share a layer
  int data_parallel_rank() const;                      ///< 0 to world size - 1
  int data_parallel_world_size() const;                ///< ranks that hold the same weights
  const Group& data_parallel_group() const;            ///< of ranks that hold the same weights
  int pipeline_model_parallel_rank() const;            ///< 0 to world size - 1: which stage
  int pipeline_model_parallel_world_size() const;      ///< stages that the layers are dealt to
  const Group& pipeline_model_parallel_group() const;  ///< of the stages
  int expert_model_parallel_rank() const;              ///< 0 to world size - 1
  int expert_model_parallel_world_size() const;        ///< ranks that the experts of a layer are dealt to
  const Group& expert_model_parallel_group() const;    ///< of ranks that the experts of a layer are dealt to
  int expert_tensor_parallel_rank() const;             ///< 0 to world size - 1
  int expert_tensor_parallel_world_size() const;       ///< ranks that share each expert
  const Group& expert_tensor_parallel_group() const;   ///< of ranks that share each expert
  Context& context() const;                            ///< of the rank
  GemmPlans& gemm_plans() const;                       ///< of the rank's layers, which are alike
  LaunchesUnderWay& launches_under_way() const;        ///< of the rank's layers (pass.h)
  /// Of GEMMs that go on beside collectives, which run on the rank's default stream; made when first asked for.
  std::uint16_t work_stream() const;

 private:
  friend ParallelState initialize_model_parallel(Context& context, int tensor_model_parallel_size,
                                                 int pipeline_model_parallel_size, const ProcessGroupOptions& options,
                                                 int expert_model_parallel_size);

  Context* context_ = nullptr;
  std::shared_ptr<GemmPlans> plans_;
  std::shared_ptr<LaunchesUnderWay> launches_;
  std::shared_ptr<std::uint16_t> work_stream_;  // 0: none yet
  ParallelGroup tensor_, data_, pipeline_, expert_, expert_tensor_;
};

/// What the groups that initialize_model_parallel makes install beforehand: nothing, their first call does.
ProcessGroupOptions on_first_use();

/// Cuts the ranks of the default group into TP x DP x PP groups in Megatron's order, TP fastest, then DP, then PP:
/// rank = tp + TP (dp + DP pp), with DP = ranks / (TP PP). Every rank calls it, with the same arguments. A group of all
/// ranks is the default one, and costs nothing; the others are made with `options`, which takes simulated time if they
/// install at once. `context` must outlive
/// the state.
///
/// Experts are dealt to `expert_model_parallel_size` ranks (EP) of each TP group, 0: to all of them; those that share
/// an expert are fastest: tensor-parallel rank = etp + TP / EP ep.
///
/// Throws  std::logic_error if init_process_group has not been called, std::invalid_argument on sizes below 1 and where
///         TP PP does not divide the ranks, or EP not TP
ParallelState initialize_model_parallel(Context& context, int tensor_model_parallel_size,
                                        int pipeline_model_parallel_size = 1,
                                        const ProcessGroupOptions& options = on_first_use(),
                                        int expert_model_parallel_size = 0);

}  // namespace kernbench::tp
