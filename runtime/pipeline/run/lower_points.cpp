
#include "runtime/pipeline/emit.h"
#include "runtime/pipeline/run/plan.h"

namespace kernbench::pipeline {

namespace {

PointOp point_op_of(const Node& node) {
  if (node.op == Op::cast) return PointOp::cast;
  if (node.op == Op::where) return PointOp::where;
  if (node.op == Op::binary) {
    switch (node.binary) {
      case Binary::add:
        return PointOp::add;
      case Binary::sub:
        return PointOp::sub;
      case Binary::mul:
        return PointOp::mul;
      case Binary::div:
        return PointOp::div;
      case Binary::pow:
        return PointOp::pow;
    }
  }
  switch (node.unary) {
    case Unary::relu:
      return PointOp::relu;
    case Unary::gelu:
      return PointOp::gelu;
    case Unary::gelu_tanh:
      return PointOp::gelu_tanh;
    case Unary::silu:
      return PointOp::silu;
    case Unary::sigmoid:
      return PointOp::sigmoid;
    case Unary::tanh:
      return PointOp::tanh;
    case Unary::rsqrt:
      return PointOp::rsqrt;
    case Unary::sqrt:
      return PointOp::sqrt;
    case Unary::neg:
      return PointOp::neg;
    case Unary::exp:
      return PointOp::exp;
  }
  return PointOp::copy;
}

/// Distances between rows and columns of the result's two-dimensional form at which an operand's elements lie; nothing
/// if it is broadcast otherwise.
std::optional<std::pair<std::int64_t, std::int64_t>> distances(const std::vector<std::int64_t>& operand,
                                                               const std::vector<std::int64_t>& result) {
  const std::int64_t width = result.empty() ? 1 : result.back(), own = operand.empty() ? 1 : operand.back();
  const std::int64_t rows = count_of(operand) / own, height = count_of(result) / width;
  if (rows != 1 && rows != height) return std::nullopt;  // some leading dimensions are broadcast, others not
  return std::pair(rows == 1 ? 0 : own, own == 1 ? 0 : std::int64_t{1});
}

}  // namespace

void Lowering::lower_points(std::size_t number) {
  const Node& node = graph_->nodes[number];
  PointCall call;
  call.op = point_op_of(node);
  call.with_number = node.op == Op::binary && node.inputs.size() == 1;
  call.number = node.number;
  const Shape shape = fold_of(node.type.shape);

  // As the first operand of the whole shape lies, if the others lie likewise or are one row.
  const Value* like = nullptr;
  bool placed_alike = true;
  for (const std::size_t input : node.inputs) {
    const Value& value = values_[input];
    const auto at = distances(value.type.shape, node.type.shape);
    const bool whole = value.type.count() == node.type.count(), row = at && at->first == 0;
    const Shape held = value.buffer >= 0 ? buffer(value.buffer).shape : whole ? shape : Shape{1, value.type.count()};
    if (whole && like == nullptr && value.buffer >= 0) like = &value;
    placed_alike = placed_alike &&
                   ((whole && held == shape) || (row && held.rows == 1 && (held.cols == shape.cols || held.cols == 1)));
  }
  if (like != nullptr && placed_alike) {
    // Copies are for reading: what is made of one is made once.
    const DPPolicy of_operand = buffer(like->buffer).policy;
    const DPPolicy policy = to_string(of_operand) == to_string(DPPolicy()) ? split() : of_operand;
    std::vector<int> in;
    for (const std::size_t input : node.inputs) {
      const Value& value = values_[input];
      const bool whole = value.type.count() == node.type.count();
      const bool copied = !whole || shape.rows == 1;  // what matters for constants alone
      in.push_back(shaped(value, whole ? shape : Shape{1, value.type.count()}, copied ? DPPolicy() : policy, *steps_));
    }
    const int out = result(number, policy, true);
    add_step(Step::Kind::point, number, in, out).point = call;
    return;
  }
  std::vector<int> in;
  call.linear = true;
  call.height = shape.rows;
  call.width = shape.cols;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    Value value = values_[node.inputs[i]];
    auto at = distances(value.type.shape, node.type.shape);
    if (!at) {
      value = expanded(value, node.type.shape);
      at = distances(value.type.shape, node.type.shape);
    }
    in.push_back(linear(value, *steps_));
    call.rows[i] = at->first;
    call.cols[i] = at->second;
  }
  const int out = result(number, dense());
  add_step(Step::Kind::point, number, in, out).point = call;
}

}  // namespace kernbench::pipeline
