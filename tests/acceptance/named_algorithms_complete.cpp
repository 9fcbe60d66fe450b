#include <gtest/gtest.h>

#include "tests/acceptance/named_algorithms.h"

/// Far more rows of every algorithm, up to 1 Mi elements of a rank, in both grades.
namespace kernbench {
namespace {

class CompleteNamedAlgorithms : public ::testing::TestWithParam<named::Run> {};
INSTANTIATE_TEST_SUITE_P(Acceptance, CompleteNamedAlgorithms, ::testing::ValuesIn(named::all_runs()),
                         [](const auto& info) { return named::name(info.param); });

TEST_P(CompleteNamedAlgorithms, AreRightInEveryElementWhereverTheySayTheyServe) {
  EXPECT_EQ(named::wrong_with(GetParam()), "");
}

}  // namespace
}  // namespace kernbench
