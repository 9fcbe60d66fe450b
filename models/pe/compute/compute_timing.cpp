#include "models/pe/compute/compute_timing.h"

#include <algorithm>

#include "models/arith/arith.h"
#include "tlm/kernel/rounding.h"

namespace kernbench::pe {

namespace {

unsigned log2_ceil(std::uint64_t n) {
  unsigned levels = 0;
  while ((std::uint64_t{1} << levels) < n) ++levels;
  return levels;
}

std::uint64_t groups(const MathConfig& config, std::uint64_t elements, DType dtype) {
  const std::uint64_t lanes = size_of(dtype) > 4 ? std::max<std::uint64_t>(config.lanes / 2, 1) : config.lanes;
  return ceil_div(elements, lanes);
}

std::uint64_t cycles_per_group(const MathConfig& config, MathOp op) {
  switch (arith::op_class(op)) {
    case arith::OpClass::divide:
      return config.divide_cycles;
    case arith::OpClass::root:
      return config.sqrt_cycles;
    case arith::OpClass::transcendental:
      return config.transcendental_cycles;
    case arith::OpClass::activation:
      return config.activation_cycles;
    case arith::OpClass::simple:
      break;
  }
  return 1;
}

/// Elements of one type that an operand or a result brings through TCM.
std::uint64_t bytes_of(std::uint64_t elements, DType dtype) { return elements * size_of(dtype); }
}  // namespace

std::uint64_t math_cycles(const MathConfig& config, MathOp op, std::uint64_t elements, DType dtype) {
  if (elements == 0) return 0;
  return groups(config, elements, dtype) * cycles_per_group(config, op) + config.pipeline_cycles;
}

std::uint64_t reduce_cycles(const MathConfig& config, std::uint64_t elements, std::uint64_t axis_length, DType dtype) {
  if (elements == 0) return 0;
  const std::uint64_t partials = std::min<std::uint64_t>(config.lanes, axis_length);
  return groups(config, elements, dtype) + log2_ceil(partials) + config.pipeline_cycles;
}

std::uint64_t softmax_cycles(const MathConfig& config, std::uint64_t rows, std::uint64_t cols, DType dtype) {
  const std::uint64_t elements = rows * cols;
  return 2 * reduce_cycles(config, elements, cols, dtype) + math_cycles(config, MathOp::sub, elements, dtype) +
         math_cycles(config, MathOp::exp, elements, dtype) + math_cycles(config, MathOp::div, elements, dtype);
}

namespace {
/// The widest type that an op of the math engine handles decides how many of its lanes work.
DType lane_type(const Op& op) {
  return op.inputs > 0 && size_of(op.in[0].dtype) > size_of(op.out.dtype) ? op.in[0].dtype : op.out.dtype;
}
std::uint64_t elements_of(const TileRef& tile) { return std::uint64_t{tile.rows} * tile.cols; }
}  // namespace

std::uint64_t math_cycles_of(const MathConfig& config, const Op& op) {
  const TileRef& in = op.in[0];
  switch (op.kind) {
    case OpKind::reduce:
      return reduce_cycles(config, elements_of(in), op.axis == 0 ? in.rows : in.cols, in.dtype);
    case OpKind::softmax:
      return softmax_cycles(config, in.rows, in.cols, in.dtype);
    default:
      return math_cycles(config, op.math, elements_of(op.out), lane_type(op));
  }
}

std::uint64_t lane_cycles_of(const MathConfig& config, const Op& op) {
  const std::uint64_t in = elements_of(op.in[0]);
  switch (op.kind) {
    case OpKind::reduce:
      return in;
    case OpKind::softmax:  // two reductions, a subtraction, an exponential, a division
      return in * (3 + config.transcendental_cycles + config.divide_cycles);
    default:
      return elements_of(op.out) * cycles_per_group(config, op.math);
  }
}

GemmWork gemm_work_of(const Op& op) {
  GemmWork work{op.in[0].rows, op.in[1].cols, op.in[0].cols, op.in[0].dtype, false, false, op.stays};
  work.from_memory = op.accumulates && !op.goes_on;
  work.chained = work.from_memory && op.chain != 0;
  return work;
}

std::uint64_t tcm_bytes_of(const GemmConfig& config, const Op& op) {
  if (op.kind != OpKind::dot) {
    std::uint64_t bytes = op.kind == OpKind::softmax ? 2 * op.in[0].bytes() : 0;  // three passes over its input
    for (std::size_t i = 0; i < op.inputs; ++i) bytes += op.in[i].bytes();
    return bytes + op.out.bytes();
  }
  // Every column of blocks streams a again, every row of blocks b; weights enter once.
  const GemmWork work = gemm_work_of(op);
  const bool outputs_stay = config.dataflow == GemmDataflow::output_stationary;
  const std::uint64_t a = bytes_of(work.m * work.k, work.dtype) * ceil_div(work.n, config.cols);
  const std::uint64_t b = bytes_of(work.k * work.n, work.dtype) * (outputs_stay ? ceil_div(work.m, config.rows) : 1);
  const std::uint64_t sums = work.from_memory && outputs_stay ? op.in[2].bytes() : 0;
  return a + b + sums + (work.stays ? 0 : op.out.bytes());
}

}  // namespace kernbench::pe
