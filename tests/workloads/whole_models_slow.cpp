#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

using Args = std::vector<std::string>;

nlohmann::ordered_json run_of(const Args& more) {
  const Tool tool;
  Args arguments{"run", "tp_transformer", "--data", "off", "--fidelity", "fast", "--json", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = tool(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json_of(outcome.out);
}
double cpu_s(const nlohmann::ordered_json& result) { return result["host"]["cpu_s"].get<double>(); }

/// Minutes; on a machine that does nothing else. docs/replay.md has the figures of the last runs.
class WholeModels : public ::testing::TestWithParam<std::pair<const char*, double>> {};

TEST_P(WholeModels, TakeNoMoreCpuAndMemoryThanTheyMay) {
  constexpr double kGiB = 1 << 30;
  const auto& [model, most_s] = GetParam();
  const auto result =
      run_of({"--model", model, "--set", "system.sips.count=8", "--prompt", "2048", "--decode", "128", "-w", "0"});
  EXPECT_LE(cpu_s(result), most_s);
  EXPECT_LE(result["host"]["peak_rss_bytes"].get<double>(), 4 * kGiB);
  EXPECT_GE(result["replay"]["repeated_time_share"].get<double>(), 0.95);
}

INSTANTIATE_TEST_SUITE_P(Presets, WholeModels,
                         ::testing::Values(std::pair("llama3-8b", 120.0), std::pair("llama3-70b", 300.0)));

TEST(WholeModelsSlow, ARepeatedLaunchCostsAtMostAFiveHundredthOfSimulatingIt) {
  const auto decode = [](const char* steps, const Args& more) {
    Args arguments{"--model",   "llama3-8b", "--topology", "ring8", "--prompt", "0",
                   "--context", "512",       "-w",         "0",     "--decode", steps};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_of(arguments);
  };
  const auto few = decode("32", {}), many = decode("96", {}),
             simulated = decode("2", {"--layers", "2", "--ends", "0", "--replay", "off"}),
             less = decode("1", {"--layers", "2", "--ends", "0", "--replay", "off"});
  const auto repeats = [](const nlohmann::ordered_json& result) {
    return result["replay"]["repeated_launches"].get<double>() + result["replay"]["repeated_collectives"].get<double>();
  };
  const double of_repeat = (cpu_s(many) - cpu_s(few)) / (repeats(many) - repeats(few));
  const double of_step = cpu_s(simulated) - cpu_s(less);
  const double launches =
      (repeats(many) - repeats(few)) / (96 - 32) * 2 / 32;  // of a step of two of 32 layers, at most
  EXPECT_LE(500 * of_repeat, of_step / launches);
}

TEST(WholeModelsSlow, AThousandRequestsAreServedInLessCpuTimeThanTheyTake) {
  const auto result = run_of({"--model", "llama3-8b", "--topology", "ring8", "--requests", "1000", "--rate", "5.5",
                              "--lengths", "conversation", "--batch", "64"});
  EXPECT_LE(cpu_s(result), result["results"].back()["time_ns"].get<double>() * 1e-9);
}

}  // namespace
}  // namespace kernbench
