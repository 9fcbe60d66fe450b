#pragma once
#include <cstdint>

#include "runtime/tp/linear.h"

namespace kernbench::tp {

/// Fills `tensor` with the part of `whole` that begins at (row, col).
void load_part(Tensor tensor, const WeightPattern& whole, std::int64_t row, std::int64_t col);

}  // namespace kernbench::tp
