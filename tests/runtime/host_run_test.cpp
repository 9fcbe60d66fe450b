#include "tests/runtime/host_run.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace kernbench::testing {
namespace {

// What holds all other tests of programs up: that a program ends otherwise than its test says fails the test.

const std::function<void(Context&)> kReturns = [](Context&) {};
const std::function<void(Context&)> kThrows = [](Context&) { throw std::runtime_error("made to fail"); };
const std::function<void(Context&)> kWaits = [](Context& ctx) { ctx.wait(ctx.promise("what never comes")); };

/// What the test would be told.
std::vector<std::string> failures_of(const std::function<void(Context&)>& program, Ending ending) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  ::testing::TestPartResultArray told;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &told);
    host.run(program, 1, ending);
  }
  std::vector<std::string> texts;
  for (int i = 0; i < told.size(); ++i) texts.emplace_back(told.GetTestPartResult(i).message());
  return texts;
}

TEST(HostRun, SaysNothingOfAProgramThatReturns) { EXPECT_TRUE(failures_of(kReturns, Ending::finished).empty()); }
TEST(HostRun, SaysNothingOfAnExpectedFailure) { EXPECT_TRUE(failures_of(kThrows, Ending::failure).empty()); }
TEST(HostRun, SaysNothingOfAProgramThatIsExpectedToWait) {
  EXPECT_TRUE(failures_of(kWaits, Ending::unfinished).empty());
}

TEST(HostRun, FailsIfAWorkerThrowsUnexpectedly) {
  const auto texts = failures_of(kThrows, Ending::finished);
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0], ::testing::HasSubstr("rank 0: made to fail"));
}
TEST(HostRun, FailsIfAProgramDoesNotReachItsEnd) {
  const auto texts = failures_of(kWaits, Ending::finished);
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0], ::testing::HasSubstr("rank 0 waits: "));
}
TEST(HostRun, FailsIfAnExpectedFailureDoesNotCome) { EXPECT_EQ(failures_of(kReturns, Ending::failure).size(), 1U); }
TEST(HostRun, FailsIfAProgramReturnsThatIsExpectedToWait) {
  EXPECT_EQ(failures_of(kReturns, Ending::unfinished).size(), 1U);
}
TEST(HostRun, FailsIfAProgramThrowsThatIsExpectedToWait) {
  EXPECT_EQ(failures_of(kThrows, Ending::unfinished).size(), 2U) << "it failed, and does not wait";
}

}  // namespace
}  // namespace kernbench::testing
