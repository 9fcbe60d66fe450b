#include "tests/sweep/kill_case.h"

namespace kernbench::sweep {
namespace {

TEST(SweepKilled, AtFiftyMomentsEndsAsIfItHadNotBeen) { kill_and_resume(50, 150); }

}  // namespace
}  // namespace kernbench::sweep
