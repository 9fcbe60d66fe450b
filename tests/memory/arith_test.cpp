#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/memory/arith_tensor.h"

namespace kernbench::arith {
namespace {

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
