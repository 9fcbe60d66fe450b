#include "models/arith/arith.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace kernbench::arith {
namespace {

constexpr DType kFloats[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};
constexpr DType kIntegers[] = {DType::i64, DType::i32, DType::i16, DType::i8};

/// A tile that owns its elements.
struct Tensor {
  Tensor(Shape shape, DType dtype)
      : shape(shape), dtype(dtype), bytes((static_cast<std::size_t>(shape.count()) * size_of(dtype) + 7) / 8) {}
  In in() const { return {bytes.data(), shape, dtype}; }
  Out out() { return {bytes.data(), shape, dtype}; }
  double at(std::int64_t row, std::int64_t col) const { return load_element(bytes.data(), dtype, index(row, col)); }
  std::int64_t integer(std::int64_t row, std::int64_t col) const {
    return load_integer(bytes.data(), dtype, index(row, col));
  }
  void set(std::int64_t row, std::int64_t col, double value) {
    store_element(bytes.data(), dtype, index(row, col), value);
  }
  std::size_t index(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>((shape.rows == 1 ? 0 : row) * shape.cols + (shape.cols == 1 ? 0 : col));
  }
  Shape shape;
  DType dtype;
  std::vector<std::uint64_t> bytes;
};

Tensor random_tensor(Shape shape, DType dtype, unsigned seed, double low = -4, double high = 4) {
  Tensor tensor(shape, dtype);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(low, high);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t col = 0; col < shape.cols; ++col) {
      if (is_float(dtype)) {
        tensor.set(row, col, value(random));
      } else {
        store_integer(tensor.bytes.data(), dtype, tensor.index(row, col),
                      static_cast<std::int64_t>(random() >> (random() % 64)));
      }
    }
  }
  return tensor;
}

double rounded(double value, DType dtype) {
  std::uint64_t word = 0;
  store_element(&word, dtype, 0, value);
  return load_element(&word, dtype, 0);
}

int digits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 53;
    case DType::f32:
      return 24;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    case DType::f8e4m3:
      return 4;
    default:
      return 3;
  }
}

double reference(MathOp op, double a, double b) {
  switch (op) {
    case MathOp::add:
      return a + b;
    case MathOp::sub:
      return a - b;
    case MathOp::mul:
      return a * b;
    case MathOp::div:
      return a / b;
    case MathOp::minimum:
      return std::min(a, b);
    case MathOp::maximum:
      return std::max(a, b);
    case MathOp::less:
      return a < b;
    case MathOp::less_equal:
      return a <= b;
    default:
      return a == b;
  }
}

constexpr MathOp kBinary[] = {MathOp::add,     MathOp::sub,  MathOp::mul,        MathOp::div,  MathOp::minimum,
                              MathOp::maximum, MathOp::less, MathOp::less_equal, MathOp::equal};

struct Shapes {
  Shape a, b, out;
};
const Shapes kShapes[] = {{{1, 1}, {1, 1}, {1, 1}},      {{3, 7}, {3, 7}, {3, 7}},     {{5, 600}, {5, 600}, {5, 600}},
                          {{4, 9}, {1, 9}, {4, 9}},      {{1, 9}, {4, 9}, {4, 9}},     {{4, 9}, {4, 1}, {4, 9}},
                          {{4, 600}, {1, 1}, {4, 600}},  {{1, 1}, {4, 600}, {4, 600}}, {{6, 1}, {1, 5}, {6, 5}},
                          {{1, 1300}, {3, 1}, {3, 1300}}};

TEST(Math, TwoOperandsOfEveryFloatTypeAreRoundedOnce) {
  for (const DType dtype : kFloats) {
    for (const Shapes& shapes : kShapes) {
      for (const MathOp op : kBinary) {
        const Tensor a = random_tensor(shapes.a, dtype, 1), b = random_tensor(shapes.b, dtype, 2);
        Tensor out(shapes.out, result_type(op, dtype));
        math(op, {a.in(), b.in()}, out.out());
        for (std::int64_t row = 0; row < shapes.out.rows; ++row) {
          for (std::int64_t col = 0; col < shapes.out.cols; ++col) {
            const double expected = rounded(reference(op, a.at(row, col), b.at(row, col)), out.dtype);
            const double got = out.at(row, col);
            ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
                << to_string(op) << " " << to_string(dtype) << " " << a.at(row, col) << ", " << b.at(row, col) << ": "
                << got;
          }
        }
      }
    }
  }
}

TEST(Math, IntegersWrap) {
  for (const DType dtype : kIntegers) {
    for (const Shapes& shapes : kShapes) {
      for (const MathOp op :
           {MathOp::add, MathOp::sub, MathOp::mul, MathOp::div, MathOp::minimum, MathOp::maximum, MathOp::less}) {
        const Tensor a = random_tensor(shapes.a, dtype, 3), b = random_tensor(shapes.b, dtype, 4);
        Tensor out(shapes.out, result_type(op, dtype));
        math(op, {a.in(), b.in()}, out.out());
        for (std::int64_t row = 0; row < shapes.out.rows; ++row) {
          for (std::int64_t col = 0; col < shapes.out.cols; ++col) {
            const __int128 x = a.integer(row, col), y = b.integer(row, col);
            __int128 exact = 0;
            switch (op) {
              case MathOp::add:
                exact = x + y;
                break;
              case MathOp::sub:
                exact = x - y;
                break;
              case MathOp::mul:
                exact = x * y;
                break;
              case MathOp::div:
                exact = y == 0 ? 0 : x / y;
                break;
              case MathOp::minimum:
                exact = std::min(x, y);
                break;
              case MathOp::maximum:
                exact = std::max(x, y);
                break;
              default:
                exact = x < y;
            }
            std::uint64_t word = 0;
            store_integer(&word, out.dtype, 0, static_cast<std::int64_t>(static_cast<unsigned __int128>(exact)));
            ASSERT_EQ(out.integer(row, col), load_integer(&word, out.dtype, 0))
                << to_string(op) << " " << to_string(dtype);
          }
        }
      }
    }
  }
}

TEST(Math, TheEdgesOfIntegers) {
  Tensor lowest({1, 2}, DType::i64), minus_one({1, 2}, DType::i64), zero({1, 2}, DType::i64), out({1, 2}, DType::i64);
  for (int i = 0; i < 2; ++i) {
    store_integer(lowest.bytes.data(), DType::i64, static_cast<std::size_t>(i), INT64_MIN);
    store_integer(minus_one.bytes.data(), DType::i64, static_cast<std::size_t>(i), -1);
  }
  math(MathOp::div, {lowest.in(), minus_one.in()}, out.out());
  EXPECT_EQ(out.integer(0, 1), INT64_MIN);
  math(MathOp::div, {lowest.in(), zero.in()}, out.out());
  EXPECT_EQ(out.integer(0, 1), 0);
  math(MathOp::abs, {lowest.in()}, out.out());
  EXPECT_EQ(out.integer(0, 0), INT64_MIN);
  math(MathOp::neg, {minus_one.in()}, out.out());
  EXPECT_EQ(out.integer(0, 0), 1);
  math(MathOp::relu, {minus_one.in()}, out.out());
  EXPECT_EQ(out.integer(0, 0), 0);
}

TEST(Math, BoolAddsAsOrAndMultipliesAsAnd) {
  Tensor a({1, 4}, DType::boolean), b({1, 4}, DType::boolean), out({1, 4}, DType::boolean);
  for (int i = 0; i < 4; ++i) {
    a.set(0, i, i & 1);
    b.set(0, i, i & 2);
  }
  math(MathOp::add, {a.in(), b.in()}, out.out());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out.at(0, i), i != 0);
  math(MathOp::mul, {a.in(), b.in()}, out.out());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out.at(0, i), i == 3);
}

TEST(Math, OneOperandIsRoundedOnce) {
  using Function = long double (*)(long double);
  const std::pair<MathOp, Function> table[] = {
      {MathOp::neg, [](long double x) { return -x; }},
      {MathOp::abs, [](long double x) { return std::fabs(x); }},
      {MathOp::relu, [](long double x) { return std::max(x, 0.0L); }},
      {MathOp::exp, [](long double x) { return std::exp(x); }},
      {MathOp::log, [](long double x) { return std::log(x); }},
      {MathOp::sqrt, [](long double x) { return std::sqrt(x); }},
      {MathOp::rsqrt, [](long double x) { return 1 / std::sqrt(x); }},
      {MathOp::tanh, [](long double x) { return std::tanh(x); }},
      {MathOp::sigmoid, [](long double x) { return std::exp(x) / (1 + std::exp(x)); }},
      {MathOp::gelu, [](long double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0L)); }},
      {MathOp::silu, [](long double x) { return x * std::exp(x) / (1 + std::exp(x)); }},
  };
  for (const DType dtype : kFloats) {
    for (const auto& [op, function] : table) {
      const bool positive = op == MathOp::log || op == MathOp::sqrt || op == MathOp::rsqrt;
      const Tensor a = random_tensor({3, 700}, dtype, 5, positive ? 0.01 : -4, 4);
      Tensor out(a.shape, dtype);
      math(op, {a.in()}, out.out());
      // Half a unit of the last digit; f64 results carry the error of the C library and of a few operations.
      const double unit = std::ldexp(dtype == DType::f64 ? 40.0 : 1.001, -digits(dtype));
      const double smallest = dtype == DType::f8e4m3   ? std::ldexp(1.0, -10)
                              : dtype == DType::f8e5m2 ? std::ldexp(1.0, -17)
                                                       : 1e-7;
      for (std::int64_t row = 0; row < 3; ++row) {
        for (std::int64_t col = 0; col < 700; ++col) {
          const double expected = static_cast<double>(function(a.at(row, col)));
          ASSERT_LE(std::fabs(out.at(row, col) - expected),
                    unit * std::fabs(expected) + (dtype == DType::f64 ? 1e-15 : smallest))
              << to_string(op) << " " << to_string(dtype) << " of " << a.at(row, col);
        }
      }
    }
  }
}

TEST(Math, NanGoesThroughMinMaxAndRelu) {
  for (const DType dtype : kFloats) {
    Tensor a({1, 2}, dtype), b({1, 2}, dtype), out({1, 2}, dtype);
    a.set(0, 0, std::nan(""));
    a.set(0, 1, 1);
    b.set(0, 0, 1);
    b.set(0, 1, std::nan(""));
    for (const MathOp op : {MathOp::minimum, MathOp::maximum}) {
      math(op, {a.in(), b.in()}, out.out());
      EXPECT_TRUE(std::isnan(out.at(0, 0)) && std::isnan(out.at(0, 1))) << to_string(dtype);
    }
    math(MathOp::relu, {a.in()}, out.out());
    EXPECT_TRUE(std::isnan(out.at(0, 0)));
  }
}

TEST(Math, ResultMayReplaceAnOperand) {
  for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
    Tensor a = random_tensor({3, 1111}, dtype, 6);
    const Tensor b = random_tensor({3, 1111}, dtype, 7), before = a;
    Tensor apart(a.shape, dtype);
    math(MathOp::add, {before.in(), b.in()}, apart.out());
    math(MathOp::add, {a.in(), b.in()}, a.out());
    EXPECT_EQ(a.bytes, apart.bytes);
  }
}

TEST(Math, SelectTakesFromTheFirstWhereTheMaskIsSet) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::i8}) {
    const Tensor a = random_tensor({4, 6}, dtype, 8), b = random_tensor({1, 6}, dtype, 9);
    Tensor mask({4, 1}, DType::boolean), out({4, 6}, dtype);
    mask.set(1, 0, 1);
    mask.set(3, 0, 1);
    math(MathOp::select, {mask.in(), a.in(), b.in()}, out.out());
    for (int row = 0; row < 4; ++row) {
      for (int col = 0; col < 6; ++col) EXPECT_EQ(out.at(row, col), row % 2 == 1 ? a.at(row, col) : b.at(row, col));
    }
  }
}

TEST(Math, TransposeBroadcastFillAndArange) {
  for (int type = 0; type < kDTypes; ++type) {
    const DType dtype = static_cast<DType>(type);
    const Tensor a = random_tensor({37, 70}, dtype, 10);
    Tensor turned({70, 37}, dtype), wide({5, 70}, dtype), constant({3, 5}, dtype);
    math(MathOp::transpose, {a.in()}, turned.out());
    for (int row = 0; row < 37; ++row) {
      for (int col = 0; col < 70; ++col) ASSERT_EQ(turned.at(col, row), a.at(row, col));
    }
    const In line{a.bytes.data(), {1, 70}, dtype}, column{a.bytes.data(), {5, 1}, dtype};
    math(MathOp::broadcast, {line}, wide.out());
    for (int row = 0; row < 5; ++row) {
      for (int col = 0; col < 70; ++col) ASSERT_EQ(wide.at(row, col), a.at(0, col));
    }
    math(MathOp::broadcast, {column}, wide.out());
    for (int row = 0; row < 5; ++row) {
      for (int col = 0; col < 70; ++col) ASSERT_EQ(wide.at(row, col), a.at(0, row));
    }
    fill(constant.out(), 1);
    for (int i = 0; i < 15; ++i) ASSERT_EQ(constant.at(i / 5, i % 5), 1);
    if (dtype == DType::boolean) continue;
    arange(constant.out(), 2);
    for (int i = 0; i < 15; ++i) ASSERT_EQ(constant.at(i / 5, i % 5), rounded(2 + i, dtype));
  }
}

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

TEST(Arith, RefusesWhatIsNotDefined) {
  const auto text = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  Tensor f({2, 3}, DType::f16), g({3, 2}, DType::f16), i({2, 3}, DType::i32), mask({2, 3}, DType::boolean);
  EXPECT_EQ(text([&] { math(MathOp::add, {f.in(), g.in()}, f.out()); }), "arith: add: 3x2 does not broadcast to 2x3");
  EXPECT_EQ(text([&] { math(MathOp::add, {f.in(), i.in()}, f.out()); }), "arith: add of f16 and i32");
  EXPECT_EQ(text([&] { math(MathOp::exp, {i.in()}, i.out()); }), "arith: exp is not defined for i32");
  EXPECT_EQ(text([&] { math(MathOp::less, {f.in(), f.in()}, f.out()); }), "arith: less of f16 does not give f16");
  EXPECT_EQ(text([&] {
              math(MathOp::select, {f.in(), f.in(), f.in()}, f.out());
            }),
            "arith: the mask of select is f16, not bool");
  EXPECT_EQ(text([&] { math(MathOp::add, {f.in()}, f.out()); }), "arith: add takes 2 operands, not 1");
  EXPECT_EQ(text([&] { gemm(f.in(), f.in(), nullptr, f.out()); }), "arith: gemm of 2x3 and 2x3 does not give 2x3");
  EXPECT_EQ(text([&] { gemm(f.in(), i.in(), nullptr, f.out()); }), "arith: gemm of f16 and i32 to f16");
  EXPECT_EQ(text([&] { softmax(i.in(), i.out()); }), "arith: softmax of 2x3 i32 to 2x3 i32");
  EXPECT_EQ(text([&] { math(MathOp::transpose, {f.in()}, f.out()); }), "arith: transpose of 2x3 is not 2x3");
}

TEST(Arith, BroadcastShapes) {
  EXPECT_EQ(broadcast_shape({4, 9}, {1, 9}), (Shape{4, 9}));
  EXPECT_EQ(broadcast_shape({4, 1}, {1, 9}), (Shape{4, 9}));
  EXPECT_EQ(broadcast_shape({1, 1}, {4, 9}), (Shape{4, 9}));
  EXPECT_EQ(broadcast_shape({4, 9}, {9, 4}), std::nullopt);
  EXPECT_EQ(broadcast_shape({4, 9}, {2, 9}), std::nullopt);
}

}  // namespace
}  // namespace kernbench::arith
