#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/tool_runner.h"

namespace kernbench {

/// `auto` beside every shipped algorithm, each measured by `kernbench tune`, for one operation on one machine.
class AutoContest {
 public:
  struct Sizes {
    std::string least, most, factor;
  };
  AutoContest(std::vector<std::string> machine, std::string op, std::string scope = "sip")
      : machine_(std::move(machine)), op_(std::move(op)), scope_(std::move(scope)) {}

  void tune(const Sizes& sizes, const std::string& file) const {
    const Outcome outcome = tool_(joined({"tune", "-q", "--ops", op_, "-o", file}, sizes));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  /// Rows of `auto` with its candidates; `table`: tuned times, or empty.
  nlohmann::ordered_json rows(const Sizes& sizes, const std::string& table) const {
    std::vector<std::string> arguments{"run",        op_,    "--data",    "off",    "-d", "f32",
                                       "--fidelity", "fast", "--explain", "--json", "-"};
    if (!table.empty()) arguments.insert(arguments.end(), {"--ccl", table});
    const Outcome outcome = tool_(joined(arguments, sizes));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::ordered_json::parse(outcome.out, nullptr, false).value("results", nlohmann::ordered_json::array());
  }
  /// What `auto` takes at each size, by `table` or by what ships (empty), is at most 5 % slower than the best of all,
  /// measured at just these sizes.
  void expect_close(const Sizes& sizes, const std::string& table) const {
    tune(sizes, "all.yaml");
    const nlohmann::ordered_json chosen = rows(sizes, table), all = rows(sizes, "all.yaml");
    ASSERT_FALSE(chosen.empty());
    ASSERT_EQ(chosen.size(), all.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const nlohmann::ordered_json& best = all[i].at("explain").at("candidates").at(0);
      ASSERT_EQ(best.at("measured"), true);
      EXPECT_LE(chosen[i].at("time_ns").get<double>(), 1.05 * best.at("expected_ns").get<double>())
          << machine_.at(1) << (machine_.size() > 2 ? " " + machine_.at(3) : "") << ", scope " << scope_ << ": " << op_
          << " of " << chosen[i].at("bytes") << " B: " << chosen[i].at("algorithm") << ", best "
          << best.at("algorithm");
    }
  }

 private:
  std::vector<std::string> joined(std::vector<std::string> arguments, const Sizes& sizes) const {
    arguments.insert(arguments.end(), machine_.begin(), machine_.end());
    arguments.insert(arguments.end(), {"--scope", scope_, "-b", sizes.least, "-e", sizes.most, "-f", sizes.factor});
    return arguments;
  }

  const Tool tool_;
  const std::vector<std::string> machine_;
  const std::string op_, scope_;
};

}  // namespace kernbench
