#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs an all_reduce whose algorithm goes wrong in the way of `mode` (broken_algorithm.cpp).
Outcome run_broken(const Tool& tool, int mode, const std::string& more = "") {
  std::ofstream(tool.file("ccl.yaml"))
      << "defaults:\n  algorithm: broken\nalgorithms:\n  broken:\n    module: " KERNBENCH_BROKEN_ALGORITHM
         "\n    mode: "
      << mode << "\n";
  return tool.shell(quoted(KERNBENCH_BINARY) +
                    " run all_reduce -b 1K -e 1K --algorithm broken --ccl ccl.yaml --json result.json " + more);
}

TEST(Failure, WrongNumericsAreShownAndEndWithOne) {
  const Tool tool;
  const Outcome outcome = run_broken(tool, 0);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("FAILED"));
  EXPECT_THAT(read(tool.file("result.json")), HasSubstr("\"check\": \"wrong\""));
}

TEST(Failure, DeadlockNamesWhoWaitsForWhat) {
  const Tool tool;
  const Outcome outcome = run_broken(tool, 1, "--vcd run.vcd");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("deadlock"));
  EXPECT_THAT(outcome.err, HasSubstr("0    collective 'broken' on sip0"));
  EXPECT_THAT(outcome.err, HasSubstr("1    collective 'broken' on sip1"));
  EXPECT_THAT(outcome.err, HasSubstr("sip0.cube0.pe0"));
  EXPECT_THAT(outcome.err, HasSubstr("recv(global_E, 1x8 f16)"));
  EXPECT_THAT(outcome.err, HasSubstr("wait cycle of 2 PEs:\n  sip0.cube0.pe0 waits for data"));
  EXPECT_FALSE(std::filesystem::exists(tool.file("result.json"))) << "a result that looks whole";
  EXPECT_THAT(read(tool.file("run.vcd")), HasSubstr("$enddefinitions")) << "the waves that show what led there";
}

TEST(Failure, MissingSendCanBeReadOff) {
  const Tool tool;
  const Outcome outcome = run_broken(tool, 3);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("0    barrier; not reached by rank 1"));
  EXPECT_THAT(outcome.err, HasSubstr("1    collective 'broken' on sip1"));
  EXPECT_THAT(outcome.err, HasSubstr("recv(global_W, 1x8 f16)"));
  EXPECT_THAT(outcome.err, HasSubstr("no wait cycle; where the chain ends:\n  sip1.cube0.pe0 waits for data"));
  EXPECT_THAT(outcome.err, HasSubstr("sip0.cube0.pe0 is not blocked: its kernel has ended or was never launched"));
}

TEST(Failure, DeviceFaultNamesPeAndKernel) {
  const Tool tool;
  const Outcome outcome = run_broken(tool, 2);
  EXPECT_EQ(outcome.code, 8);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("sip0.cube0.pe0"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("internal error")));
  EXPECT_FALSE(std::filesystem::exists(tool.file("result.json")));
}

}  // namespace
}  // namespace kernbench
