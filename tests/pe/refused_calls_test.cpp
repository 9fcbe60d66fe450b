// Calls of kernels that are refused when they are recorded.
#include "tests/pe/fault_reason.h"

namespace kernbench {
namespace {

using test::Bench;
using test::kMapped;
using test::kMappedToo;
using test::reason_of;

/// Tiles of C are written while others still read A and B: an element that is both would be one or the other.
TEST(PeFault, ACompositesResultLiesOverNoneOfItsInputs) {
  Bench bench;
  bench.map_hbm(0, 1 << 24);
  // 64 B in rows of 256 B: A, B and C side by side.
  CompositeGemm gemm;
  gemm.a = kMapped;
  gemm.b = kMapped + 64;
  gemm.c = kMapped + 128;
  gemm.m = gemm.n = gemm.k = 32;
  gemm.lda = gemm.ldb = gemm.ldc = 128;
  EXPECT_TRUE(bench.launch([&](Tl& tl) { tl.composite_gemm(gemm); }).faults.empty()) << "none is one of another";
  const auto with = [&](Va c, Va bias) {
    CompositeGemm other = gemm;
    other.c = c;
    other.epilogue.bias = bias;
    const std::string reason = reason_of(bench, [&](Tl& tl) { tl.composite_gemm(other); });
    return reason.substr(std::min(reason.size(), reason.find("c lies")));
  };
  const std::string why = ", of which later tiles need what is there: give c a place of its own";
  EXPECT_EQ(with(gemm.a, 0), "c lies over a" + why);
  EXPECT_EQ(with(gemm.b + 62, 0), "c lies over b" + why);
  EXPECT_EQ(with(gemm.a + 256 * 31 - 62, 0), "c lies over a" + why) << "its first row over A's last one";
  EXPECT_EQ(with(gemm.c, gemm.c + 256 * 31), "c lies over bias" + why);
}

/// Of a residual beside C, tiles of C would overwrite what others have yet to read.
TEST(PeFault, ACompositesResidualIsItsResultOrLiesElsewhere) {
  Bench bench;
  bench.map_hbm(0, 1 << 24);
  CompositeGemm gemm;
  gemm.a = kMapped;
  gemm.b = kMapped + 0x1000;
  gemm.c = kMapped + 0x4000;
  gemm.m = gemm.n = gemm.k = 32;
  gemm.ldc = 64;
  const auto with = [&](Va residual) {
    CompositeGemm other = gemm;
    other.epilogue.residual = residual;
    return other;
  };
  for (const Va allowed : {gemm.c, gemm.c + 64, gemm.c - 64, gemm.c + 32 * 128, gemm.c - 32 * 128}) {
    EXPECT_TRUE(bench.launch([&](Tl& tl) { tl.composite_gemm(with(allowed)); }).faults.empty()) << allowed - gemm.c;
  }
  for (const Va refused : {gemm.c + 2, gemm.c - 2, gemm.c + 62, gemm.c + 128, gemm.c - 128, gemm.c + 31 * 128}) {
    EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.composite_gemm(with(refused)); }),
              "kernel 'k' on sip0.cube0.pe0: composite_gemm(32x32x32 f16): c lies over the residual, of which later "
              "tiles need what is there: give c a place of its own, or that of the residual")
        << refused - gemm.c;
  }
}

TEST(PeFault, ACompositesLastRowsLieWithinTheAddresses) {
  Bench bench;
  bench.map_hbm(0, 1 << 24);
  const auto reason = [&](std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t lda, std::int64_t ldb,
                          std::int64_t ldc) {
    return reason_of(bench, [=](Tl& tl) {
      tl.composite_gemm({kMapped, kMappedToo, kMappedToo + 0x10000, m, n, k, DType::f16, lda, ldb, ldc, {}});
    });
  };
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  const std::string where = "kernel 'k' on sip0.cube0.pe0: composite_gemm(";
  const std::string why = " is 4611686018427387904: the last row lies beyond all addresses";
  EXPECT_EQ(reason(5, 4, 4, kFar, 0, 0), where + "5x4x4 f16): lda" + why);
  EXPECT_EQ(reason(5, 4, 4, 0, kFar, 0), where + "5x4x4 f16): ldb" + why);
  EXPECT_EQ(reason(5, 4, 4, 0, 0, kFar), where + "5x4x4 f16): ldc" + why);
  EXPECT_EQ(reason(1, 4, kFar, 0, 0, 0), where + "1x4x4611686018427387904 f16): lda" + why) << "its width, too";
  EXPECT_EQ(reason(kFar, 4, 4, 0, 0, 0),
            where + "4611686018427387904x4x4 f16): lda is 4: the last row lies beyond all addresses");
  EXPECT_EQ(reason(0, 4, 4, 0, 0, 0), where + "0x4x4 f16): give positive m, n and k");
}

TEST(PeFault, ARangeOfBoolIsRefused) {
  Bench bench;
  EXPECT_EQ(reason_of(bench, [](Tl& tl) { tl.arange(8, DType::boolean); }),
            "kernel 'k' on sip0.cube0.pe0: arange(1x8 bool): not defined for bool");
  EXPECT_EQ(reason_of(bench, [](Tl& tl) { tl.arange(8, static_cast<DType>(12)); }),
            "kernel 'k' on sip0.cube0.pe0: arange: DType(12) is none: they are numbered from 0 to 10");
}

/// It would have to make elements of none.
TEST(PeFault, AReductionOfNothingToElementsIsRefused) {
  Bench bench;
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.reduce(ReduceKind::sum, tl.alloc({0, 5}, DType::f32), 0);
                      }),
            "kernel 'k' on sip0.cube0.pe0: reduce_sum(0x5 f32): there is nothing to reduce");
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.reduce(ReduceKind::max, tl.alloc({5, 0}, DType::f32), 1);
                      }),
            "kernel 'k' on sip0.cube0.pe0: reduce_max(5x0 f32): there is nothing to reduce");
}

TEST(PeFault, AnEnumeratorThatThereIsNotIsRefused) {
  Bench bench;
  const std::string where = "kernel 'k' on sip0.cube0.pe0: ";
  EXPECT_EQ(reason_of(bench, [](Tl& tl) { tl.math(static_cast<MathOp>(200), {}); }),
            where + "math: MathOp(200) is none: they are numbered from 0 to 26");
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.alloc({1, 1}, static_cast<DType>(77));
                      }),
            where + "alloc: DType(77) is none: they are numbered from 0 to 10");
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.cast(tl.alloc({1, 1}, DType::f16), static_cast<DType>(11));
                      }),
            where + "cast: DType(11) is none: they are numbered from 0 to 10");
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.reduce(static_cast<ReduceKind>(3), tl.alloc({1, 1}, DType::f16), 0);
                      }),
            where + "reduce: ReduceKind(3) is none: they are numbered from 0 to 2");
  CompositeGemm gemm;
  gemm.epilogue.activation = static_cast<Activation>(6);
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.composite_gemm(gemm); }),
            where + "composite_gemm: Activation(6) is none: they are numbered from 0 to 5");
}

}  // namespace
}  // namespace kernbench
