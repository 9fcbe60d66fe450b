#pragma once
#include <cstdint>

#include "models/pe/op.h"
#include "models/pe/pe_config.h"

namespace kernbench::pe {

/// Cycles of the GEMM array for c[m x n] += a[m x k] * b[k x n] of `dtype`. Closed forms; docs/pe.md derives them.
///
/// A MAC of a cell takes `c` cycles and a cell does `r` MACs at once: f8 and i8 r = f8_rate; f16, bf16, i16, bool
/// r = f16_rate; f32, i32 c = f32_cycles; f64, i64 c = 2 f32_cycles (assumed: two passes over half the operand width).
/// Folds follow each other without a gap, but not faster than the array's rows can be loaded or drained:
///   output stationary   F = ceil(m/rows) ceil(n/cols), s = ceil(k/r) c, drain at the end:
///                       (F-1) max(s, rows) + s + (rows + cols - 2) + rows
///   weight stationary   F = ceil(k/(rows r)) ceil(n/cols), s = m c, first load of the weights in front:
///                       rows + (F-1) max(s, rows) + s + (rows + cols - 2)
std::uint64_t gemm_cycles(const GemmConfig& config, std::uint64_t m, std::uint64_t n, std::uint64_t k, DType dtype);

/// Cycles of the math engine. Groups of `lanes` elements (of half as many for 64-bit types) follow each other, one per
/// cycle; exp, log, sqrt, rsqrt, tanh, sigmoid, gelu, silu and div take transcendental_cycles per group; then
/// pipeline_cycles until the last result is written.
std::uint64_t math_cycles(const MathConfig& config, MathOp op, std::uint64_t elements, DType dtype);
/// A pass over the input, then a tree over min(lanes, length of the axis) partial results: one cycle per level.
std::uint64_t reduce_cycles(const MathConfig& config, std::uint64_t elements, std::uint64_t axis_length, DType dtype);
/// max reduction, subtract and exp, sum reduction, division: one after another.
std::uint64_t softmax_cycles(const MathConfig& config, std::uint64_t rows, std::uint64_t cols, DType dtype);

/// Of any op of the GEMM or math engine; 0 if it has no elements.
std::uint64_t cycles_of(const PeConfig& config, const Op& op);

}  // namespace kernbench::pe
