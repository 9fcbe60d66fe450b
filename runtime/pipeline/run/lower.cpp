#include <algorithm>

#include "runtime/pipeline/emit.h"
#include "runtime/pipeline/evaluate.h"
#include "runtime/pipeline/run/plan.h"

namespace kernbench::pipeline {

namespace {

using Sizes = std::vector<std::int64_t>;

/// The epilogue of a GEMM that an operation can be.
std::optional<Activation> epilogue_of(const Node& node) {
  if (node.op != Op::unary) return std::nullopt;
  switch (node.unary) {
    case Unary::relu:
      return Activation::relu;
    case Unary::gelu:
      return Activation::gelu;
    case Unary::silu:
      return Activation::silu;
    case Unary::tanh:
      return Activation::tanh;
    case Unary::sigmoid:
      return Activation::sigmoid;
    default:
      return std::nullopt;
  }
}

}  // namespace

void Lowering::lower(const SuperTask& task, const Graph& graph, std::vector<Step>& steps) {
  task_ = &task;
  graph_ = &graph;
  steps_ = &steps;
  values_.assign(graph.nodes.size(), Value());
  done_.assign(graph.nodes.size(), false);
  attentions_.clear();
  find_layers();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!done_[i]) lower_node(i);
  }
  place_outputs();
}

Step& Lowering::add_step(std::vector<Step>& steps, Step::Kind kind, std::string name, std::vector<int> in, int out) {
  Step& step = steps.emplace_back();
  step.kind = kind;
  step.name = std::move(name);
  step.in = std::move(in);
  step.out = out;
  return step;
}

Step& Lowering::add_step(Step::Kind kind, std::size_t number, std::vector<int> in, int out) {
  return add_step(*steps_, kind, task_->name + "." + graph_->nodes[number].name, std::move(in), out);
}

std::optional<std::size_t> Lowering::only_reader(std::size_t number) const {
  if (graph_->uses(number) != 1) return std::nullopt;
  for (std::size_t i = number + 1; i < graph_->nodes.size(); ++i) {
    const auto& inputs = graph_->nodes[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), number) != inputs.end()) return i;
  }
  return std::nullopt;
}

/// The shape as which a linear result is read in the end: views that follow cost nothing if it is placed so.
TensorType Lowering::final_type(std::size_t number) const {
  while (const auto reader = only_reader(number)) {
    if (graph_->nodes[*reader].op != Op::view) break;
    number = *reader;
  }
  return graph_->nodes[number].type;
}

int Lowering::result(std::size_t number, const DPPolicy& policy, bool anywhere) {
  Value& value = values_[number];
  value.type = graph_->nodes[number].type;
  DPPolicy chosen = policy;
  for (std::size_t i = 0; i < graph_->outputs.size() && anywhere; ++i) {
    const auto found = options_.placements.find(task_->outputs.value[i].value);
    if (graph_->outputs[i] == number && found != options_.placements.end()) chosen = found->second;
  }
  // What lies linear may be seen in another shape at no cost.
  const TensorType type = anywhere ? value.type : final_type(number);
  value.buffer = add_buffer(task_->name + "." + graph_->nodes[number].name, type, chosen);
  done_[number] = true;
  return value.buffer;
}

/// Outputs that the user wants elsewhere are copied there; a constant that is an output gets a place.
void Lowering::place_outputs() {
  for (std::size_t i = 0; i < graph_->outputs.size(); ++i) {
    Value& value = values_[graph_->outputs[i]];
    const std::string& name = task_->outputs.value[i].value;
    if (value.buffer < 0) value.buffer = linear(value, *steps_);
    value.constant.reset();
    const auto found = options_.placements.find(name);
    if (found != options_.placements.end() && to_string(buffer(value.buffer).policy) != to_string(found->second)) {
      const int from = shaped(value, fold_of(value.type.shape), DPPolicy(), *steps_);
      const int made = add_buffer(name + ".placed", value.type, found->second);
      add_step(Step::Kind::point, graph_->outputs[i], {from}, made);
      value.buffer = made;
    }
    slot_.values[name] = value;
  }
}

/// Movements of constants alone are done when they are loaded.
bool Lowering::fold(std::size_t number) {
  const Node& node = graph_->nodes[number];
  const bool moves = node.op == Op::view || node.op == Op::strided || node.op == Op::cast || node.op == Op::cat;
  std::vector<const HostTensor*> operands;
  for (const std::size_t input : node.inputs) {
    if (values_[input].constant == nullptr) return false;
    operands.push_back(values_[input].constant.get());
  }
  if (!moves || operands.empty()) return false;
  values_[number].type = node.type;
  values_[number].tensor = values_[node.inputs.front()].tensor;
  for (const std::size_t input : node.inputs)
    values_[number].tensor = std::min(values_[number].tensor, values_[input].tensor);
  values_[number].constant = std::make_shared<const HostTensor>(evaluate_node(*graph_, node, operands));
  return true;
}

void Lowering::lower_node(std::size_t number) {
  const Node& node = graph_->nodes[number];
  done_[number] = true;
  if (node.op == Op::input) {
    values_[number] = slot_.values.at(task_->inputs.value[node.number_of].value);
    return;
  }
  if (fold(number) || lower_self_attention(number) || lower_sum_and_norm(number)) return;
  switch (node.op) {
    case Op::input:
      return;
    case Op::view: {
      const Value& from = values_[node.inputs[0]];
      values_[number].type = node.type;
      const bool same = buffer(from.buffer).shape == fold_of(node.type.shape);
      values_[number].buffer = same ? from.buffer : linear(from, *steps_);
      return;
    }
    case Op::strided: {
      const int from = linear(values_[node.inputs[0]], *steps_);
      values_[number].type = node.type;
      values_[number].buffer = moved(task_->name + "." + node.name, from, node.type.shape, node.strides, node.offset,
                                     final_type(number), *steps_);
      return;
    }
    case Op::cat:
      return lower_cat(number);
    case Op::cast:
    case Op::unary:
    case Op::binary:
    case Op::where:
      return lower_points(number);
    case Op::reduce:
      return lower_reduce(number);
    case Op::norm:
      if (is_layer_norm(number)) return lower_norm(number);
      return lower_rows(number);
    case Op::softmax:
      return lower_rows(number);
    case Op::matmul:
      return graph_->nodes[node.inputs[1]].type.shape.size() == 2 ? lower_matmul(number) : lower_batches(number);
    case Op::embedding: {
      Value rows = values_[node.inputs[0]];
      if (rows.buffer >= 0) rows.buffer = linear(rows, *steps_);
      const int table = shaped(rows, {rows.type.shape[0], rows.type.shape[1]}, dense(), *steps_);
      const int indices = placed(values_[node.inputs[1]], DPPolicy(), *steps_);
      const int out = result(number, dense());
      add_step(Step::Kind::look_up, number, {table, indices}, out);
      return;
    }
    case Op::attention:
      return lower_attention(number);
  }
}

/// A sum of the product and what lies as its result will, or as a copy on each PE: the kernel reads it in one piece
/// with each block. A sum that a norm reads is the norm's.
bool Lowering::adds_residual(std::size_t sum, std::size_t other, std::size_t number) const {
  const TensorType& type = graph_->nodes[sum].type;
  const Value& value = values_[other];
  if (other >= number || graph_->nodes[other].type != type || value.buffer < 0) return false;
  for (std::size_t i = sum + 1; i < graph_->nodes.size(); ++i) {
    if (is_layer_norm(i) && graph_->nodes[i].inputs[0] == sum) return false;
  }
  const std::string policy = to_string(buffer(value.buffer).policy);
  const std::int64_t n = type.shape.back();
  return buffer(value.buffer).shape == Shape{type.count() / n, n} &&
         (policy == to_string(split()) || policy == to_string(DPPolicy()));
}

/// Bias, activation and residual that only this product is for.
Lowering::Fused Lowering::fuse(std::size_t number) const {
  Fused fused;
  fused.last = number;
  const std::int64_t width = graph_->nodes[number].type.shape.back();
  if (const auto reader = only_reader(number)) {
    const Node& node = graph_->nodes[*reader];
    if (node.op == Op::binary && node.binary == Binary::add && node.inputs.size() == 2 &&
        node.type == graph_->nodes[number].type) {
      const std::size_t other = node.inputs[0] == number ? node.inputs[1] : node.inputs[0];
      const TensorType& type = graph_->nodes[other].type;
      if (other < number && type.count() == width && type.shape.size() >= 1 && type.shape.back() == width) {
        fused.bias = other;
        fused.last = *reader;
        fused.absorbed.push_back(*reader);
      }
    }
  }
  if (const auto reader = only_reader(fused.last)) {
    if (const auto activation = epilogue_of(graph_->nodes[*reader])) {
      fused.activation = *activation;
      fused.last = *reader;
      fused.absorbed.push_back(*reader);
    }
  }
  if (const auto reader = only_reader(fused.last)) {
    const Node& node = graph_->nodes[*reader];
    if (node.op == Op::binary && node.binary == Binary::add && node.inputs.size() == 2) {
      const std::size_t other = node.inputs[0] == fused.last ? node.inputs[1] : node.inputs[0];
      if (adds_residual(*reader, other, number)) {
        fused.residual = other;
        fused.last = *reader;
        fused.absorbed.push_back(*reader);
      }
    }
  }
  return fused;
}

void Lowering::lower_matmul(std::size_t number) {
  const Node& node = graph_->nodes[number];
  const Value& a = values_[node.inputs[0]];
  Value b = values_[node.inputs[1]];
  if (node.transposed) {
    Node turn;
    turn.name = node.name + ".weight";
    turn.op = Op::strided;
    turn.type = {{b.type.shape[1], b.type.shape[0]}, b.type.dtype};
    turn.strides = {1, b.type.shape[1]};
    if (b.constant) {
      // One transposed copy serves all that read this constant.
      auto& turned = slot_.turned[b.constant.get()];
      if (turned == nullptr)
        turned = std::make_shared<const HostTensor>(evaluate_node(*graph_, turn, {b.constant.get()}));
      b.constant = turned;
      b.type = turn.type;
    } else {
      b.buffer = moved(task_->name + "." + turn.name, linear(b, *steps_), turn.type.shape, turn.strides, 0, turn.type,
                       *steps_);
      b.type = turn.type;
    }
  }
  const std::int64_t k = a.type.shape.back(), m = a.type.count() / k, n = node.type.shape.back();
  const Fused fused = fuse(number);
  const int left = shaped(a, {m, k}, DPPolicy(), *steps_), right = shaped(b, {k, n}, split(), *steps_);
  const int bias = fused.bias ? shaped(values_[*fused.bias], {1, n}, DPPolicy(), *steps_) : -1;
  for (const std::size_t absorbed : fused.absorbed) done_[absorbed] = true;
  const int out = result(fused.last, split(), true);
  const int residual = fused.residual ? values_[*fused.residual].buffer : -1;
  add_step(Step::Kind::gemm, number, {left, right, bias, residual}, out).activation = fused.activation;
}

void Lowering::lower_batches(std::size_t number) {
  const Node& node = graph_->nodes[number];
  Value b = values_[node.inputs[1]], a = values_[node.inputs[0]];
  if (node.transposed) throw std::logic_error("only matrices are transposed");
  ProductCall call;
  call.m = a.type.shape[a.type.shape.size() - 2];
  call.k = a.type.shape.back();
  call.n = node.type.shape.back();
  call.dtype = node.type.dtype;
  call.batch = count_of({node.type.shape.begin(), node.type.shape.end() - 2});
  const auto side = [&](Value& value, std::int64_t rows, std::int64_t cols, std::int64_t& step) {
    const Sizes own(value.type.shape.begin(), value.type.shape.end() - 2);
    if (count_of(own) != 1 && count_of(own) != call.batch) {
      Sizes shape(node.type.shape.begin(), node.type.shape.end() - 2);
      shape.push_back(rows);
      shape.push_back(cols);
      value = expanded(value, shape);
      step = rows * cols;
    } else {
      step = count_of(own) == 1 ? 0 : rows * cols;
    }
    return linear(value, *steps_);
  };
  const int left = side(a, call.m, call.k, call.a_step), right = side(b, call.k, call.n, call.b_step);
  const int out = result(number, dense());
  add_step(Step::Kind::product, number, {left, right}, out).product = call;
}

Value Lowering::expanded(const Value& value, const Sizes& shape) {
  const Sizes dense = dense_strides(value.type.shape);
  Sizes strides(shape.size(), 0);
  for (std::size_t i = 0; i < value.type.shape.size(); ++i) {
    const std::size_t at = shape.size() - value.type.shape.size() + i;
    if (value.type.shape[i] > 1) strides[at] = dense[i];
  }
  Value made;
  made.type = {shape, value.type.dtype};
  const int from = linear(value, *steps_);
  made.buffer = moved(buffer(from).name + ".expanded", from, shape, strides, 0, made.type, *steps_);
  return made;
}

int Lowering::rows_last(std::size_t number, const Sizes& last) {
  const Value& x = values_[graph_->nodes[number].inputs[0]];
  const int from = linear(x, *steps_);
  const auto ranks = static_cast<std::int64_t>(x.type.shape.size());
  Sizes order;
  for (const bool behind : {false, true}) {
    for (std::int64_t d = 0; d < ranks; ++d) {
      const bool is_last = std::find(last.begin(), last.end(), d) != last.end();
      if (is_last == behind) order.push_back(d);
    }
  }
  if (std::is_sorted(order.begin(), order.end())) return from;
  const Sizes dense = dense_strides(x.type.shape);
  TensorType type{{}, x.type.dtype};
  Sizes strides;
  for (const std::int64_t d : order) {
    type.shape.push_back(x.type.shape[static_cast<std::size_t>(d)]);
    strides.push_back(dense[static_cast<std::size_t>(d)]);
  }
  return moved(task_->name + "." + graph_->nodes[number].name + ".ordered", from, type.shape, strides, 0, type,
               *steps_);
}

void Lowering::lower_reduce(std::size_t number) {
  const Node& node = graph_->nodes[number];
  const Value x = values_[node.inputs[0]];
  RowCall call;
  call.op = node.reduction == Reduction::sum    ? RowOp::sum
            : node.reduction == Reduction::mean ? RowOp::mean
                                                : RowOp::amax;
  call.height = std::max<std::int64_t>(1, node.type.count());
  call.width = x.type.count() / call.height;
  call.dtype = node.type.dtype;
  const int from = rows_last(number, node.dims);
  const int out = result(number, dense());
  add_step(Step::Kind::rows, number, {from, -1, -1}, out).row = call;
}

void Lowering::lower_rows(std::size_t number) {
  const Node& node = graph_->nodes[number];
  RowCall call;
  call.dtype = node.type.dtype;
  if (node.op == Op::softmax) {
    call.op = RowOp::softmax;
    call.width = node.type.shape[static_cast<std::size_t>(node.dims.front())];
    call.height = node.type.count() / call.width;
    const int from = rows_last(number, node.dims);
    const auto last = static_cast<std::int64_t>(node.type.shape.size()) - 1;
    if (node.dims.front() == last) {
      const int out = result(number, dense());
      add_step(Step::Kind::rows, number, {from, -1, -1}, out).row = call;
      return;
    }
    const int soft =
        add_buffer(task_->name + "." + node.name + ".rows", {{call.height, call.width}, call.dtype}, dense());
    add_step(Step::Kind::rows, number, {from, -1, -1}, soft).row = call;
    // Back to where the dimension was.
    const auto at = static_cast<std::size_t>(node.dims.front());
    Sizes order = node.type.shape;
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
    order.push_back(call.width);
    Sizes strides = dense_strides(order);
    strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(at), 1);
    strides.pop_back();
    values_[number].type = node.type;
    values_[number].buffer =
        moved(task_->name + "." + node.name, soft, node.type.shape, strides, 0, node.type, *steps_);
    return;
  }
  call.op = node.rms ? RowOp::rms_norm : RowOp::layer_norm;
  call.epsilon = node.epsilon;
  call.width = count_of({node.type.shape.end() - node.dims.front(), node.type.shape.end()});
  call.height = node.type.count() / call.width;
  const int from = linear(values_[node.inputs[0]], *steps_);
  const auto factor = [&](bool has, std::size_t input) {
    return has ? shaped(values_[node.inputs[input]], {1, call.width}, DPPolicy(), *steps_) : -1;
  };
  const int weight = factor(node.has_weight, 1), bias = factor(node.has_bias, node.has_weight ? 2 : 1);
  const int out = result(number, dense());
  add_step(Step::Kind::rows, number, {from, weight, bias}, out).row = call;
}

void Lowering::lower_cat(std::size_t number) {
  const Node& node = graph_->nodes[number];
  std::vector<int> parts;
  for (const std::size_t input : node.inputs) parts.push_back(linear(values_[input], *steps_));
  const int out = result(number, dense());
  const Sizes strides = dense_strides(node.type.shape);
  const auto dim = static_cast<std::size_t>(node.dims.front());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Sizes shape = graph_->nodes[node.inputs[i]].type.shape, own = dense_strides(shape);
    Step& step = add_step(Step::Kind::move, number, {parts[i]}, out);
    step.move = move_of(shape, own, strides);
    step.move.to_offset = at;
    at += shape[dim] * strides[dim];
  }
}

void Lowering::lower_attention(std::size_t number) {
  const Node& node = graph_->nodes[number];
  const Sizes &q = graph_->nodes[node.inputs[0]].type.shape, &k = graph_->nodes[node.inputs[1]].type.shape;
  AttentionCall call;
  call.queries = q[q.size() - 2];
  call.keys = k[k.size() - 2];
  call.width = q.back();
  call.v_width = node.type.shape.back();
  call.heads = count_of({q.begin(), q.end() - 2});
  call.scale = node.scale;
  call.causal = node.causal;
  call.dtype = node.type.dtype;
  std::vector<int> in;
  for (const std::size_t input : node.inputs) in.push_back(linear(values_[input], *steps_));
  in.resize(4, -1);
  const int out = result(number, dense());
  add_step(Step::Kind::attention, number, in, out).attention = call;
}

}  // namespace kernbench::pipeline
