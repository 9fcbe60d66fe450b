#include "sc_main/check/numerics.h"
#include "sc_main/check/gemm_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kernbench {
namespace {

struct Format {
  DType dtype;
  double smallest_normal;
};
const std::vector<Format> kNarrow{
    {DType::f16, 0x1p-14}, {DType::bf16, 0x1p-126}, {DType::f8e4m3, 0x1p-6}, {DType::f8e5m2, 0x1p-14}};

double rounded(DType dtype, double value) {
  std::uint64_t memory = 0;
  store_element(&memory, dtype, 0, value);
  return load_element(&memory, dtype, 0);
}

bool wrong(double got, double expected, double tolerance) {
  Comparison comparison;
  comparison.add(got, expected, tolerance);
  return comparison.mismatches == 1;
}

TEST(Numerics, SmallestSubnormalIsTheSmallestNumber) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const double smallest = smallest_subnormal(dtype);
    EXPECT_EQ(rounded(dtype, smallest), smallest) << to_string(dtype);
    EXPECT_EQ(rounded(dtype, smallest / 2), 0) << to_string(dtype);  // ties to even
  }
}

TEST(Numerics, LargestIsTheLargestNumber) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const double most = largest(dtype);
    EXPECT_EQ(rounded(dtype, most), most) << to_string(dtype);
    EXPECT_FALSE(std::isfinite(rounded(dtype, most + 2 * unit_roundoff(dtype) * most))) << to_string(dtype);
  }
}

/// Sums and products of the patterns for them never round: the narrowest type, as many contributions as there may be.
TEST(Patterns, AreReducedWithoutRounding) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    for (const Pattern::Contributions c :
         {Pattern::Contributions{1, 1}, {2, 1}, {16, 1}, {16, 4}, {1000, 1}, {300, 8}}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << c.streams << " streams of " << c.each);
      for (const bool product : {false, true}) {
        const Pattern pattern(1, dtype, product ? Pattern::Range::factor : Pattern::Range::term, c);
        constexpr std::size_t kElements = 100;
        std::vector<double> result(kElements, product ? 1 : 0);
        for (int stream = 0; stream < c.streams; ++stream) {
          const std::vector<std::uint8_t> data = pattern.bytes(static_cast<std::uint64_t>(stream), kElements);
          for (std::size_t i = 0; i < kElements; ++i) {
            const double x = load_element(data.data(), dtype, i);
            for (int copy = 0; copy < c.each; ++copy) {
              const double exact = product ? result[i] * x : result[i] + x;
              result[i] = rounded(dtype, exact);
              ASSERT_EQ(result[i], exact) << "element " << i;
            }
          }
        }
      }
    }
  }
}

/// A contribution that is missing changes nearly every element where all can be terms, and some in any case.
TEST(Patterns, ShowAMissingContribution) {
  const auto shown = [](DType dtype, Pattern::Range range, Pattern::Contributions c) {
    const double neutral = range == Pattern::Range::factor ? 1 : 0;
    const std::vector<std::uint8_t> data = Pattern(1, dtype, range, c).bytes(3, 1000);
    int elements = 0;
    for (std::size_t i = 0; i < 1000; ++i) elements += load_element(data.data(), dtype, i) != neutral ? 1 : 0;
    return elements;
  };
  EXPECT_EQ(shown(DType::f16, Pattern::Range::term, {16, 4}), 1000);
  EXPECT_EQ(shown(DType::f8e4m3, Pattern::Range::term, {16, 1}), 1000);
  EXPECT_EQ(shown(DType::f8e4m3, Pattern::Range::term, {16, 4}), 250) << "64 terms of 16 that it counts";
  EXPECT_GT(shown(DType::f8e4m3, Pattern::Range::factor, {16, 4}), 500);
}

/// An exact sum between two neighbouring numbers may come out as the nearer of them, and as no other.
TEST(GemmTolerance, AcceptsTheRoundedSumAndRefusesOneUlpMore) {
  for (const Format& format : kNarrow) {
    SCOPED_TRACE(to_string(format.dtype));
    const double spacing = smallest_subnormal(format.dtype);
    const double normal = format.smallest_normal;
    for (const double exact :
         {0.375 * spacing, 1.4 * spacing, 2.5 * spacing, normal - 0.5 * spacing, normal, 1.3 * normal, 5.7 * normal}) {
      const double tolerance = gemm_tolerance(format.dtype, 1, exact, exact);
      const double result = rounded(format.dtype, exact);
      const double ulp = std::max(spacing, std::exp2(std::floor(std::log2(exact))) * 2 * unit_roundoff(format.dtype));
      EXPECT_FALSE(wrong(result, exact, tolerance)) << exact;
      // Half an ulp is allowed (a relative bound: up to one), and the rounding errors of the f32 sum.
      EXPECT_LT(tolerance, 1.001 * ulp) << exact;
      EXPECT_TRUE(wrong(exact + tolerance + ulp, exact, tolerance)) << exact;
      EXPECT_TRUE(wrong(exact - tolerance - ulp, exact, tolerance)) << exact;
      const double beyond = result + (result >= exact ? 1 : -1) * ulp;
      EXPECT_TRUE(wrong(beyond, exact, tolerance)) << exact;
    }
  }
}

TEST(GemmTolerance, AllowsTheErrorsOfTheSumAndNotMore) {
  // 1 - 1 + ... of 128 products of magnitude 1: the f32 sum errs by at most 128 * 2^-24 * 128.
  const double tolerance = gemm_tolerance(DType::f32, 128, 0, 128);
  EXPECT_GE(tolerance, 128 * 0x1p-24 * 128);
  EXPECT_LE(tolerance, 1.02 * 128 * 0x1p-24 * 128);
}

/// Over several blocks of rows, and with shapes that are no multiples of anything.
TEST(GemmCheck, CountsTheElementsThatAreWrongAndNoOther) {
  const GemmShape shape{300, 7, 33, DType::f16};
  const Pattern pattern(1, shape.dtype, Pattern::Range::unit);
  const std::vector<std::uint8_t> a = pattern.bytes(1, 300 * 33), b = pattern.bytes(2, 33 * 7);
  std::vector<std::uint8_t> c(300 * 7 * 2);
  for (std::size_t i = 0; i < 300; ++i) {
    for (std::size_t j = 0; j < 7; ++j) {
      float sum = 0;  // as the machine adds
      for (std::size_t l = 0; l < 33; ++l)
        sum += static_cast<float>(load_element(a.data(), shape.dtype, i * 33 + l) *
                                  load_element(b.data(), shape.dtype, l * 7 + j));
      store_element(c.data(), shape.dtype, i * 7 + j, sum);
    }
  }
  EXPECT_EQ(check_gemm(shape, a, b, c).mismatches, 0u);
  for (const std::size_t at : {std::size_t{0}, std::size_t{256 * 7}, std::size_t{300 * 7 - 1}}) {
    const double right = load_element(c.data(), shape.dtype, at);
    store_element(c.data(), shape.dtype, at, right + std::max(std::abs(right) * 0.002, 1e-3));  // two ulps
  }
  const Comparison wrong = check_gemm(shape, a, b, c);
  EXPECT_EQ(wrong.mismatches, 3u);
  EXPECT_LT(wrong.max_abs_error, 0.1);
}

/// The outcome for an element of `dtype` of a reduction of `values`, that is `result`.
bool refused(ReduceOp op, DType dtype, const std::vector<double>& values, double result) {
  Reference reference(op, dtype, 1);
  std::uint64_t memory = 0;
  for (const double value : values) {
    store_element(&memory, dtype, 0, value);
    EXPECT_EQ(load_element(&memory, dtype, 0), value);
    reference.add(&memory);
  }
  store_element(&memory, dtype, 0, result);
  EXPECT_EQ(load_element(&memory, dtype, 0), result);
  Comparison comparison;
  reference.check(&memory, comparison);
  return comparison.mismatches != 0;
}

TEST(ReferenceCheck, AverageMayBeSubnormal) {
  for (const Format& format : kNarrow) {
    SCOPED_TRACE(to_string(format.dtype));
    const double s = smallest_subnormal(format.dtype);
    // The average of s and 2 s is 1.5 s: s and 2 s are the neighbours.
    EXPECT_FALSE(refused(ReduceOp::avg, format.dtype, {s, 2 * s}, 2 * s));
    EXPECT_TRUE(refused(ReduceOp::avg, format.dtype, {s, 2 * s}, 4 * s));
    EXPECT_TRUE(refused(ReduceOp::avg, format.dtype, {s, 2 * s}, 0));
  }
}

TEST(ReferenceCheck, ProductMayUnderflow) {
  for (const Format& format : kNarrow) {
    SCOPED_TRACE(to_string(format.dtype));
    const double s = smallest_subnormal(format.dtype);
    // 3 s / 2: s and 2 s are the neighbours.
    EXPECT_FALSE(refused(ReduceOp::prod, format.dtype, {3 * s, 0.5}, 2 * s));
    EXPECT_TRUE(refused(ReduceOp::prod, format.dtype, {3 * s, 0.5}, 4 * s));
    EXPECT_TRUE(refused(ReduceOp::prod, format.dtype, {3 * s, 0.5}, 0));
    // (s / 2) * 2 is 0 or s by the order of the factors.
    EXPECT_FALSE(refused(ReduceOp::prod, format.dtype, {s, 0.5, 2}, 0));
    // Products that cannot underflow get no absolute term: 1 is not 1 + 4 ulp.
    EXPECT_FALSE(refused(ReduceOp::prod, format.dtype, {1, 1}, 1));
    EXPECT_TRUE(refused(ReduceOp::prod, format.dtype, {1, 1}, 1 + 8 * unit_roundoff(format.dtype)));
  }
}

// Machine and host round alike: each may be off by as much, in opposite directions.
TEST(ReferenceCheck, ProductsInF64MayDifferByTheRoundingOfBoth) {
  const std::vector<double> factors{1.5, 1.5, 1.5, 1.5};  // twice 4 roundings of half an ulp of 1, times 5.0625
  EXPECT_FALSE(refused(ReduceOp::prod, DType::f64, factors, 5.0625 + 5 * 0x1p-50));
  EXPECT_TRUE(refused(ReduceOp::prod, DType::f64, factors, 5.0625 + 6 * 0x1p-50));
}

TEST(ReferenceCheck, ProductsOfPowersOfTwoAreExactWithinTheRange) {
  for (const Format& format : kNarrow) {
    SCOPED_TRACE(to_string(format.dtype));
    const double u = unit_roundoff(format.dtype);
    EXPECT_FALSE(refused(ReduceOp::prod, format.dtype, {2, -0.5, 4, 1}, -4));
    EXPECT_TRUE(refused(ReduceOp::prod, format.dtype, {2, -0.5, 4, 1}, -4 * (1 + 2 * u)));
    EXPECT_FALSE(refused(ReduceOp::prod, format.dtype, {2, -0.5, 4, 1.5}, -6 - 8 * u)) << "1.5 is none";
  }
}

TEST(ReferenceCheck, SumsAreExactWhileTheBitsCountTheirUnits) {
  for (const Format& format : kNarrow) {
    SCOPED_TRACE(to_string(format.dtype));
    const double units = 1 / unit_roundoff(format.dtype);  // as many as the significant bits count
    EXPECT_FALSE(refused(ReduceOp::sum, format.dtype, {units / 2, units / 2}, units));
    EXPECT_TRUE(refused(ReduceOp::sum, format.dtype, {units / 2, 3, -1}, units / 2 + 3));
    EXPECT_FALSE(refused(ReduceOp::sum, format.dtype, {units, 1, -1}, units - 1)) << "units + 1 rounds";
    EXPECT_FALSE(refused(ReduceOp::avg, format.dtype, {1, 2}, 1.5));
    EXPECT_TRUE(refused(ReduceOp::avg, format.dtype, {1, 2}, 2)) << "only the quotient may round";
  }
}

TEST(ReferenceCheck, SumsOfSubnormalNumbersAreExact) {
  for (const Format& format : kNarrow) {
    const double s = smallest_subnormal(format.dtype);
    EXPECT_FALSE(refused(ReduceOp::sum, format.dtype, {s, s}, 2 * s)) << to_string(format.dtype);
    EXPECT_TRUE(refused(ReduceOp::sum, format.dtype, {s, s}, 3 * s)) << to_string(format.dtype);
    EXPECT_TRUE(refused(ReduceOp::sum, format.dtype, {s, s}, s)) << to_string(format.dtype);
  }
}

TEST(ReferenceCheck, AnInfiniteSumIsThatAndNothingElse) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::prod}) {
    EXPECT_FALSE(refused(op, DType::f32, {inf, 1}, inf)) << to_string(op);
    EXPECT_TRUE(refused(op, DType::f32, {inf, 1}, -inf)) << to_string(op);
    EXPECT_TRUE(refused(op, DType::f32, {inf, 1}, 1)) << to_string(op);
  }
}

/// A double holds neither of the two.
TEST(ReferenceCheck, ComparesLargeIntegersExactly) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1, wrong = large - 1;
  Reference reference(ReduceOp::max, DType::i64, 1);
  reference.add(&large);
  Comparison same, other;
  reference.check(&large, same);
  EXPECT_EQ(same.mismatches, 0U);
  reference.check(&wrong, other);
  EXPECT_EQ(other.mismatches, 1U);
}

/// What a collective moves or combines shows in every byte of an integer.
TEST(Patterns, IntegersOfCollectivesUseAllOfTheirBits) {
  for (const DType dtype : {DType::i64, DType::i32, DType::i16, DType::i8}) {
    for (const Pattern::Range range : {Pattern::Range::term, Pattern::Range::factor}) {
      const std::vector<std::uint8_t> data = Pattern(1, dtype, range, {4, 1}).bytes(0, 1000);
      std::int64_t ones = 0, zeros = 0;
      for (std::size_t i = 0; i < 1000; ++i) {
        const std::int64_t value = load_integer(data.data(), dtype, i);
        ones |= value;
        zeros |= ~value;
      }
      EXPECT_EQ(ones, -1) << to_string(dtype);
      EXPECT_EQ(zeros, range == Pattern::Range::factor ? -2 : -1) << to_string(dtype);
    }
  }
}

}  // namespace
}  // namespace kernbench
