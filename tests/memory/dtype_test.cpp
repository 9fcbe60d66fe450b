#include "tlm/kernel/dtype.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace kernbench {
namespace {

/// A binary format, decoded from its definition alone.
struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits;
  bool has_infinity;
  std::uint32_t largest;  // pattern of the largest finite value
};
const Format kFormats[] = {
    {DType::f16, 5, 10, true, 0x7bff},
    {DType::bf16, 8, 7, true, 0x7f7f},
    {DType::f8e4m3, 4, 3, false, 0x7e},  // OCP E4M3: 448
    {DType::f8e5m2, 5, 2, true, 0x7b},   // OCP E5M2: 57344
};

double decode(const Format& f, std::uint32_t magnitude) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const std::uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  return exponent == 0 ? std::ldexp(mantissa, 1 - bias - f.mantissa_bits)
                       : std::ldexp((1u << f.mantissa_bits) + mantissa, exponent - bias - f.mantissa_bits);
}

std::uint32_t pattern_of(const Format& f, double value) {
  std::uint16_t word = 0;
  store_element(&word, f.dtype, 0, value);
  return size_of(f.dtype) == 2 ? word : word & 0xff;
}
std::uint32_t sign_of(const Format& f) { return 1u << (f.exponent_bits + f.mantissa_bits); }
/// What lies beyond the largest finite value.
std::uint32_t overflow_of(const Format& f) { return f.largest + 1; }

class EveryFormat : public ::testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Float, EveryFormat, ::testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(to_string(info.param.dtype)); });

TEST_P(EveryFormat, EveryPatternHasItsValueAndRoundTrips) {
  const Format f = GetParam();
  for (std::uint32_t pattern = 0; pattern < 2 * sign_of(f); ++pattern) {
    const std::uint16_t word = static_cast<std::uint16_t>(pattern);
    const double value = load_element(&word, f.dtype, 0);
    const std::uint32_t magnitude = pattern & (sign_of(f) - 1);
    if (magnitude > f.largest) {
      const bool infinity = f.has_infinity && magnitude == f.largest + 1;
      ASSERT_EQ(std::isinf(value), infinity) << pattern;
      ASSERT_EQ(std::isnan(value), !infinity) << pattern;
      if (std::isnan(value)) {
        const std::uint32_t back = pattern_of(f, value) & (sign_of(f) - 1);
        ASSERT_GT(back, f.has_infinity ? f.largest + 1 : f.largest) << pattern;
        continue;
      }
    } else {
      ASSERT_EQ(std::fabs(value), decode(f, magnitude)) << pattern;
      ASSERT_EQ(std::signbit(value), (pattern & sign_of(f)) != 0) << pattern;
    }
    ASSERT_EQ(pattern_of(f, value), pattern);
  }
}

TEST_P(EveryFormat, HalfwayGoesToEvenAndEverythingElseToTheNearest) {
  const Format f = GetParam();
  for (std::uint32_t low = 0; low < f.largest; ++low) {
    const double a = decode(f, low), b = decode(f, low + 1), middle = (a + b) / 2;
    const double inf = std::numeric_limits<double>::infinity();
    for (const std::uint32_t sign : {0u, sign_of(f)}) {
      const double s = sign == 0 ? 1 : -1;
      ASSERT_EQ(pattern_of(f, s * middle), sign | (low % 2 == 0 ? low : low + 1)) << middle;
      // One ulp of f64 beside the middle: an intermediate rounding to f32 would lose it.
      ASSERT_EQ(pattern_of(f, s * std::nextafter(middle, -inf)), sign | low) << middle;
      ASSERT_EQ(pattern_of(f, s * std::nextafter(middle, inf)), sign | (low + 1)) << middle;
    }
  }
}

TEST_P(EveryFormat, OverflowStartsHalfAStepBeyondTheLargestValue) {
  const Format f = GetParam();
  const double largest = decode(f, f.largest), step = largest - decode(f, f.largest - 1);
  const double edge = largest + step / 2, inf = std::numeric_limits<double>::infinity();
  // The tie goes to even: up where the largest value has an odd pattern.
  EXPECT_EQ(pattern_of(f, edge), f.largest % 2 == 0 ? f.largest : overflow_of(f));
  EXPECT_EQ(pattern_of(f, std::nextafter(edge, 0.0)), f.largest);
  EXPECT_EQ(pattern_of(f, std::nextafter(edge, inf)), overflow_of(f));
  EXPECT_EQ(pattern_of(f, 1e300), overflow_of(f));
  EXPECT_EQ(pattern_of(f, inf), overflow_of(f));
  EXPECT_EQ(pattern_of(f, -inf), sign_of(f) | overflow_of(f));
}

TEST_P(EveryFormat, ArraysConvertAsElementsDo) {
  const Format f = GetParam();
  std::mt19937 random(3);
  std::vector<float> values(3000);
  for (float& value : values) {
    const std::uint32_t bits = static_cast<std::uint32_t>(random());
    std::memcpy(&value, &bits, sizeof value);
  }
  std::vector<std::uint16_t> narrow(values.size());
  convert(values.data(), DType::f32, narrow.data(), f.dtype, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double got = load_element(narrow.data(), f.dtype, i);
    std::uint16_t word = 0;
    store_element(&word, f.dtype, 0, values[i]);
    const double expected = load_element(&word, f.dtype, 0);
    ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << values[i];
  }
}

TEST(DType, HalfAndBfloat16AgreeWithEigen) {
  std::mt19937 random(5);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnan(value)) continue;
    std::uint16_t half = 0, brain = 0;
    store_element(&half, DType::f16, 0, value);
    store_element(&brain, DType::bf16, 0, value);
    ASSERT_EQ(half, Eigen::half(value).x) << value;
    ASSERT_EQ(brain, Eigen::bfloat16(value).value) << value;
  }
}

TEST(DType, FloatsBecomeIntegersByRoundingToEvenAndSaturating) {
  const auto to = [](double value, DType dtype) {
    std::int64_t word = 0;
    store_element(&word, dtype, 0, value);
    return load_integer(&word, dtype, 0);
  };
  EXPECT_EQ(to(2.5, DType::i8), 2);
  EXPECT_EQ(to(3.5, DType::i8), 4);
  EXPECT_EQ(to(-2.5, DType::i16), -2);
  EXPECT_EQ(to(127.5, DType::i8), 127);
  EXPECT_EQ(to(127.4, DType::i8), 127);
  EXPECT_EQ(to(-128.6, DType::i8), -128);
  EXPECT_EQ(to(1e10, DType::i32), INT32_MAX);
  EXPECT_EQ(to(-1e10, DType::i32), INT32_MIN);
  EXPECT_EQ(to(1e30, DType::i64), INT64_MAX);
  EXPECT_EQ(to(-1e30, DType::i64), INT64_MIN);
  EXPECT_EQ(to(9223372036854774784.0, DType::i64), 9223372036854774784);
  EXPECT_EQ(to(std::nan(""), DType::i32), 0);
  EXPECT_EQ(to(0.25, DType::boolean), 1);
  EXPECT_EQ(to(-0.0, DType::boolean), 0);
}

TEST(DType, IntegersRoundOnceEvenAboveTwoToThe53) {
  // 2^60 + 2^52 + 1 lies just above the middle of two bf16 values; by way of f64 or f32 it would become the middle.
  const std::int64_t value = (std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1;
  std::uint16_t brain = 0;
  convert(&value, DType::i64, &brain, DType::bf16, 1);
  EXPECT_EQ(load_element(&brain, DType::bf16, 0), std::ldexp(1.0 + 1.0 / 128, 60));
  const std::int64_t middle = value - 1;
  convert(&middle, DType::i64, &brain, DType::bf16, 1);
  EXPECT_EQ(load_element(&brain, DType::bf16, 0), std::ldexp(1.0, 60));
  const std::int64_t negative = -value;
  convert(&negative, DType::i64, &brain, DType::bf16, 1);
  EXPECT_EQ(load_element(&brain, DType::bf16, 0), -std::ldexp(1.0 + 1.0 / 128, 60));
  const std::int64_t lowest = INT64_MIN;
  convert(&lowest, DType::i64, &brain, DType::bf16, 1);
  EXPECT_EQ(load_element(&brain, DType::bf16, 0), -std::ldexp(1.0, 63));
}

TEST(DType, IntegerConversionsSaturateStoresWrap) {
  const std::int32_t values[] = {300, -300, 127, -128};
  std::int8_t bytes[4];
  convert(values, DType::i32, bytes, DType::i8, 4);
  EXPECT_EQ(bytes[0], 127);
  EXPECT_EQ(bytes[1], -128);
  EXPECT_EQ(bytes[2], 127);
  EXPECT_EQ(bytes[3], -128);
  store_integer(bytes, DType::i8, 0, 300);
  EXPECT_EQ(bytes[0], 44);
}

TEST(DType, ConversionKeepsEveryValueThatBothTypesHold) {
  for (int from = 0; from < kDTypes; ++from) {
    for (int to = 0; to < kDTypes; ++to) {
      for (const double value : {0.0, 1.0, -1.0, 2.0, -3.0, 7.0}) {
        const DType a = static_cast<DType>(from), b = static_cast<DType>(to);
        if ((a == DType::boolean || b == DType::boolean) && value != 0 && value != 1) continue;
        std::int64_t x = 0, y = 0;
        store_element(&x, a, 0, value);
        convert(&x, a, &y, b, 1);
        ASSERT_EQ(load_element(&y, b, 0), value) << to_string(a) << " to " << to_string(b);
      }
    }
  }
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("float16"), std::nullopt);
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::boolean), 1u);
  EXPECT_FALSE(is_float(DType::boolean));
  EXPECT_TRUE(is_float(DType::f8e5m2));
}

}  // namespace
}  // namespace kernbench
