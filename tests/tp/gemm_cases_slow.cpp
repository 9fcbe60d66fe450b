#include "tests/tp/gemm_cases.h"

namespace kernbench::testing {
namespace {

TEST(TpGemmCasesSlow, StreamGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::stream, 11, 200); }
TEST(TpGemmCasesSlow, PassedGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::passed, 12, 200); }
TEST(TpGemmCasesSlow, SplitGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::split, 14, 200); }
TEST(TpGemmCasesSlow, LanesGiveTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::lanes, 15, 200); }
TEST(TpGemmCasesSlow, VectorGivesTheExactSumsOf200Cases) { check_gemm_cases(tp::GemmMapping::Kind::vector, 13, 200); }

}  // namespace
}  // namespace kernbench::testing
