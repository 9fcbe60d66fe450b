#pragma once
#include "runtime/runtime.h"

namespace kernbench::tp {

/// One rank's place in the tensor-parallel group. Made by initialize_model_parallel; layers keep a copy. A
/// default-constructed one stands for "not initialised": every use is a std::logic_error that says so.
class ParallelState {
 public:
  ParallelState() = default;                     ///< not initialised
  int tensor_model_parallel_rank() const;        ///< 0 to world size - 1
  int tensor_model_parallel_world_size() const;  ///< ranks that share a layer
  Context& context() const;                      ///< of the rank

 private:
  friend ParallelState initialize_model_parallel(Context& context, int tensor_model_parallel_size);
  explicit ParallelState(Context& context) : context_(&context) {}

  Context* context_ = nullptr;
};

/// Joins this rank to the tensor-parallel group; takes no simulated time. `context` must outlive the state.
///
/// tensor_model_parallel_size  has to be the world size in this version: std::invalid_argument otherwise
/// Throws                      std::logic_error if init_process_group has not been called
ParallelState initialize_model_parallel(Context& context, int tensor_model_parallel_size);

}  // namespace kernbench::tp
