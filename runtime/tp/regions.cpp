#include "runtime/tp/regions.h"

#include <fmt/format.h>

#include <stdexcept>

#include "runtime/tp/pass.h"
#include "runtime/tp/pointwise.h"

namespace kernbench::tp {

Tensor copy_to_region(const ParallelState& state, const Tensor& x) {
  state.context();  // throws if it is not initialised
  return x;
}

Tensor reduce_from_region(const ParallelState& state, const Tensor& x) {
  Pass(state).wait();
  state.context().all_reduce(x, ReduceOp::sum, state.tensor_model_parallel_group());
  return x;
}

Tensor scatter_to_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy, const std::string& name) {
  const int ranks = state.tensor_model_parallel_world_size();
  const Shape shape = x.shape();
  if (shape.cols % ranks != 0) {
    throw std::invalid_argument(
        fmt::format("scatter '{}': the tensor has {} columns, which {} ranks do not divide", name, shape.cols, ranks));
  }
  Tensor part = state.context().empty({shape.rows, shape.cols / ranks}, x.dtype(), policy, name);
  scatter_to_region(state, x, part);
  return part;
}

void scatter_to_region(const ParallelState& state, const Tensor& x, const Tensor& part) {
  Pass pass(state);
  pass.add(copy_columns(state.context(), part.name(), x, state.tensor_model_parallel_rank() * part.shape().cols, part));
  pass.end();
}

Tensor gather_from_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                          const std::string& name) {
  const Shape shape = x.shape();
  Tensor full = state.context().empty({shape.rows, shape.cols * state.tensor_model_parallel_world_size()}, x.dtype(),
                                      policy, name);
  gather_from_region(state, x, full);
  return full;
}

void gather_from_region(const ParallelState& state, const Tensor& x, const Tensor& full) {
  Pass(state).wait();
  state.context().all_gather_columns(x, full, state.tensor_model_parallel_group());
}

void prepare_gather_from_region(const ParallelState& state, const Tensor& x, const Tensor& full) {
  state.context().prepare_all_gather_columns(x, full, state.tensor_model_parallel_group());
}

// ---- Sequence parallelism ----

namespace {
/// Rows of one rank. Throws std::invalid_argument if the ranks do not divide them.
std::int64_t own_rows(const ParallelState& state, const char* what, const std::string& name, std::int64_t rows) {
  const int ranks = state.tensor_model_parallel_world_size();
  if (rows % ranks == 0) return rows / ranks;
  throw std::invalid_argument(
      fmt::format("{} '{}': the tensor has {} rows, which {} ranks do not divide", what, name, rows, ranks));
}
}  // namespace

Tensor scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                                  const std::string& name) {
  const std::int64_t rows = own_rows(state, "scatter", name, x.shape().rows);
  Tensor part = state.context().empty({rows, x.shape().cols}, x.dtype(), policy, name);
  scatter_to_sequence_region(state, x, part);
  return part;
}

void scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& part) {
  Pass pass(state);
  pass.add(copy_rows(state.context(), part.name(), x, state.tensor_model_parallel_rank() * part.shape().rows, part));
  pass.end();
}

Tensor gather_from_sequence_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                                   const std::string& name) {
  const Shape shape = x.shape();
  Tensor full = state.context().empty({shape.rows * state.tensor_model_parallel_world_size(), shape.cols}, x.dtype(),
                                      policy, name);
  gather_from_sequence_region(state, x, full);
  return full;
}

void gather_from_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& full) {
  Pass(state).wait();
  state.context().all_gather(x, full, state.tensor_model_parallel_group());
}

void prepare_gather_from_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& full) {
  state.context().prepare_all_gather(x, full, state.tensor_model_parallel_group());
}

Tensor reduce_scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                                         const std::string& name) {
  const std::int64_t rows = own_rows(state, "reduce_scatter", name, x.shape().rows);
  Tensor part = state.context().empty({rows, x.shape().cols}, x.dtype(), policy, name);
  reduce_scatter_to_sequence_region(state, x, part);
  return part;
}

void reduce_scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& part) {
  Pass(state).wait();
  state.context().reduce_scatter(x, part, ReduceOp::sum, state.tensor_model_parallel_group());
}

void prepare_reduce_scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& part) {
  state.context().prepare_reduce_scatter(x, part, ReduceOp::sum, state.tensor_model_parallel_group());
}

}  // namespace kernbench::tp
