#include "models/pe/compute/execute.h"

#include <array>

#include <systemc>

#include "models/arith/arith.h"

namespace kernbench::pe {

namespace {
using Bytes = std::vector<unsigned char>;

arith::In in(const Bytes& data, const TileRef& tile) { return {data.data(), tile.shape(), tile.dtype}; }
arith::Out out(Bytes& data, const TileRef& tile) { return {data.data(), tile.shape(), tile.dtype}; }

Bytes converted(const Bytes& data, const TileRef& tile, DType dtype) {
  Bytes result(static_cast<std::size_t>(tile.shape().count()) * size_of(dtype));
  convert(data.data(), tile.dtype, result.data(), dtype, static_cast<std::size_t>(tile.shape().count()));
  return result;
}

/// A tile of a composite accumulates in in[2]'s type and may write its result in another one.
void execute_dot(const Op& op, Tcm& tcm) {
  const Bytes a = tcm.read(op.in[0]), b = tcm.read(op.in[1]);
  TileRef sum = op.out;
  if (op.inputs == 3) sum.dtype = op.in[2].dtype;
  Bytes c(sum.bytes());
  if (op.accumulates) c = tcm.read(op.in[2]);
  arith::gemm(in(a, op.in[0]), in(b, op.in[1]), op.accumulates ? c.data() : nullptr, out(c, sum));
  tcm.write(op.out, sum.dtype == op.out.dtype ? c : converted(c, sum, op.out.dtype));
}

/// Elementwise. In a composite's epilogue the first operand, the accumulator, decides the type of the arithmetic; the
/// others widen to it and the result is rounded once.
void execute_math(const Op& op, Tcm& tcm) {
  std::array<Bytes, 3> data;
  std::array<arith::In, 3> operands;
  const bool epilogue = op.stage == Stage::epilogue;
  for (std::size_t i = 0; i < op.inputs; ++i) {
    TileRef tile = op.in[i];
    data[i] = tcm.read(tile);
    if (epilogue && tile.dtype != op.in[0].dtype) {
      data[i] = converted(data[i], tile, op.in[0].dtype);
      tile.dtype = op.in[0].dtype;
    }
    operands[i] = in(data[i], tile);
  }
  TileRef computed = op.out;
  if (epilogue) computed.dtype = op.in[0].dtype;
  Bytes result(computed.bytes());
  switch (op.math) {
    case MathOp::fill:
      arith::fill(out(result, computed), op.value);
      break;
    case MathOp::arange:
      arith::arange(out(result, computed), op.first);
      break;
    default:
      arith::math(op.math, operands.data(), op.inputs, out(result, computed));
  }
  tcm.write(op.out, computed.dtype == op.out.dtype ? result : converted(result, computed, op.out.dtype));
}
}  // namespace

void execute(const Op& op, Tcm& tcm) {
  if (op.out.bytes() == 0) return;
  switch (op.kind) {
    case OpKind::dot:
      execute_dot(op, tcm);
      break;
    case OpKind::math:
      execute_math(op, tcm);
      break;
    case OpKind::reduce: {
      const Bytes a = tcm.read(op.in[0]);
      Bytes result(op.out.bytes());
      arith::reduce(op.reduce, in(a, op.in[0]), op.axis, out(result, op.out));
      tcm.write(op.out, result);
      break;
    }
    case OpKind::softmax: {
      const Bytes a = tcm.read(op.in[0]);
      Bytes result(op.out.bytes());
      arith::softmax(in(a, op.in[0]), out(result, op.out));
      tcm.write(op.out, result);
      break;
    }
    default:
      sc_assert(false);
  }
}

}  // namespace kernbench::pe
