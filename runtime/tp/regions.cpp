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
  Context& context = state.context();
  const int ranks = state.tensor_model_parallel_world_size(), rank = state.tensor_model_parallel_rank();
  const Shape shape = x.shape();
  if (shape.cols % ranks != 0) {
    throw std::invalid_argument(
        fmt::format("scatter '{}': the tensor has {} columns, which {} ranks do not divide", name, shape.cols, ranks));
  }
  const std::int64_t own = shape.cols / ranks;
  Tensor part = context.empty({shape.rows, own}, x.dtype(), policy, name);
  context.wait(copy_columns(context, name, x, rank * own, own, part, 0, false));
  return part;
}

Tensor gather_from_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                          const std::string& name) {
  Context& context = state.context();
  const int ranks = state.tensor_model_parallel_world_size(), rank = state.tensor_model_parallel_rank();
  const Shape shape = x.shape();
  const Tensor full = context.empty({shape.rows, shape.cols * ranks}, x.dtype(), policy, name);
  context.wait(copy_columns(context, name, x, 0, shape.cols, full, rank * shape.cols, true));
  return reduce_from_region(state, full);
}

}  // namespace kernbench::tp
