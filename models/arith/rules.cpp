#include "models/arith/arith.h"

#include <iterator>

namespace kernbench::arith {

std::optional<Shape> broadcast_shape(Shape a, Shape b) {
  const auto dimension = [](std::int64_t x, std::int64_t y) { return x == y || y == 1 ? x : x == 1 ? y : -1; };
  const Shape shape{dimension(a.rows, b.rows), dimension(a.cols, b.cols)};
  if (shape.rows < 0 || shape.cols < 0) return std::nullopt;
  return shape;
}

namespace {
enum class Domain : std::uint8_t { all, numbers, floats };
struct Rule {
  MathOp op;
  int operands;
  Domain domain;
  OpClass cost;
};

/// Every elementwise op, in the order of MathOp.
constexpr Rule kRules[] = {
    {MathOp::add, 2, Domain::all, OpClass::simple},
    {MathOp::sub, 2, Domain::numbers, OpClass::simple},
    {MathOp::mul, 2, Domain::all, OpClass::simple},
    {MathOp::div, 2, Domain::numbers, OpClass::divide},
    {MathOp::minimum, 2, Domain::all, OpClass::simple},
    {MathOp::maximum, 2, Domain::all, OpClass::simple},
    {MathOp::neg, 1, Domain::numbers, OpClass::simple},
    {MathOp::abs, 1, Domain::numbers, OpClass::simple},
    {MathOp::exp, 1, Domain::floats, OpClass::transcendental},
    {MathOp::log, 1, Domain::floats, OpClass::transcendental},
    {MathOp::sqrt, 1, Domain::floats, OpClass::root},
    {MathOp::rsqrt, 1, Domain::floats, OpClass::root},
    {MathOp::tanh, 1, Domain::floats, OpClass::activation},
    {MathOp::sigmoid, 1, Domain::floats, OpClass::activation},
    {MathOp::gelu, 1, Domain::floats, OpClass::activation},
    {MathOp::silu, 1, Domain::floats, OpClass::activation},
    {MathOp::relu, 1, Domain::numbers, OpClass::simple},
    {MathOp::less, 2, Domain::all, OpClass::simple},
    {MathOp::less_equal, 2, Domain::all, OpClass::simple},
    {MathOp::equal, 2, Domain::all, OpClass::simple},
    {MathOp::select, 3, Domain::all, OpClass::simple},
    {MathOp::cast, 1, Domain::all, OpClass::simple},
    {MathOp::copy, 1, Domain::all, OpClass::simple},
    {MathOp::fill, 0, Domain::all, OpClass::simple},
    {MathOp::arange, 0, Domain::numbers, OpClass::simple},
    {MathOp::broadcast, 1, Domain::all, OpClass::simple},
    {MathOp::transpose, 1, Domain::all, OpClass::simple},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kRules); ++i) {
    if (static_cast<std::size_t>(kRules[i].op) != i) return false;
  }
  return std::size(kRules) == static_cast<std::size_t>(MathOp::transpose) + 1;
}
static_assert(in_order(), "one rule per op, in the order of MathOp");

const Rule& rule(MathOp op) { return kRules[static_cast<std::size_t>(op)]; }
}  // namespace

int operands(MathOp op) { return rule(op).operands; }

OpClass op_class(MathOp op) { return rule(op).cost; }

bool is_defined(MathOp op, DType dtype) {
  switch (rule(op).domain) {
    case Domain::floats:
      return is_float(dtype);
    case Domain::numbers:
      return dtype != DType::boolean;
    case Domain::all:
      break;
  }
  return true;
}

bool is_defined(ReduceKind, DType) { return true; }

bool gemm_is_defined(DType in, DType out) {
  return in != DType::boolean && out != DType::boolean && is_float(in) == is_float(out);
}

DType result_type(MathOp op, DType operands) {
  return op == MathOp::less || op == MathOp::less_equal || op == MathOp::equal ? DType::boolean : operands;
}

}  // namespace kernbench::arith
