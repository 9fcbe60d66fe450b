#include "runtime/tp/regions.h"

#include <fmt/format.h>

#include <stdexcept>

#include "runtime/tp/gemm.h"

namespace kernbench::tp {

Tensor copy_to_region(const ParallelState& state, const Tensor& x) {
  state.context();  // throws if it is not initialised
  return x;
}

Tensor reduce_from_region(const ParallelState& state, const Tensor& x) {
  state.context().all_reduce(x);
  return x;
}

Tensor scatter_to_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy, const std::string& name) {
  const int ranks = state.tensor_model_parallel_world_size();
  const Shape shape = x.shape();
  if (shape.cols % ranks != 0) {
    throw std::invalid_argument(
        fmt::format("scatter '{}': the tensor has {} columns, which {} ranks do not divide", name, shape.cols, ranks));
  }
  const Tensor part = state.context().empty({shape.rows, shape.cols / ranks}, x.dtype(), policy, name);
  scatter_to_region(state, x, part);
  return part;
}

void scatter_to_region(const ParallelState& state, const Tensor& x, const Tensor& part) {
  Context& context = state.context();
  context.wait(copy_columns(context, part.name(), x, state.tensor_model_parallel_rank() * part.shape().cols, part));
}

Tensor gather_from_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                          const std::string& name) {
  const Shape shape = x.shape();
  const Tensor full = state.context().empty({shape.rows, shape.cols * state.tensor_model_parallel_world_size()},
                                            x.dtype(), policy, name);
  gather_from_region(state, x, full);
  return full;
}

void gather_from_region(const ParallelState& state, const Tensor& x, const Tensor& full) {
  state.context().all_gather_columns(x, full);
}

void prepare_gather_from_region(const ParallelState& state, const Tensor& x, const Tensor& full) {
  state.context().prepare_all_gather_columns(x, full);
}

}  // namespace kernbench::tp
