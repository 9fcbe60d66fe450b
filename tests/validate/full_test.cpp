// Every case of the reference tables: minutes. Label `slow`; not part of `make test`.
#include <gtest/gtest.h>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {

class ValidateFull : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ValidateFull, IsWithinItsLimits) {
  const auto [domain, grade] = GetParam();
  const Tool tool;
  const Outcome outcome = tool({"validate", domain, "--fidelity", grade, "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Models, ValidateFull,
                         ::testing::Combine(::testing::Values("noc", "hbm", "links", "gemm"),
                                            ::testing::Values("accurate", "fast")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });
INSTANTIATE_TEST_SUITE_P(Collectives, ValidateFull,
                         ::testing::Combine(::testing::Values("collectives"), ::testing::Values("accurate")),
                         [](const auto&) { return std::string("accurate"); });

}  // namespace
}  // namespace kernbench
