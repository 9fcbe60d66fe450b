#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/tp/tp_case.h"

/// A transformer on the host, in f64, written out once more from its formulas: whole matrices, no ranks, no tiles. What
/// the machine keeps in memory is rounded to the dtype here, too.
namespace kernbench::testing {

inline Values rounded(Values values, DType dtype) {
  std::uint8_t raw[8];
  for (double& value : values) {
    store_element(raw, dtype, 0, value);
    value = load_element(raw, dtype, 0);
  }
  return values;
}

inline Values plus(Values x, const Values& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return x;
}

inline void add_bias_to(Values& x, std::int64_t cols, const tp::WeightPattern& bias) {
  for (std::size_t i = 0; bias && i < x.size(); ++i) x[i] += bias(0, static_cast<std::int64_t>(i) % cols);
}

struct HostAttention {
  std::int64_t width, heads, kv_heads, head_dim;
  double theta = 0;  ///< 0: no rotary embedding
  DType dtype = DType::f16;
  tp::WeightPattern q, k, v, out, q_bias = {}, k_bias = {}, v_bias = {}, out_bias = {};

  /// x: tokens x width of one sequence from position 0 on.
  Values forward(const Values& x) const {
    const auto tokens = static_cast<std::int64_t>(x.size()) / width;
    const Values queries = project(x, tokens, heads, q, q_bias, true),
                 keys = project(x, tokens, kv_heads, k, k_bias, true),
                 values = project(x, tokens, kv_heads, v, v_bias, false);
    Values context(static_cast<std::size_t>(tokens * heads * head_dim), 0.0);
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t kv = h / (heads / kv_heads);
      for (std::int64_t t = 0; t < tokens; ++t) {
        std::vector<double> weight;
        double sum = 0;
        for (std::int64_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::int64_t i = 0; i < head_dim; ++i)
            score += at(queries, t, h, i, heads) * at(keys, s, kv, i, kv_heads);
          weight.push_back(std::exp(score / std::sqrt(static_cast<double>(head_dim))));
          sum += weight.back();
        }
        for (std::int64_t i = 0; i < head_dim; ++i) {
          double value = 0;
          for (std::int64_t s = 0; s <= t; ++s)
            value += weight[static_cast<std::size_t>(s)] / sum * at(values, s, kv, i, kv_heads);
          context[static_cast<std::size_t>((t * heads + h) * head_dim + i)] = value;
        }
      }
    }
    Values y =
        product(rounded(context, dtype), values_of({heads * head_dim, width}, out), tokens, heads * head_dim, width);
    add_bias_to(y, width, out_bias);
    return rounded(y, dtype);
  }

 private:
  double at(const Values& values, std::int64_t token, std::int64_t head, std::int64_t i, std::int64_t of) const {
    return values[static_cast<std::size_t>((token * of + head) * head_dim + i)];
  }
  Values project(const Values& x, std::int64_t tokens, std::int64_t of, const tp::WeightPattern& weight,
                 const tp::WeightPattern& bias, bool turns) const {
    const std::int64_t cols = of * head_dim, half = head_dim / 2;
    Values y = product(x, values_of({width, cols}, weight), tokens, width, cols);
    add_bias_to(y, cols, bias);
    y = rounded(y, dtype);
    if (!turns || theta == 0) return y;
    Values turned = y;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t h = 0; h < of; ++h) {
        for (std::int64_t i = 0; i < half; ++i) {
          const double angle =
              static_cast<double>(t) * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
          const double a = at(y, t, h, i, of), b = at(y, t, h, i + half, of);
          const auto base = static_cast<std::size_t>((t * of + h) * head_dim + i);
          turned[base] = a * std::cos(angle) - b * std::sin(angle);
          turned[base + static_cast<std::size_t>(half)] = b * std::cos(angle) + a * std::sin(angle);
        }
      }
    }
    return rounded(turned, dtype);
  }
};

/// Largest difference allowed: f16 as the specification has it, f32 in proportion to its roundoff, with room for sums.
inline void expect_near_all(const Values& got, const Values& expected, DType dtype, const std::string& what) {
  const double tolerance = dtype == DType::f16 ? 1e-2 : 1e-5;
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - expected[i]), tolerance * (1 + std::abs(expected[i]))) << what << ", element " << i;
  }
}

/// Rows [first, first + count) of every sequence of `length` rows.
inline Values rows_of_each(const std::vector<Values>& sequences, std::int64_t cols, std::int64_t first,
                           std::int64_t count) {
  Values rows;
  for (const Values& sequence : sequences)
    rows.insert(rows.end(), sequence.begin() + first * cols, sequence.begin() + (first + count) * cols);
  return rows;
}

}  // namespace kernbench::testing
