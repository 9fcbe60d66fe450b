#pragma once
#include <type_traits>

namespace kernbench {

/// a / b, rounded up. REQUIRES: a >= 0, b > 0.
template <class Integer>
constexpr Integer ceil_div(Integer a, std::common_type_t<Integer> b) {
  return (a + b - 1) / b;
}

}  // namespace kernbench
