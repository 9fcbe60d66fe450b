#include "models/arith/arith.h"

namespace kernbench::arith {

std::optional<Shape> broadcast_shape(Shape a, Shape b) {
  const auto dimension = [](std::int64_t x, std::int64_t y) { return x == y || y == 1 ? x : x == 1 ? y : -1; };
  const Shape shape{dimension(a.rows, b.rows), dimension(a.cols, b.cols)};
  if (shape.rows < 0 || shape.cols < 0) return std::nullopt;
  return shape;
}

int operands(MathOp op) {
  switch (op) {
    case MathOp::fill:
    case MathOp::arange:
      return 0;
    case MathOp::add:
    case MathOp::sub:
    case MathOp::mul:
    case MathOp::div:
    case MathOp::minimum:
    case MathOp::maximum:
    case MathOp::less:
    case MathOp::less_equal:
    case MathOp::equal:
      return 2;
    case MathOp::select:
      return 3;
    default:
      return 1;
  }
}

bool is_defined(MathOp op, DType dtype) {
  switch (op) {
    case MathOp::exp:
    case MathOp::log:
    case MathOp::sqrt:
    case MathOp::rsqrt:
    case MathOp::tanh:
    case MathOp::sigmoid:
    case MathOp::gelu:
    case MathOp::silu:
      return is_float(dtype);
    case MathOp::sub:
    case MathOp::div:
    case MathOp::neg:
    case MathOp::abs:
    case MathOp::relu:
    case MathOp::arange:
      return dtype != DType::boolean;
    default:
      return true;
  }
}

bool is_defined(ReduceKind, DType) { return true; }

bool gemm_is_defined(DType in, DType out) {
  return in != DType::boolean && out != DType::boolean && is_float(in) == is_float(out);
}

DType result_type(MathOp op, DType operands) {
  return op == MathOp::less || op == MathOp::less_equal || op == MathOp::equal ? DType::boolean : operands;
}

std::optional<MathOp> to_math(Activation activation) {
  switch (activation) {
    case Activation::none:
      return std::nullopt;
    case Activation::relu:
      return MathOp::relu;
    case Activation::gelu:
      return MathOp::gelu;
    case Activation::silu:
      return MathOp::silu;
    case Activation::tanh:
      return MathOp::tanh;
    case Activation::sigmoid:
      return MathOp::sigmoid;
  }
  return std::nullopt;
}

}  // namespace kernbench::arith
