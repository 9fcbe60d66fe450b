#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

/// Every model of the presets, as far as its first two layers and four decode steps: with replay the time of prompt and
/// steps is within half a percent of that without. Hours: docs/replay.md has the figures of the last run.
class ReplayPresets : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ReplayPresets, TakeTheTimeThatTheyTakeWithoutReplay) {
  const Tool tool;
  const auto& [model, grade] = GetParam();
  const std::string prompt = grade == std::string("fast") ? "128" : "16";
  const auto time = [&, model = model, grade = grade](const char* replay) {
    const auto result = json_of(tool({"run",        "tp_transformer",
                                      "--model",    model,
                                      "--topology", "ring8",
                                      "--layers",   "2",
                                      "--prompt",   prompt,
                                      "--decode",   "4",
                                      "-w",         "0",
                                      "--data",     "off",
                                      "--fidelity", grade,
                                      "--replay",   replay,
                                      "--json",     "-"})
                                    .out);
    return result["results"].back()["request"]["time_ns"].get<double>();
  };
  const double without = time("off");
  EXPECT_NEAR(time("on"), without, 0.005 * without);
}

INSTANTIATE_TEST_SUITE_P(Models, ReplayPresets,
                         ::testing::Combine(::testing::Values("llama3-8b", "mixtral-8x7b", "llama3-70b", "gpt3-175b",
                                                              "llama3-405b"),
                                            ::testing::Values("fast", "accurate")));

}  // namespace
}  // namespace kernbench
