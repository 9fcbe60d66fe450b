#include <algorithm>

#include "runtime/pipeline/run/plan.h"
#include "runtime/pipeline/run/self_attention.h"
#include "runtime/tp/own_shard.h"

/// What layers of a language model are made of, on the kernels that runtime/tp has for them: the same launches, and the
/// same bits, as a direct run.
namespace kernbench::pipeline {

namespace {

/// Table of both, a copy in each cube: cosines in the first half of a row, sines behind. Nothing if the halves of one
/// differ.
std::shared_ptr<const HostTensor> rotary_table(const HostTensor& cosines, const HostTensor& sines) {
  auto made = std::make_shared<HostTensor>(cosines);
  const auto dim = static_cast<std::size_t>(cosines.shape.back()), half = dim / 2;
  for (std::size_t i = 0; i < static_cast<std::size_t>(cosines.count()); ++i) {
    const std::size_t row = i / dim * dim, within = i % dim;
    for (const HostTensor* table : {&cosines, &sines}) {
      if (load_element(table->bytes.data(), DType::f32, i) !=
          load_element(table->bytes.data(), DType::f32, row + within % half))
        return nullptr;
    }
    store_element(made->bytes.data(), DType::f32, i,
                  within < half ? load_element(cosines.bytes.data(), DType::f32, i)
                                : load_element(sines.bytes.data(), DType::f32, i));
  }
  return made;
}

}  // namespace

/// Finds self-attentions of decoder layers: nodes between projection and result are done with the latter.
void Lowering::find_layers() {
  for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
    if (graph_->nodes[i].op != Op::attention) continue;
    auto match = match_self_attention(*graph_, i);
    if (!match) continue;
    SelfAttention made;
    made.match = *match;
    if (match->cosines) {
      const auto table = [&](std::size_t input) {
        return slot_.values.at(task_->inputs.value[graph_->nodes[input].number_of].value);
      };
      const Value cosines = table(*match->cosines), sines = table(*match->sines);
      if (cosines.constant == nullptr || sines.constant == nullptr) continue;
      // One table serves all layers of a slot.
      auto& both = slot_.rotary[{cosines.constant.get(), sines.constant.get()}];
      if (both == nullptr) both = rotary_table(*cosines.constant, *sines.constant);
      if (both == nullptr) continue;
      made.table = cosines;
      made.table.constant = both;
      made.table.type = {{match->length, match->head_dim}, DType::f32};
    }
    for (const std::size_t absorbed : match->absorbed) done_[absorbed] = true;
    attentions_[match->result] = std::move(made);
  }
}

bool Lowering::lower_self_attention(std::size_t number) {
  const auto found = attentions_.find(number);
  if (found == attentions_.end()) return false;
  const auto& [match, table] = found->second;
  const std::int64_t rows = match.batch * match.length;
  const int qkv =
      shaped(values_[match.projection], {rows, graph_->nodes[match.projection].type.shape.back()}, split(), *steps_);
  int tables = -1;
  if (table.constant != nullptr)
    tables = placed(table, DPPolicy().cube(CubeSplit::replicate).pe(PeSplit::row_wise), *steps_);
  const int out = result(number, dense());
  Step& step = add_step(Step::Kind::self_attention, number, {qkv, tables}, out);
  step.self_attention = {match.batch,    match.length,   match.heads,
                         match.kv_heads, match.head_dim, graph_->nodes[number].type.dtype};
  return true;
}

/// A norm of whole rows with a weight: its kernel reads any placement.
bool Lowering::is_layer_norm(std::size_t number) const {
  const Node& node = graph_->nodes[number];
  return node.op == Op::norm && node.has_weight && node.dims.front() == 1 && is_float(node.type.dtype) &&
         size_of(node.type.dtype) > 1;
}

int Lowering::norm_factor(std::size_t number, bool has, std::size_t input) {
  if (!has) return -1;
  const std::size_t factor = graph_->nodes[number].inputs[input];
  if (!done_[factor]) lower_node(factor);
  return shaped(values_[factor], {1, graph_->nodes[number].type.shape.back()}, DPPolicy(), *steps_);
}

void Lowering::lower_norm(std::size_t number) {
  const Node& node = graph_->nodes[number];
  const Shape shape = fold_shape(node.type.shape);
  const int x = shaped(values_[node.inputs[0]], shape, dense(), *steps_);
  const int weight = norm_factor(number, true, 1), bias = norm_factor(number, node.has_bias, 2);
  const int out = result(number, tp::rows_for_gemm(shape.rows), true);
  Step& step = add_step(Step::Kind::norm, number, {x, weight, bias, -1}, out);
  step.row.op = node.rms ? RowOp::rms_norm : RowOp::layer_norm;
  step.row.epsilon = node.epsilon;
}

/// A sum that a norm reads: both in one pass.
bool Lowering::lower_sum_and_norm(std::size_t number) {
  const Node& sum = graph_->nodes[number];
  if (sum.op != Op::binary || sum.binary != Binary::add || sum.inputs.size() != 2) return false;
  std::size_t norm = number + 1;
  while (norm < graph_->nodes.size() && !(is_layer_norm(norm) && graph_->nodes[norm].inputs[0] == number)) ++norm;
  if (norm == graph_->nodes.size()) return false;
  for (const std::size_t input : sum.inputs) {
    if (graph_->nodes[input].type != sum.type || values_[input].buffer < 0) return false;
  }
  for (std::size_t i = 1; i < graph_->nodes[norm].inputs.size(); ++i) {
    const std::size_t factor = graph_->nodes[norm].inputs[i];
    if (!done_[factor] && graph_->nodes[factor].op != Op::input) return false;  // it may come of the sum
  }
  const Node& node = graph_->nodes[norm];
  const Shape shape = fold_shape(sum.type.shape);
  const DPPolicy policy = tp::rows_for_gemm(shape.rows);
  const int a = shaped(values_[sum.inputs[0]], shape, dense(), *steps_),
            b = shaped(values_[sum.inputs[1]], shape, dense(), *steps_);
  const int weight = norm_factor(norm, true, 1), bias = norm_factor(norm, node.has_bias, 2);
  for (const std::size_t made : {number, norm}) {
    values_[made].type = graph_->nodes[made].type;
    values_[made].buffer = add_buffer(task_->name + "." + graph_->nodes[made].name, sum.type, policy);
    done_[made] = true;
  }
  Step& step = add_step(Step::Kind::norm, norm, {a, weight, bias, b}, values_[norm].buffer);
  step.second_out = values_[number].buffer;
  step.row.op = node.rms ? RowOp::rms_norm : RowOp::layer_norm;
  step.row.epsilon = node.epsilon;
  return true;
}

}  // namespace kernbench::pipeline
