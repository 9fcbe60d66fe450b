#include "runtime/tp/linear.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/tp/gemm.h"
#include "runtime/tp/regions.h"

namespace kernbench::tp {

namespace {
/// What each rank owns of `whole`. Throws std::invalid_argument naming layer, dimension and world size.
std::int64_t share(const char* kind, const std::string& layer, const char* dimension, std::int64_t whole, int ranks) {
  if (whole < 1 || whole % ranks != 0) {
    throw std::invalid_argument(
        fmt::format("{} '{}': {} is {}: give a positive multiple of the tensor-parallel world "
                    "size {}",
                    kind, layer, dimension, whole, ranks));
  }
  return whole / ranks;
}

void check_input(const char* kind, const LinearOptions& options, const Tensor& x, std::int64_t cols) {
  if (!x) throw std::invalid_argument(fmt::format("{} '{}': the input is an empty handle", kind, options.name));
  if (x.shape().cols == cols && x.dtype() == options.dtype) return;
  throw std::invalid_argument(fmt::format("{} '{}': the input '{}' is {} {}, not M x {} {}", kind, options.name,
                                          x.name(), x.shape().str(), to_string(x.dtype()), cols,
                                          to_string(options.dtype)));
}

/// Writes the part of `whole` that begins at (row, col).
void load_part(Tensor tensor, const WeightPattern& whole, std::int64_t row, std::int64_t col) {
  const Shape shape = tensor.shape();
  std::vector<std::uint8_t> bytes(tensor.bytes());
  std::size_t i = 0;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t c = 0; c < shape.cols; ++c)
      store_element(bytes.data(), tensor.dtype(), i++, whole(row + r, col + c));
  }
  tensor.write_bytes(bytes);
}

void check_bias(const char* kind, const LinearOptions& options) {
  if (!options.bias) throw std::logic_error(fmt::format("{} '{}' has no bias", kind, options.name));
}

constexpr const char* kColumn = "ColumnParallelLinear";
constexpr const char* kRow = "RowParallelLinear";
}  // namespace

DPPolicy LinearPlacement::split() {
  DPPolicy policy;
  policy.cube = CubeSplit::column_wise;
  policy.pe = PeSplit::column_wise;
  return policy;
}

ColumnParallelLinear::ColumnParallelLinear(const ParallelState& state, std::int64_t in, std::int64_t out,
                                           LinearOptions options, bool gather_output)
    : state_(state), in_(in), options_(std::move(options)), gather_output_(gather_output) {
  share(kColumn, options_.name, "in", in, 1);
  const std::int64_t own = share(kColumn, options_.name, "out", out, state_.tensor_model_parallel_world_size());
  Context& context = state_.context();
  weight_ = context.zeros({in, own}, options_.dtype, options_.placement.weight, options_.name + ".weight");
  if (options_.bias) {
    bias_ = context.zeros({1, own}, options_.dtype, options_.placement.bias, options_.name + ".bias");
  }
}

void ColumnParallelLinear::load_weight(const WeightPattern& whole) {
  load_part(weight_, whole, 0, state_.tensor_model_parallel_rank() * weight_.shape().cols);
}

void ColumnParallelLinear::load_bias(const WeightPattern& whole) {
  check_bias(kColumn, options_);
  load_part(bias_, whole, 0, state_.tensor_model_parallel_rank() * bias_.shape().cols);
}

Tensor ColumnParallelLinear::forward(const Tensor& input) const {
  check_input(kColumn, options_, input, in_);
  Context& context = state_.context();
  const Tensor x = copy_to_region(state_, input);
  Tensor y = context.empty({x.shape().rows, weight_.shape().cols}, options_.dtype, options_.placement.output,
                           options_.name + ".output");
  context.wait(gemm(context, options_.name, {x, weight_, bias_, y, options_.activation}));
  if (!gather_output_) return y;
  return gather_from_region(state_, y, options_.placement.output, options_.name + ".gathered");
}

RowParallelLinear::RowParallelLinear(const ParallelState& state, std::int64_t in, std::int64_t out,
                                     LinearOptions options, bool input_is_parallel)
    : state_(state), in_(in), out_(out), options_(std::move(options)), input_is_parallel_(input_is_parallel) {
  const std::int64_t own = share(kRow, options_.name, "in", in, state_.tensor_model_parallel_world_size());
  share(kRow, options_.name, "out", out, 1);
  Context& context = state_.context();
  weight_ = context.zeros({own, out}, options_.dtype, options_.placement.weight, options_.name + ".weight");
  if (options_.bias) {
    bias_ = context.zeros({1, out}, options_.dtype, options_.placement.bias, options_.name + ".bias");
  }
}

void RowParallelLinear::load_weight(const WeightPattern& whole) {
  load_part(weight_, whole, state_.tensor_model_parallel_rank() * weight_.shape().rows, 0);
}

void RowParallelLinear::load_bias(const WeightPattern& whole) {
  check_bias(kRow, options_);
  load_part(bias_, whole, 0, 0);
}

Tensor RowParallelLinear::forward(const Tensor& input) const {
  check_input(kRow, options_, input, input_is_parallel_ ? weight_.shape().rows : in_);
  Context& context = state_.context();
  const Tensor x = input_is_parallel_
                       ? input
                       : scatter_to_region(state_, input, options_.placement.input, options_.name + ".scattered");
  Tensor y =
      context.empty({x.shape().rows, out_}, options_.dtype, options_.placement.output, options_.name + ".output");
  context.wait(gemm(context, options_.name, {x, weight_, Tensor(), y, Activation::none}));
  reduce_from_region(state_, y);
  if (!bias_ && options_.activation == Activation::none) return y;
  context.wait(add_bias(context, options_.name + ".bias", y, bias_, options_.activation));
  return y;
}

}  // namespace kernbench::tp
