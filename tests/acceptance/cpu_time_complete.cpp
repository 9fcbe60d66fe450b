#include <gtest/gtest.h>

#include "tests/acceptance/run_json.h"

namespace kernbench {
namespace {

nlohmann::ordered_json all_reduce_of_256_mebibytes(const std::vector<std::string>& machine) {
  return run_json(with(
      {"run", "all_reduce", "-b", "256M", "-e", "256M", "-w", "0", "--fidelity", "fast", "--data", "off", "--topology"},
      machine));
}

// Meant for a machine that does nothing else.
TEST(ProcessorTime, OfAFast256MebibyteAllReduceOver64SipsIsBelowAMinute) {
  const nlohmann::ordered_json json =
      all_reduce_of_256_mebibytes({"torus8x8", "--set", "pe.ipcq.slots=2", "--set", "pe.ipcq.slot_size=64 KiB"});
  ASSERT_EQ(json["results"].size(), 1U);
  EXPECT_LT(json["host"]["cpu_s"].get<double>(), 60);
  EXPECT_GT(json["results"][0]["bound_fraction"].get<double>(), 0.95);
}

TEST(ProcessorTime, OfAFast256MebibyteAllReduceOver256SipsIsBelowTenMinutesAnd8Gibibytes) {
  const nlohmann::ordered_json json = all_reduce_of_256_mebibytes({"torus16x16"});
  ASSERT_EQ(json["results"].size(), 1U);
  EXPECT_LT(json["host"]["cpu_s"].get<double>(), 600);
  EXPECT_LT(json["host"]["peak_rss_bytes"].get<double>(), 8.0 * 1024 * 1024 * 1024);
}

}  // namespace
}  // namespace kernbench
