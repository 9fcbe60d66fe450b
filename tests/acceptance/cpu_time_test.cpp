#include <gtest/gtest.h>

#include "tests/acceptance/run_json.h"

namespace kernbench {
namespace {

TEST(ProcessorTime, OfAMebibyteAllReduceIsBelowTenSeconds) {
  const nlohmann::ordered_json json = run_json({"run", "all_reduce", "-b", "1M", "-e", "1M", "--dtype", "f16"});
  ASSERT_EQ(json["results"].size(), 1U);
  EXPECT_EQ(json["results"][0]["check"], "ok");
  ASSERT_TRUE(json["host"]["cpu_s"].is_number());
  EXPECT_GT(json["host"]["cpu_s"].get<double>(), 0.0);
  EXPECT_LT(json["host"]["cpu_s"].get<double>(), 10.0);
}

}  // namespace
}  // namespace kernbench
