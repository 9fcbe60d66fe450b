#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tp/linear.h"
#include "tests/runtime/machine_run.h"

namespace kernbench::testing {

using Values = std::vector<double>;

/// Element (row, col) of a weight: multiples of 1/16 that differ between neighbours, rows and columns of other ranks.
inline double weight_at(std::int64_t row, std::int64_t col) {
  return static_cast<double>((row * 7 + col * 13 + row * col) % 17 - 8) / 16;
}
inline double bias_at(std::int64_t, std::int64_t col) { return static_cast<double>(col % 5 - 2) / 4; }
inline double input_at(std::int64_t row, std::int64_t col) {
  return static_cast<double>((row * 3 + col * 5) % 11 - 5) / 8;
}

template <class At>
Values values_of(Shape shape, const At& at, std::int64_t row = 0, std::int64_t col = 0) {
  Values values;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t c = 0; c < shape.cols; ++c) values.push_back(at(row + r, col + c));
  }
  return values;
}

/// x (m x k) times w (k x n), in f64.
inline Values product(const Values& x, const Values& w, std::int64_t m, std::int64_t k, std::int64_t n) {
  Values y(static_cast<std::size_t>(m * n), 0.0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) {
        y[static_cast<std::size_t>(i * n + j)] +=
            x[static_cast<std::size_t>(i * k + l)] * w[static_cast<std::size_t>(l * n + j)];
      }
    }
  }
  return y;
}

/// The tolerance of the specification for f16: rtol = atol = 1e-2.
inline void expect_close(const Values& got, const Values& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - expected[i]), 1e-2 * (1 + std::abs(expected[i]))) << what << ", element " << i;
  }
}

/// Each value rounded to f16, as memory holds it.
inline Values in_f16(Values values) {
  for (double& value : values) {
    std::uint8_t raw[2];
    store_element(raw, DType::f16, 0, value);
    value = load_element(raw, DType::f16, 0);
  }
  return values;
}

inline DPPolicy policy_of(CubeSplit cube, PeSplit pe) { return DPPolicy().cube(cube).pe(pe); }

/// Two placements of a layer's tensors that have nothing in common.
inline std::vector<tp::LinearPlacement> two_placements() {
  tp::LinearPlacement other;
  other.weight = policy_of(CubeSplit::row_wise, PeSplit::tiled_column_major);
  other.output = policy_of(CubeSplit::replicate, PeSplit::row_wise);
  other.input = policy_of(CubeSplit::column_wise, PeSplit::replicate);
  other.bias = policy_of(CubeSplit::column_wise, PeSplit::column_wise);
  return {tp::LinearPlacement(), other};
}

template <class Call>
std::string error_text(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace kernbench::testing
