#include "models/pe/compute_timing.h"

#include <algorithm>

namespace kernbench::pe {

namespace {
std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

unsigned log2_ceil(std::uint64_t n) {
  unsigned levels = 0;
  while ((std::uint64_t{1} << levels) < n) ++levels;
  return levels;
}

std::uint64_t groups(const MathConfig& config, std::uint64_t elements, DType dtype) {
  const std::uint64_t lanes = size_of(dtype) > 4 ? std::max<std::uint64_t>(config.lanes / 2, 1) : config.lanes;
  return ceil_div(elements, lanes);
}

bool is_transcendental(MathOp op) {
  switch (op) {
    case MathOp::div:
    case MathOp::exp:
    case MathOp::log:
    case MathOp::sqrt:
    case MathOp::rsqrt:
    case MathOp::tanh:
    case MathOp::sigmoid:
    case MathOp::gelu:
    case MathOp::silu:
      return true;
    default:
      return false;
  }
}

struct MacRate {
  std::uint64_t cycles, at_once;
};

MacRate mac_rate(const GemmConfig& config, DType dtype) {
  switch (dtype) {
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::i8:
      return {1, config.f8_rate};
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::boolean:
      return {1, config.f16_rate};
    case DType::f32:
    case DType::i32:
      return {config.f32_cycles, 1};
    case DType::f64:
    case DType::i64:
      return {2 * std::uint64_t{config.f32_cycles}, 1};
  }
  return {1, 1};
}
}  // namespace

std::uint64_t gemm_cycles(const GemmConfig& config, std::uint64_t m, std::uint64_t n, std::uint64_t k, DType dtype) {
  if (m == 0 || n == 0 || k == 0) return 0;
  const MacRate mac = mac_rate(config, dtype);
  const std::uint64_t rows = config.rows, cols = config.cols;
  const bool outputs_stay = config.dataflow == GemmDataflow::output_stationary;
  const std::uint64_t folds = (outputs_stay ? ceil_div(m, rows) : ceil_div(k, rows * mac.at_once)) * ceil_div(n, cols);
  const std::uint64_t steps = outputs_stay ? ceil_div(k, mac.at_once) * mac.cycles : m * mac.cycles;
  return (folds - 1) * std::max(steps, rows) + steps + (rows + cols - 2) + rows;
}

std::uint64_t math_cycles(const MathConfig& config, MathOp op, std::uint64_t elements, DType dtype) {
  if (elements == 0) return 0;
  const std::uint64_t per_group = is_transcendental(op) ? config.transcendental_cycles : 1;
  return groups(config, elements, dtype) * per_group + config.pipeline_cycles;
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

std::uint64_t cycles_of(const PeConfig& config, const Op& op) {
  const TileRef& in = op.in[0];
  const std::uint64_t elements = std::uint64_t{in.rows} * in.cols;
  switch (op.kind) {
    case OpKind::dot:
      return gemm_cycles(config.gemm, in.rows, op.in[1].cols, in.cols, in.dtype);
    case OpKind::reduce:
      return reduce_cycles(config.math, elements, op.axis == 0 ? in.rows : in.cols, in.dtype);
    case OpKind::softmax:
      return softmax_cycles(config.math, in.rows, in.cols, in.dtype);
    default: {
      const DType dtype = op.inputs > 0 && size_of(in.dtype) > size_of(op.out.dtype) ? in.dtype : op.out.dtype;
      return math_cycles(config.math, op.math, std::uint64_t{op.out.rows} * op.out.cols, dtype);
    }
  }
}

}  // namespace kernbench::pe
