#include "runtime/tp/parallel_state.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kernbench::tp {

int ParallelState::tensor_model_parallel_rank() const { return context().group_rank(); }
int ParallelState::tensor_model_parallel_world_size() const { return context().group_size(); }

Context& ParallelState::context() const {
  if (context_ == nullptr) {
    throw std::logic_error(
        "the tensor-parallel state is used before it is initialised: call "
        "initialize_model_parallel first");
  }
  return *context_;
}

ParallelState initialize_model_parallel(Context& context, int tensor_model_parallel_size) {
  if (!context.in_process_group()) {
    throw std::logic_error("initialize_model_parallel: there is no process group: call init_process_group first");
  }
  if (tensor_model_parallel_size != context.group_size()) {
    throw std::invalid_argument(
        fmt::format("initialize_model_parallel: tensor_model_parallel_size is {}, the world has {} ranks: give {}; "
                    "other sizes are not in this version",
                    tensor_model_parallel_size, context.group_size(), context.group_size()));
  }
  return ParallelState(context);
}

}  // namespace kernbench::tp
