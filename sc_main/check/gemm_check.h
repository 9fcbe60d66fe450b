#pragma once
#include <cstdint>
#include <vector>

#include "sc_main/check/numerics.h"

namespace kernbench {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f16;
};

/// c = a b on the host, in f64, of operands as they stand in memory; `c` in the same form.
///
/// The product is Eigen's, which adds in an order of its own: the bound of gemm_tolerance() holds for any. What the
/// absolute values of an element's products add up to, which it needs, is at most the product of the lengths of the row
/// of a and the column of b (Cauchy and Schwarz): for values that are evenly spread, 4/3 of it.
Comparison check_gemm(const GemmShape& shape, const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b,
                      const std::vector<std::uint8_t>& c);

}  // namespace kernbench
