#include "runtime/tp/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/tp/gemm.h"
#include "runtime/tp/load_part.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/pass.h"
#include "runtime/tp/pointwise.h"
#include "runtime/tp/regions.h"

namespace kernbench::tp {

namespace {
/// What each rank owns of `whole`. Throws std::invalid_argument naming layer, dimension and world size.
std::int64_t share(const char* kind, const std::string& layer, const char* dimension, std::int64_t whole, int ranks) {
  if (whole < 1 || whole % ranks != 0) {
    throw std::invalid_argument(
        fmt::format("{} '{}': {} is {}: give a positive multiple of the tensor-parallel world size {}", kind, layer,
                    dimension, whole, ranks));
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

/// A tensor of ForwardTensors is what place() made.
void check_placed(const char* kind, const LinearOptions& options, const char* what, const Tensor& tensor, Shape shape) {
  if (tensor && tensor.shape() == shape && tensor.dtype() == options.dtype) return;
  throw std::invalid_argument(
      fmt::format("{} '{}': {} is {}, not {} {}: give what place({}) returns", kind, options.name, what,
                  tensor ? tensor.shape().str() + " " + to_string(tensor.dtype()) : std::string("an empty handle"),
                  shape.str(), to_string(options.dtype), shape.rows));
}

void check_bias(const char* kind, const LinearOptions& options) {
  if (!options.bias) throw std::logic_error(fmt::format("{} '{}' has no bias", kind, options.name));
}

constexpr const char* kColumn = "ColumnParallelLinear";
constexpr const char* kRow = "RowParallelLinear";
}  // namespace

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

DPPolicy LinearPlacement::packed() { return DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::row_wise); }

DPPolicy LinearPlacement::of_results(std::int64_t rows, const DPPolicy& over_cubes) const {
  return many_over_cubes && many_rows(rows) && to_string(weight) == to_string(packed()) ? over_cubes : output;
}

DPPolicy LinearPlacement::split() { return DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise); }

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

ForwardTensors ColumnParallelLinear::place(std::int64_t rows) const {
  Context& context = state_.context();
  const auto make = [&](std::int64_t cols, const char* suffix) {
    return context.empty({rows, cols}, options_.dtype, options_.placement.of_results(rows, rows_over_cubes()),
                         options_.name + suffix);
  };
  const std::int64_t own = weight_.shape().cols;
  ForwardTensors tensors;
  if (options_.sequence_parallel) {
    tensors.gathered = context.empty({rows, in_}, options_.dtype, rows_for_gemm(rows), options_.name + ".rows");
  }
  if (!gather_output_) {
    tensors.output = make(own, ".output");
    return tensors;
  }
  tensors.partial = make(own, ".output");
  tensors.output = make(own * state_.tensor_model_parallel_world_size(), ".gathered");
  return tensors;
}

std::int64_t ColumnParallelLinear::rows_of(const Tensor& x) const {
  return x.shape().rows * (options_.sequence_parallel ? state_.tensor_model_parallel_world_size() : 1);
}

void ColumnParallelLinear::prepare(const Tensor& x, const ForwardTensors& tensors) const {
  if (options_.sequence_parallel) prepare_gather_from_sequence_region(state_, x, tensors.gathered);
  prepare_gemm(state_.context(), options_.name,
               {options_.sequence_parallel ? tensors.gathered : x, weight_, bias_,
                gather_output_ ? tensors.partial : tensors.output, options_.activation},
               state_.gemm_plans());
  if (gather_output_) prepare_gather_from_region(state_, tensors.partial, tensors.output);
}

Tensor ColumnParallelLinear::forward(const Tensor& x) const {
  check_input(kColumn, options_, x, in_);
  return forward(x, place(rows_of(x)));
}

Tensor ColumnParallelLinear::forward(const Tensor& input, const ForwardTensors& tensors) const {
  check_input(kColumn, options_, input, in_);
  Pass pass(state_);
  const std::int64_t rows = rows_of(input);
  Tensor x = copy_to_region(state_, input);
  if (options_.sequence_parallel) {
    check_placed(kColumn, options_, "gathered", tensors.gathered, {rows, in_});
    gather_from_sequence_region(state_, input, tensors.gathered);
    x = tensors.gathered;
  }
  const std::int64_t own = weight_.shape().cols;
  const Tensor& y = gather_output_ ? tensors.partial : tensors.output;
  check_placed(kColumn, options_, gather_output_ ? "partial" : "output", y, {rows, own});
  if (gather_output_) {
    check_placed(kColumn, options_, "output", tensors.output, {rows, own * state_.tensor_model_parallel_world_size()});
  }
  pass.add(gemm(state_.context(), options_.name, {x, weight_, bias_, y, options_.activation}, state_.gemm_plans()));
  if (gather_output_) gather_from_region(state_, y, tensors.output);
  pass.end();
  return tensors.output;
}

RowParallelLinear::RowParallelLinear(const ParallelState& state, std::int64_t in, std::int64_t out,
                                     LinearOptions options, bool input_is_parallel)
    : state_(state), in_(in), out_(out), options_(std::move(options)), input_is_parallel_(input_is_parallel) {
  const std::int64_t own = share(kRow, options_.name, "in", in, state_.tensor_model_parallel_world_size());
  share(kRow, options_.name, "out", out, 1);
  if (options_.overlap_chunks < 1 || options_.overlap_chunks > kMostOverlapChunks) {
    throw std::invalid_argument(fmt::format("{} '{}': overlap chunks is {}: give 1 to {}", kRow, options_.name,
                                            options_.overlap_chunks, kMostOverlapChunks));
  }
  if (overlaps() && options_.sequence_parallel) {
    throw std::invalid_argument(
        fmt::format("{} '{}': overlap chunks is {}, but a sequence-parallel layer has no all-reduce: give 1", kRow,
                    options_.name, options_.overlap_chunks));
  }
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

ForwardTensors RowParallelLinear::place(std::int64_t rows) const {
  Context& context = state_.context();
  ForwardTensors tensors;
  if (!input_is_parallel_) {
    tensors.scattered = context.empty({rows, weight_.shape().rows}, options_.dtype, options_.placement.input,
                                      options_.name + ".scattered");
  }
  const auto make = [&](Shape shape, const DPPolicy& policy, const char* suffix) {
    return context.empty(shape, options_.dtype, policy, options_.name + suffix);
  };
  const std::int64_t of_chunk = chunk_rows(rows);
  const DPPolicy results = options_.placement.of_results(rows, dense_rows());
  for (std::int64_t first = 0; overlaps() && first < rows; first += of_chunk) {
    tensors.chunks.push_back(make({std::min(of_chunk, rows - first), out_}, options_.placement.output, ".chunk"));
  }
  if (!options_.sequence_parallel) {
    tensors.output = make({rows, out_}, results, ".output");
    return tensors;
  }
  tensors.partial = make({rows, out_}, results, ".partial");
  tensors.output = make(output_shape(rows), options_.placement.sequence, ".output");
  return tensors;
}

Shape RowParallelLinear::output_shape(std::int64_t rows) const {
  if (!options_.sequence_parallel) return {rows, out_};
  return {share(kRow, options_.name, "rows", rows, state_.tensor_model_parallel_world_size()), out_};
}

/// Whole rows of the array, where a chunk has as many: none is padded but the last. Of an array without overrides: all
/// ranks need the same chunks.
std::int64_t RowParallelLinear::chunk_rows(std::int64_t rows) const {
  const std::int64_t least = (rows + options_.overlap_chunks - 1) / options_.overlap_chunks;
  const std::int64_t unit = state_.context().map().engines.gemm_rows;
  return least < unit ? least : (least + unit - 1) / unit * unit;
}

void RowParallelLinear::prepare(const Tensor& input, const ForwardTensors& tensors) const {
  const Tensor& x = input_is_parallel_ ? input : tensors.scattered;
  std::int64_t first = 0;
  for (const Tensor& chunk : tensors.chunks) {
    prepare_gemm(state_.context(), options_.name, {x, weight_, Tensor(), chunk, Activation::none, first},
                 state_.gemm_plans(), state_.work_stream());
    state_.context().prepare_all_reduce(chunk, chunk, ReduceOp::sum, state_.tensor_model_parallel_group());
    first += chunk.shape().rows;
  }
  if (overlaps()) return;
  prepare_gemm(state_.context(), options_.name,
               {x, weight_, Tensor(), options_.sequence_parallel ? tensors.partial : tensors.output, Activation::none},
               state_.gemm_plans());
  if (options_.sequence_parallel) {
    prepare_reduce_scatter_to_sequence_region(state_, tensors.partial, tensors.output);
    return;
  }
  state_.context().prepare_all_reduce(tensors.output, tensors.output, ReduceOp::sum,
                                      state_.tensor_model_parallel_group());
}

Tensor RowParallelLinear::forward(const Tensor& x) const {
  check_input(kRow, options_, x, input_is_parallel_ ? weight_.shape().rows : in_);
  return forward(x, place(x.shape().rows));
}

Tensor RowParallelLinear::forward(const Tensor& input, const ForwardTensors& tensors) const {
  check_input(kRow, options_, input, input_is_parallel_ ? weight_.shape().rows : in_);
  Context& context = state_.context();
  Pass pass(state_);
  const std::int64_t rows = input.shape().rows;
  check_placed(kRow, options_, "output", tensors.output, output_shape(rows));
  const bool sequence = options_.sequence_parallel;
  if (sequence) check_placed(kRow, options_, "partial", tensors.partial, {rows, out_});
  if (!input_is_parallel_) {
    check_placed(kRow, options_, "scattered", tensors.scattered, {rows, weight_.shape().rows});
    scatter_to_region(state_, input, tensors.scattered);
  }
  const Tensor &x = input_is_parallel_ ? input : tensors.scattered, &y = tensors.output;
  if (overlaps()) {
    pass.wait();  // its GEMMs are another stream's
    overlapped(x, tensors);
    return y;
  }
  const Tensor& partial = sequence ? tensors.partial : y;
  pass.add(gemm(context, options_.name, {x, weight_, Tensor(), partial, Activation::none}, state_.gemm_plans()));
  if (sequence) {
    reduce_scatter_to_sequence_region(state_, partial, y);
  } else {
    reduce_from_region(state_, y);
  }
  if (bias_ || options_.activation != Activation::none)
    pass.add(add_bias(context, options_.name + ".bias", y, bias_, options_.activation));
  pass.end();
  return y;
}

/// The next chunk's GEMM is submitted before the one before is waited for, so that it begins when that ends.
void RowParallelLinear::overlapped(const Tensor& x, const ForwardTensors& tensors) const {
  Context& context = state_.context();
  const std::int64_t rows = x.shape().rows, of_chunk = chunk_rows(rows);
  check_placed(kRow, options_, "chunks", tensors.chunks.empty() ? Tensor() : tensors.chunks.front(),
               {std::min(of_chunk, rows), out_});
  std::vector<Handle> products, sums;
  const auto multiply_next = [&] {
    const std::size_t chunk = products.size();
    if (chunk == tensors.chunks.size()) return;
    const auto first = static_cast<std::int64_t>(chunk) * of_chunk;
    products.push_back(gemm(context, options_.name,
                            {x, weight_, Tensor(), tensors.chunks[chunk], Activation::none, first}, state_.gemm_plans(),
                            state_.work_stream()));
  };
  multiply_next();
  for (std::size_t chunk = 0; chunk < tensors.chunks.size(); ++chunk) {
    multiply_next();
    context.wait(products[chunk]);
    sums.push_back(
        context.all_reduce_async(tensors.chunks[chunk], ReduceOp::sum, state_.tensor_model_parallel_group()));
  }
  for (const Handle& sum : sums) context.wait(sum);
  context.wait(join_rows(context, options_.name + ".join", tensors.chunks, tensors.output, bias_, options_.activation));
}

}  // namespace kernbench::tp
