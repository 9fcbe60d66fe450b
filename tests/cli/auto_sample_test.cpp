#include "tests/cli/auto_contest.h"

namespace kernbench {
namespace {

const std::vector<std::string> kRing8{"--topology", "ring8"},
    kRing5{"--topology", "ring8", "--set", "system.sips.count=5"};

TEST(Auto, IsCloseToTheBestOfAPresetMidwayBetweenTunedSizes) {
  for (const char* op : {"all_reduce", "all_gather"}) AutoContest(kRing8, op).expect_close({"2K", "128K", "8"}, "");
}

TEST(Auto, IsCloseToTheBestOfAMachineThatWasNeverTuned) {
  AutoContest(kRing5, "all_reduce").expect_close({"2K", "128K", "8"}, "");
}

TEST(Auto, TakesATunedTableBetweenItsSizes) {
  const AutoContest contest(kRing5, "all_reduce");
  contest.tune({"4K", "64K", "4"}, "tuned.yaml");
  contest.expect_close({"8K", "32K", "4"}, "tuned.yaml");
}

/// Data that divide into lines, and some that do not.
TEST(Auto, WhatItExpectsOfAMachineThatWasNeverTunedIsWhatItTakes) {
  for (const char* op : {"all_to_all", "reduce_scatter"}) {
    const auto rows = AutoContest(kRing5, op).rows({"2K", "128K", "8"}, "");
    ASSERT_EQ(rows.size(), 3U);
    for (const auto& row : rows) {
      const auto& expected = row.at("explain").at("candidates").at(0);
      EXPECT_FALSE(expected.at("measured").get<bool>());
      EXPECT_NEAR(row.at("time_ns").get<double>() / expected.at("expected_ns").get<double>(), 1, 0.12)
          << op << " of " << row.at("bytes") << " B by " << row.at("algorithm");
    }
  }
}

TEST(Auto, ShippedTimesArePartOfAResultAndItsHash) {
  const Tool tool;
  const auto result = [&](const std::vector<std::string>& machine) {
    std::vector<std::string> arguments{"run", "barrier", "--data", "off", "--fidelity", "fast", "--json", "-"};
    arguments.insert(arguments.end(), machine.begin(), machine.end());
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::ordered_json::parse(outcome.out, nullptr, false);
  };
  const nlohmann::ordered_json preset = result(kRing8), other = result(kRing5);
  EXPECT_EQ(preset.at("tuned").get<std::string>().find("  - machine: ring_1d_8_"), 0U);
  EXPECT_TRUE(other.at("tuned").is_null());
  const Outcome checked = tool({"topology", "check", "ring8"});
  EXPECT_NE(checked.out.find("configuration "), std::string::npos) << checked.out << checked.err;
  EXPECT_EQ(checked.out.find(preset.at("config_hash").get<std::string>()), std::string::npos) << checked.out;
}

}  // namespace
}  // namespace kernbench
