// Products, reductions and softmax: sums of many terms.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/memory/arith_tensor.h"

namespace kernbench::arith {
namespace {

TEST(Gemm, SumsInOrderOfKInF32) {
  const std::int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {4, 8, 16}, {33, 17, 65}, {2, 9, 300}, {5, 3, 0}};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    for (const auto& [m, n, k] : sizes) {
      for (const bool with_acc : {false, true}) {
        for (const DType result : {dtype, DType::f32}) {
          const Tensor a = random_tensor({m, k}, dtype, 11), b = random_tensor({k, n}, dtype, 12),
                       acc = random_tensor({m, n}, result, 13);
          Tensor c({m, n}, result);
          gemm(a.in(), b.in(), with_acc ? acc.bytes.data() : nullptr, c.out());
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
              volatile float sum = with_acc ? static_cast<float>(acc.at(i, j)) : 0.0f;
              for (std::int64_t x = 0; x < k; ++x) {
                const volatile float product =
                    static_cast<float>(load_element(a.bytes.data(), dtype, static_cast<std::size_t>(i * k + x)) *
                                       load_element(b.bytes.data(), dtype, static_cast<std::size_t>(x * n + j)));
                sum = sum + product;
              }
              ASSERT_EQ(c.at(i, j), rounded(sum, result))
                  << to_string(dtype) << " " << m << "x" << n << "x" << k << " at " << i << "," << j;
            }
          }
        }
      }
    }
  }
}

TEST(Gemm, StaysWithinTheErrorBoundOfTheExactSum) {
  const std::int64_t m = 20, n = 30, k = 500;
  for (const DType dtype : kFloats) {
    const DType result = dtype == DType::f64 ? DType::f64 : DType::f32;
    const Tensor a = random_tensor({m, k}, dtype, 14), b = random_tensor({k, n}, dtype, 15);
    Tensor c({m, n}, result);
    gemm(a.in(), b.in(), nullptr, c.out());
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        long double sum = 0, magnitude = 0;
        for (std::int64_t x = 0; x < k; ++x) {
          const long double product = static_cast<long double>(a.at(i, x)) * b.at(x, j);
          sum += product;
          magnitude += std::fabs(product);
        }
        ASSERT_LE(std::fabs(c.at(i, j) - sum), k * std::ldexp(1.0L, -digits(result)) * magnitude);
      }
    }
  }
}

TEST(Gemm, AnF32AccumulatorMakesTilesOfKInvisible) {
  const std::int64_t m = 9, n = 21, k = 96, tile = 32;
  const Tensor a = random_tensor({m, k}, DType::f16, 16), b = random_tensor({k, n}, DType::f16, 17);
  Tensor whole({m, n}, DType::f32), tiled({m, n}, DType::f32);
  gemm(a.in(), b.in(), nullptr, whole.out());
  for (std::int64_t first = 0; first < k; first += tile) {
    Tensor left({m, tile}, DType::f16);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t x = 0; x < tile; ++x) left.set(i, x, a.at(i, first + x));
    }
    const In right{static_cast<const std::uint8_t*>(b.in().data) + first * n * 2, {tile, n}, DType::f16};
    gemm(left.in(), right, first == 0 ? nullptr : tiled.bytes.data(), tiled.out());
  }
  EXPECT_EQ(tiled.bytes, whole.bytes);
}

TEST(Gemm, IntegersWrapInTheWidthOfTheirSum) {
  for (const DType dtype : kIntegers) {
    for (const DType result : {dtype, DType::i32, DType::i64}) {
      const std::int64_t m = 7, n = 11, k = 40;
      const Tensor a = random_tensor({m, k}, dtype, 18), b = random_tensor({k, n}, dtype, 19),
                   acc = random_tensor({m, n}, result, 20);
      Tensor c({m, n}, result);
      gemm(a.in(), b.in(), acc.bytes.data(), c.out());
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          std::uint64_t sum = static_cast<std::uint64_t>(acc.integer(i, j));
          for (std::int64_t x = 0; x < k; ++x) {
            sum += static_cast<std::uint64_t>(a.integer(i, x)) * static_cast<std::uint64_t>(b.integer(x, j));
          }
          std::uint64_t word = 0;
          store_integer(&word, result, 0, static_cast<std::int64_t>(sum));
          ASSERT_EQ(c.integer(i, j), load_integer(&word, result, 0)) << to_string(dtype) << " to " << to_string(result);
        }
      }
    }
  }
}

TEST(Reduce, AgreesWithAWideSum) {
  for (int type = 0; type < kDTypes; ++type) {
    const DType dtype = static_cast<DType>(type);
    for (const Shape shape : {Shape{1, 1}, Shape{3, 5}, Shape{7, 8}, Shape{4, 1300}, Shape{600, 3}}) {
      const Tensor a = random_tensor(shape, dtype, 21);
      for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min}) {
        for (const int axis : {0, 1}) {
          Tensor out(axis == 0 ? Shape{1, shape.cols} : Shape{shape.rows, 1}, dtype);
          reduce(kind, a.in(), axis, out.out());
          for (std::int64_t i = 0; i < out.shape.count(); ++i) {
            long double sum = 0, magnitude = 0, best = kind == ReduceKind::max ? -1e30L : 1e30L;
            std::uint64_t wrapped = 0;
            const std::int64_t count = axis == 0 ? shape.rows : shape.cols;
            for (std::int64_t x = 0; x < count; ++x) {
              const std::int64_t row = axis == 0 ? x : i, col = axis == 0 ? i : x;
              const long double value = a.at(row, col);
              sum += value;
              magnitude += std::fabs(value);
              best = kind == ReduceKind::max ? std::max(best, value) : std::min(best, value);
              if (!is_float(dtype)) wrapped += static_cast<std::uint64_t>(a.integer(row, col));
            }
            const double got = load_element(out.bytes.data(), dtype, static_cast<std::size_t>(i));
            if (kind != ReduceKind::sum) {
              ASSERT_EQ(got, best) << to_string(dtype);
            } else if (is_float(dtype)) {
              const int p = dtype == DType::f64 ? 53 : 24;
              const double expected = rounded(static_cast<double>(sum), dtype);
              if (std::isinf(expected) || std::isnan(expected)) continue;
              ASSERT_LE(std::fabs(got - sum), std::ldexp(1.0L, -digits(dtype)) * std::fabs(sum) +
                                                  static_cast<long double>(count) * std::ldexp(1.0L, -p) * magnitude +
                                                  0.001L * std::fabs(sum) * (digits(dtype) < 5))
                  << to_string(dtype) << " " << shape.str() << " axis " << axis;
            } else {
              std::uint64_t word = 0;
              store_integer(&word, dtype, 0, static_cast<std::int64_t>(wrapped));
              ASSERT_EQ(load_integer(out.bytes.data(), dtype, static_cast<std::size_t>(i)),
                        load_integer(&word, dtype, 0))
                  << to_string(dtype);
            }
          }
        }
      }
    }
  }
}

TEST(Reduce, SumsAlongARowInEightLanes) {
  const Tensor a = random_tensor({1, 1003}, DType::f32, 22);
  float lane[8] = {};
  for (int i = 0; i < 1003; ++i)
    lane[i % 8] = i < 8 ? static_cast<float>(a.at(0, i)) : lane[i % 8] + static_cast<float>(a.at(0, i));
  const float expected = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  Tensor out({1, 1}, DType::f32);
  reduce(ReduceKind::sum, a.in(), 1, out.out());
  EXPECT_EQ(out.at(0, 0), expected);
}

TEST(Softmax, AgreesWithTheDefinition) {
  for (const DType dtype : kFloats) {
    const Tensor a = random_tensor({5, 777}, dtype, 23);
    Tensor out(a.shape, dtype);
    softmax(a.in(), out.out());
    for (std::int64_t row = 0; row < 5; ++row) {
      long double total = 0;
      for (std::int64_t col = 0; col < 777; ++col) total += std::exp(static_cast<long double>(a.at(row, col)));
      for (std::int64_t col = 0; col < 777; ++col) {
        const double expected = static_cast<double>(std::exp(static_cast<long double>(a.at(row, col))) / total);
        ASSERT_NEAR(out.at(row, col), rounded(expected, dtype), dtype == DType::f64 ? 1e-14 : 0) << to_string(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace kernbench::arith
