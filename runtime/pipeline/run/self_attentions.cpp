#include "runtime/pipeline/run/self_attentions.h"

#include "runtime/tp/own_shard.h"

namespace kernbench::pipeline {

void SelfAttentions::place_cache(const Step& step, const std::string& name) {
  const SelfAttentionCall& call = step.self_attention;
  tp::KvCacheOptions options;
  options.name = name;
  options.dtype = call.dtype;
  options.batch = call.batch;
  options.heads = call.kv_heads;
  options.head_dim = call.head_dim;
  options.positions = call.length;
  caches_.emplace(&step, tp::KvCache(context_, options));
  first_.emplace(step.out, &step);
}

void SelfAttentions::place_queries(int buffer) {
  const auto first = first_.find(buffer);
  if (first == first_.end()) return;
  const SelfAttentionCall& call = first->second->self_attention;
  const tp::KvCache& cache = caches_.at(first->second);
  const std::int64_t group = call.heads / call.kv_heads;
  tp::AttentionOperands& operands = operands_[buffer];
  operands.layout = {call.kv_heads, group, call.length, 1};
  operands.layout.tile = tp::query_tile(context_.map(), cache, group, call.length);
  operands.queries = context_.empty({call.batch * call.length * call.heads, call.head_dim}, call.dtype,
                                    tp::dense_rows(), cache.options().name + ".queries");
}

void SelfAttentions::place_partial(int buffer, const Tensor& result) {
  const auto first = first_.find(buffer);
  if (first == first_.end()) return;
  const SelfAttentionCall& call = first->second->self_attention;
  const tp::KvCache& cache = caches_.at(first->second);
  tp::AttentionOperands& operands = operands_.at(buffer);
  operands.context = result;
  if (!tp::splits_cache(cache.layout(), call.length)) return;
  const std::int64_t pes = cache.layout().pes, group = call.heads / call.kv_heads;
  const DType wide = tp::compute_type(call.dtype);
  const std::string& name = cache.options().name;
  operands.partial = context_.empty({pes * group, call.head_dim}, wide, tp::dense_rows(), name + ".partial");
  operands.numbers = context_.empty({2 * pes, group}, wide, tp::dense_rows(), name + ".numbers");
}

void SelfAttentions::prepare(const Step& step) {
  const tp::AttentionOperands& operands = operands_.at(step.out);
  if (!operands.partial) context_.prepare_cube_queues(operands.queries.sip());
}

std::vector<Handle> SelfAttentions::attend(const Step& step, const Tensor& qkv, const Tensor& table) {
  const tp::AttentionOperands& operands = operands_.at(step.out);
  tp::KvCache& cache = caches_.at(&step);
  const tp::RotaryTable rotary = table ? tp::RotaryTable(table) : tp::RotaryTable();
  std::vector<Handle> launches{
      tp::rotate_and_store(context_, step.name + ".rotary", qkv, operands.queries, operands.layout, cache, rotary, 0)};
  for (const Handle& launch : tp::attend(context_, step.name, operands, cache)) launches.push_back(launch);
  return launches;
}

}  // namespace kernbench::pipeline
