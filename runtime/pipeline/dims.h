#pragma once
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace kernbench::pipeline {

/// Elements of an array.
inline std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Row-major distances between elements.
inline std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

}  // namespace kernbench::pipeline
