#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/tool_runner.h"

namespace kernbench {

/// A preset with w x h SIPs.
inline std::vector<std::string> resized(const char* preset, int w, int h) {
  std::vector<std::string> machine{"--topology", preset, "--set", "system.sips.count=" + std::to_string(w * h)};
  if (h > 1) {
    for (const auto& [key, value] : {std::pair{"w", w}, std::pair{"h", h}})
      machine.insert(machine.end(), {"--set", "system.sips." + std::string(key) + "=" + std::to_string(value)});
  }
  return machine;
}

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
    std::vector<std::string> arguments{"run",  op_,         "--data", "off", "-d", "f32", "--fidelity",
                                       "fast", "--explain", "--json", "-",   "-n", "4"};
    if (!table.empty()) arguments.insert(arguments.end(), {"--ccl", table});
    const Outcome outcome = tool_(joined(arguments, sizes));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::ordered_json::parse(outcome.out, nullptr, false).value("results", nlohmann::ordered_json::array());
  }
  /// What `auto` takes at each size, by `table` or by what ships (empty), beside the best of all.
  /// Both times are those of `kernbench tune`: how the HBM's refreshes fall depends on what ran before, so a time of
  /// the run that chose is no match for them.
  struct Regret {
    double ratio = 0;  ///< of the times; 1: there is none faster
    std::string call;  ///< in words, with both names
  };
  std::vector<Regret> regrets(const Sizes& sizes, const std::string& table) const {
    std::vector<Regret> found;
    tune(sizes, "all.yaml");
    if (testing::Test::HasFatalFailure()) return found;
    const nlohmann::ordered_json chosen = rows(sizes, table);
    const std::map<std::string, std::vector<double>> measured = times("all.yaml");
    EXPECT_FALSE(chosen.empty());
    EXPECT_FALSE(measured.empty());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto algorithm = chosen[i].at("algorithm").get<std::string>();
      EXPECT_EQ(measured.count(algorithm), 1U) << algorithm;
      std::pair<double, std::string> best;
      for (const auto& [name, ns] : measured) {
        EXPECT_EQ(ns.size(), chosen.size()) << name;
        if (best.second.empty() || ns.at(i) < best.first) best = {ns.at(i), name};
      }
      found.push_back({measured.at(algorithm)[i] / best.first,
                       machine_.at(1) + (machine_.size() > 2 ? " " + machine_.at(3) : "") + ", scope " + scope_ + ": " +
                           op_ + " of " + chosen[i].at("bytes").dump() + " B: " + algorithm + ", best " + best.second});
    }
    return found;
  }
  /// At most 5 % slower than the best; on a machine that nobody has tuned 15 % (spec: the 90th percentile).
  void expect_close(const Sizes& sizes, const std::string& table) const {
    const double most = table.empty() ? 1.15 : 1.05;
    for (const Regret& regret : regrets(sizes, table)) EXPECT_LE(regret.ratio, most) << regret.call;
  }

 private:
  /// By algorithm: lines `      NAME: [ns, ...]` of a table with one row.
  std::map<std::string, std::vector<double>> times(const std::string& file) const {
    std::map<std::string, std::vector<double>> found;
    std::istringstream lines(read(tool_.file(file)));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t colon = line.find(": [");
      if (line.rfind("      ", 0) != 0 || colon == std::string::npos) continue;
      std::replace(line.begin(), line.end(), ',', ' ');
      std::istringstream numbers(line.substr(colon + 3));
      std::vector<double>& ns = found[line.substr(6, colon - 6)];
      for (double one = 0; numbers >> one;) ns.push_back(one);
    }
    return found;
  }
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
