#include <gtest/gtest.h>

#include "tests/acceptance/run_json.h"
#include "tests/support/children_cpu.h"

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

/// s of CPU time of a GEMM of 4096 x 4096 x 4096 from its start to its end, and whether it was right.
double cpu_s_of_gemm(const char* check, const char* expected) {
  const double before = children_cpu_s();
  const nlohmann::ordered_json json =
      run_json({"run", "gemm", "--m", "4096", "--n", "4096", "--k", "4096", "--fidelity", "fast", "-c", check});
  const double after = children_cpu_s();
  EXPECT_EQ(json["results"][0]["check"], expected);
  return after - before;
}

/// The check's sums take the order of a library's matrix product: 4096^3 took minutes, and the watchdog ended it.
TEST(ProcessorTime, OfTheCheckOfAGemmOf4096CubedIsBelowAMinute) {
  const double unchecked = cpu_s_of_gemm("0", "skipped"), checked = cpu_s_of_gemm("1", "ok");
  RecordProperty("unchecked_s", std::to_string(unchecked));
  RecordProperty("checked_s", std::to_string(checked));
  EXPECT_LT(checked - unchecked, 60);
  EXPECT_LT(checked, 180) << "the simulation with its arithmetic besides";
}

}  // namespace
}  // namespace kernbench
