// Every case of the reference tables: minutes. Label `slow`; not part of `make test`.
#include <gtest/gtest.h>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {

TEST(ValidateFull, NocIsWithinItsLimits) {
  const Tool tool;
  const Outcome outcome = tool({"validate", "noc", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(ValidateFull, CollectivesAreWithinTheirLimits) {
  const Tool tool;
  const Outcome outcome = tool({"validate", "collectives", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace kernbench
