#pragma once
#include <cstdint>

#include "models/pe/compute/gemm_array.h"
#include "models/pe/op.h"
#include "models/pe/pe_config.h"

namespace kernbench::pe {

/// Cycles of the math engine. Groups of `lanes` elements (of half as many for 64-bit types) follow each other, one per
/// cycle; div takes divide_cycles per group, sqrt and rsqrt sqrt_cycles, exp and log transcendental_cycles, tanh,
/// sigmoid, gelu and silu activation_cycles; then pipeline_cycles until the last result is written.
std::uint64_t math_cycles(const MathConfig& config, MathOp op, std::uint64_t elements, DType dtype);
/// A pass over the input, then a tree over min(lanes, length of the axis) partial results: one cycle per level.
std::uint64_t reduce_cycles(const MathConfig& config, std::uint64_t elements, std::uint64_t axis_length, DType dtype);
/// max reduction, subtract and exp, sum reduction, division: one after another.
std::uint64_t softmax_cycles(const MathConfig& config, std::uint64_t rows, std::uint64_t cols, DType dtype);

/// Of any op of the math engine; 0 if it has no elements.
std::uint64_t math_cycles_of(const MathConfig& config, const Op& op);
/// Elements times cycles of a lane; for energy.
std::uint64_t lane_cycles_of(const MathConfig& config, const Op& op);
/// What an op of the GEMM engine asks of the array.
GemmWork gemm_work_of(const Op& op);
/// What an op of either engine moves between TCM and the engine.
std::uint64_t tcm_bytes_of(const GemmConfig& config, const Op& op);

}  // namespace kernbench::pe
