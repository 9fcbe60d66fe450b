#pragma once
#include <fstream>
#include <limits>

#include "tests/cli/auto_contest.h"

namespace kernbench {

/// `auto` beside every shipped algorithm where ranks are PEs: the first of the machine, as many as ccl.yaml says. Times
/// are means of 40 iterations, over which the phases of refreshes even out: of four they differ by up to 20 %.
class PeContest {
 public:
  PeContest(std::vector<std::string> machine, int ranks) : machine_(std::move(machine)) {
    const Outcome list = tool_({"list"});
    EXPECT_EQ(list.code, 0) << list.err;
    std::istringstream lines(list.out.substr(list.out.find("Algorithms of collectives")));
    std::ofstream file(tool_.file("ranks.yaml"));
    file << "defaults: { world_size: " << ranks << " }\nalgorithms:\n";
    std::string line;
    for (std::getline(lines, line); std::getline(lines, line) && line.rfind("  ", 0) == 0;) {
      algorithms_.push_back(line.substr(2));
      file << line << ": { module: kernbench.ccl." << algorithms_.back() << " }\n";
    }
    EXPECT_GT(algorithms_.size(), 5U);
  }
  /// What `auto` takes at each size is at most 5 % slower than the best of all.
  void expect_close(const std::string& op, const AutoContest::Sizes& sizes) const {
    const nlohmann::ordered_json chosen = rows(op, "auto", sizes);
    ASSERT_FALSE(chosen.empty());
    std::map<std::string, nlohmann::ordered_json> all;
    for (const std::string& algorithm : algorithms_) {
      nlohmann::ordered_json found = rows(op, algorithm, sizes);
      if (found.size() == chosen.size()) all[algorithm] = std::move(found);
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto ns = [&](const std::string& algorithm) { return all.at(algorithm)[i].at("time_ns").get<double>(); };
      const auto algorithm = chosen[i].at("algorithm").get<std::string>();
      ASSERT_EQ(all.count(algorithm), 1U) << algorithm;
      std::pair<double, std::string> best{std::numeric_limits<double>::max(), ""};
      for (const auto& one : all) best = std::min(best, std::pair(ns(one.first), one.first));
      EXPECT_LE(ns(algorithm), 1.05 * best.first)
          << op << " of " << chosen[i].at("bytes") << " B: " << algorithm << ", best " << best.second;
    }
  }

 private:
  /// Of an algorithm that does not serve the operation none.
  nlohmann::ordered_json rows(const std::string& op, const std::string& algorithm,
                              const AutoContest::Sizes& sizes) const {
    std::vector<std::string> arguments{"run",        op,         "--ccl",  "ranks.yaml", "--algorithm", algorithm,
                                       "--data",     "off",      "-d",     "f32",        "-n",          "40",
                                       "--fidelity", "fast",     "--json", "-",          "-b",          sizes.least,
                                       "-e",         sizes.most, "-f",     sizes.factor};
    arguments.insert(arguments.end(), machine_.begin(), machine_.end());
    const Outcome outcome = tool_(arguments);
    if (outcome.code != 0) return nlohmann::ordered_json::array();
    return nlohmann::ordered_json::parse(outcome.out, nullptr, false).value("results", nlohmann::ordered_json::array());
  }

  const Tool tool_;
  const std::vector<std::string> machine_;
  std::vector<std::string> algorithms_;
};

}  // namespace kernbench
