#include "tests/tp/gemm_cases.h"

namespace kernbench::testing {
namespace {

TEST(TpGemmCasesSlow, StreamGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::stream, 11, 200); }
TEST(TpGemmCasesSlow, PassedGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::passed, 12, 200); }
TEST(TpGemmCasesSlow, SplitGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::split, 14, 200); }
TEST(TpGemmCasesSlow, RingOnALineGivesTheExactSumsOf200Cases) {
  check_gemm_cases(tp::GemmMapping::Kind::ring, 16, 200);
}
TEST(TpGemmCasesSlow, RingGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::ring, 17, 200, 3, 2); }
TEST(TpGemmCasesSlow, LanesGiveTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::lanes, 15, 200); }
TEST(TpGemmCasesSlow, VectorGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::vector, 13, 200); }

}  // namespace
}  // namespace kernbench::testing
