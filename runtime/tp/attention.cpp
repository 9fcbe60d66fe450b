#include "runtime/tp/attention.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "runtime/tp/attention_kernels.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/pass.h"

namespace kernbench::tp {

namespace {
/// Query heads of a rank. Throws std::invalid_argument naming layer, dimension and world size.
std::int64_t heads_of_rank(const AttentionOptions& options, int ranks) {
  if (options.heads >= 1 && options.heads % ranks == 0) return options.heads / ranks;
  throw std::invalid_argument(
      fmt::format("SelfAttention '{}': heads is {}: give a positive multiple of the tensor-parallel world size {}",
                  options.name, options.heads, ranks));
}

/// Key/value heads of a rank; where there are fewer than ranks, ranks one behind the other have the same one.
std::int64_t kv_heads_of_rank(const AttentionOptions& options, int ranks) {
  if (options.kv_heads >= 1 && options.kv_heads % ranks == 0) return options.kv_heads / ranks;
  if (options.kv_heads >= 1 && ranks % options.kv_heads == 0) return 1;
  throw std::invalid_argument(fmt::format(
      "SelfAttention '{}': kv heads is {}: give a multiple or a divisor of the tensor-parallel world size {}",
      options.name, options.kv_heads, ranks));
}

LinearOptions projection(const AttentionOptions& options, const char* suffix) {
  LinearOptions linear;
  linear.name = options.name + suffix;
  linear.dtype = options.dtype;
  linear.bias = options.bias;
  linear.placement = options.placement;
  linear.placement.many_over_cubes = true;
  linear.sequence_parallel = options.sequence_parallel;
  return linear;
}
}  // namespace

SelfAttention::SelfAttention(const ParallelState& state, std::int64_t width, AttentionOptions options)
    : state_(state), width_(width), options_(std::move(options)) {
  const int ranks = state_.tensor_model_parallel_world_size();
  own_heads_ = heads_of_rank(options_, ranks);
  own_kv_heads_ = kv_heads_of_rank(options_, ranks);
  if (options_.heads % options_.kv_heads != 0) {
    throw std::invalid_argument(fmt::format("SelfAttention '{}': heads is {}: give a multiple of the {} kv heads",
                                            options_.name, options_.heads, options_.kv_heads));
  }
  if (options_.head_dim < 1) {
    throw std::invalid_argument(
        fmt::format("SelfAttention '{}': head dim is {}: give 1 or more", options_.name, options_.head_dim));
  }
  LinearOptions qkv = projection(options_, ".qkv");
  qkv_.emplace(state_, width_, own_columns() * ranks, qkv);
  LinearOptions out = projection(options_, ".out");
  out.overlap_chunks = options_.overlap_chunks;
  out_.emplace(state_, options_.heads * options_.head_dim, width_, out);
}

/// The ranks' [q heads | k heads | v heads] side by side, as the columns of the fused projection stand.
WeightPattern SelfAttention::fused(const WeightPattern& q, const WeightPattern& k, const WeightPattern& v) const {
  const std::int64_t own = own_columns(), queries = own_heads_ * options_.head_dim,
                     keys = own_kv_heads_ * options_.head_dim, kv_heads = options_.kv_heads,
                     head_dim = options_.head_dim, ranks = state_.tensor_model_parallel_world_size();
  return [=](std::int64_t row, std::int64_t col) {
    const std::int64_t rank = col / own, within = col % own, first = rank * kv_heads / ranks * head_dim;
    if (within < queries) return q(row, rank * queries + within);
    if (within < queries + keys) return k(row, first + within - queries);
    return v(row, first + within - queries - keys);
  };
}

void SelfAttention::load_weights(const WeightPattern& q, const WeightPattern& k, const WeightPattern& v,
                                 const WeightPattern& out) {
  qkv_->load_weight(fused(q, k, v));
  out_->load_weight(out);
}

void SelfAttention::load_biases(const WeightPattern& q, const WeightPattern& k, const WeightPattern& v,
                                const WeightPattern& out) {
  qkv_->load_bias(fused(q, k, v));
  out_->load_bias(out);
}

int SelfAttention::row_shares() const {
  return options_.sequence_parallel ? state_.tensor_model_parallel_world_size() : 1;
}

KvCache SelfAttention::cache(std::int64_t batch, std::int64_t positions) const {
  KvCacheOptions options;
  options.name = options_.name;
  options.dtype = options_.dtype;
  options.batch = batch;
  options.heads = own_kv_heads_;
  options.head_dim = options_.head_dim;
  options.positions = positions;
  options.page = options_.page;
  return KvCache(state_.context(), options);
}

AttentionTensors SelfAttention::place(const KvCache& cache, std::int64_t length) const {
  if (length < 1) {
    throw std::invalid_argument(fmt::format("SelfAttention '{}': length is {}: give 1 or more", options_.name, length));
  }
  Context& context = state_.context();
  const std::int64_t rows = cache.options().batch * length, group = own_heads_ / own_kv_heads_;
  AttentionTensors tensors;
  tensors.qkv = qkv_->place(rows);
  tensors.queries =
      context.empty({rows * own_heads_, options_.head_dim}, options_.dtype, dense_rows(), options_.name + ".queries");
  tensors.context =
      context.empty({rows, own_heads_ * options_.head_dim}, options_.dtype, dense_rows(), options_.name + ".context");
  if (splits_cache(cache.layout(), length)) {
    const std::int64_t pes = cache.layout().pes;
    const DType wide = compute_type(options_.dtype);
    tensors.partial = context.empty({pes * group, options_.head_dim}, wide, dense_rows(), options_.name + ".partial");
    tensors.numbers = context.empty({2 * pes, group}, wide, dense_rows(), options_.name + ".numbers");
  }
  tensors.output = out_->place(rows);
  return tensors;
}

void SelfAttention::prepare(const Tensor& x, const AttentionTensors& tensors) const {
  qkv_->prepare(x, tensors.qkv);
  out_->prepare(tensors.context, tensors.output);
  if (!tensors.partial) state_.context().prepare_cube_queues(tensors.context.sip());
}

Tensor SelfAttention::forward(const Tensor& x, KvCache& cache, const RotaryTable& rotary) const {
  const std::int64_t batch = cache.options().batch, rows = x ? x.shape().rows * row_shares() : 0;
  if (!x || rows % batch != 0) {
    throw std::invalid_argument(fmt::format("SelfAttention '{}': the input is {}, not the rows of {} sequences",
                                            options_.name, x ? x.shape().str() : "an empty handle", batch));
  }
  return forward(x, cache, rotary, place(cache, rows / batch));
}

Tensor SelfAttention::forward(const Tensor& x, KvCache& cache, const RotaryTable& rotary,
                              const AttentionTensors& tensors) const {
  const KvCacheOptions& kept = cache.options();
  if (kept.heads != own_kv_heads_ || kept.head_dim != options_.head_dim || kept.dtype != options_.dtype) {
    throw std::invalid_argument(fmt::format(
        "SelfAttention '{}': the cache has {} heads of {} {}, the layer {} of {} {}", options_.name, kept.heads,
        kept.head_dim, to_string(kept.dtype), own_kv_heads_, options_.head_dim, to_string(options_.dtype)));
  }
  const std::int64_t rows = tensors.context.shape().rows;
  const Shape own{rows / row_shares(), width_};
  if (!x || x.shape() != own) {
    throw std::invalid_argument(fmt::format("SelfAttention '{}': the input is {}, the tensors are for {}",
                                            options_.name, x ? x.shape().str() : "an empty handle", own.str()));
  }
  Pass pass(state_);
  core(project(x, tensors), cache, rotary, tensors);
  Tensor result = output(tensors);
  pass.end();
  return result;
}

Tensor SelfAttention::project(const Tensor& x, const AttentionTensors& tensors) const {
  return qkv_->forward(x, tensors.qkv);
}

void SelfAttention::core(const Tensor& qkv, KvCache& cache, const RotaryTable& rotary,
                         const AttentionTensors& tensors) const {
  Context& context = state_.context();
  const std::int64_t length = tensors.context.shape().rows / cache.options().batch;
  AttentionOperands operands;
  operands.past = cache.append(length);
  operands.layout = {own_kv_heads_, own_heads_ / own_kv_heads_, length, 1};
  operands.layout.tile = query_tile(context.map(), cache, operands.layout.group, length);
  operands.queries = tensors.queries;
  operands.context = tensors.context;
  operands.partial = tensors.partial;
  operands.numbers = tensors.numbers;
  Pass pass(state_);
  pass.add(rotate_and_store(context, options_.name + ".rotary", qkv, tensors.queries, operands.layout, cache, rotary,
                            operands.past));
  pass.add(attend(context, options_.name + ".scores", operands, cache));
  pass.end();
}

Tensor SelfAttention::output(const AttentionTensors& tensors) const {
  return out_->forward(tensors.context, tensors.output);
}

}  // namespace kernbench::tp
