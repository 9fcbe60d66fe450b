#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/cli/two_sips.h"

/// Algorithms that `auto` tries out on copies of the process.
namespace kernbench {
namespace {
using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

using Arguments = std::vector<std::string>;

Arguments joined(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const Arguments kReduceScatter{"run", "reduce_scatter", "--topology", "minimal", "--set", "system.sips.count=4"};

ordered_json row(const Tool& tool, const Arguments& arguments) {
  return parsed(tool(joined(arguments, {"--json", "-"}))).at("results").at(0);
}

/// Times of rehearsals alone took `hierarchical` for the first and `torus_2d` for the second: 21 and 12 % more.
TEST(Trials, AutoTakesWhatTookTheLeast) {
  const Tool tool;
  const auto close = [&](const Arguments& call, const Arguments& algorithms) {
    const Arguments fast = joined(call, {"--fidelity", "fast", "--data", "off", "-n", "4"});
    const auto time = [&](const std::string& algorithm) {
      return row(tool, joined(fast, {"--algorithm", algorithm})).at("time_ns").get<double>();
    };
    double best = time(algorithms.front());
    for (const std::string& algorithm : algorithms) best = std::min(best, time(algorithm));
    EXPECT_LE(time("auto"), 1.05 * best) << call.at(1);
  };
  close({"run", "broadcast", "-b", "512K", "--topology", "default", "--set", "system.sips.count=4"},
        {"ring", "hierarchical"});
  close({"run", "all_gather", "-b", "256K", "--topology", "kernbench-py", "--set", "system.sips.count=6", "--set",
         "system.sips.topology=torus_2d", "--set", "system.sips.w=3", "--set", "system.sips.h=2"},
        {"torus_2d", "hierarchical"});
}

TEST(Trials, AreToldByTheExplanation) {
  const Tool tool;
  const Outcome text = tool(joined(kReduceScatter, {"-b", "1K", "--explain"}));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr(" took in a trial "));
  EXPECT_THAT(text.out, HasSubstr(" us tried\n"));
  const ordered_json explained = row(tool, joined(kReduceScatter, {"-b", "1K", "--explain"}));
  const ordered_json& candidates = explained.at("explain").at("candidates");
  EXPECT_EQ(candidates.at(0).at("tried"), true);
  EXPECT_EQ(candidates.at(1).at("tried"), true);
  EXPECT_LE(candidates.at(0).at("expected_ns"), candidates.at(1).at("expected_ns"));
}

/// The same algorithm by a table of times and by trials: nothing that the run writes is different.
TEST(Trials, LeaveNoTrace) {
  const Tool tool;
  const auto files = [&](const std::string& name, const Arguments& more) {
    const Arguments outputs{"-b",          "1K",      "-n",          "2",      "--vcd",
                            name + ".vcd", "--oplog", name + ".log", "--json", name + ".json"};
    const Outcome outcome = tool(joined(joined(kReduceScatter, outputs), more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const std::string log = read(tool.file(name + ".log"));  // the first line has the configuration's hash
    return std::vector<std::string>{outcome.out, read(tool.file(name + ".vcd")), log.substr(log.find('\n'))};
  };
  const std::vector<std::string> tried = files("tried", {});
  EXPECT_EQ(tried, files("again", {}));
  const ordered_json result = parse_json(read(tool.file("tried.json"))).at("results").at(0);
  const Arguments machine{"--topology", "minimal", "--set", "system.sips.count=4"};
  ASSERT_EQ(
      tool(joined({"tune", "-q", "--ops", "reduce_scatter", "-b", "1K", "-e", "1K", "-o", "tuned.yaml"}, machine)).code,
      0);
  const std::regex times(result.at("algorithm").get<std::string>() + ": \\[.*\\]");
  write(tool.file("tuned.yaml"),
        std::regex_replace(read(tool.file("tuned.yaml")), times, result.at("algorithm").get<std::string>() + ": [1]"));
  EXPECT_EQ(tried, files("tuned", {"--ccl", "tuned.yaml"}));
}

/// 32 MiB that all ranks together bring are tried, more are not.
TEST(Trials, AreForLittleData) {
  const Tool tool;
  const auto tried = [&](const char* bytes) {
    const Arguments call{"run",    "all_gather", "--topology", "ring8", "--set",    "system.sips.count=4",
                         "-b",     bytes,        "-w",         "0",     "-n",       "1",
                         "--data", "off",        "--fidelity", "fast",  "--explain"};
    const ordered_json result = row(tool, call);
    for (const ordered_json& candidate : result.at("explain").at("candidates")) {
      if (candidate.at("tried").get<bool>()) return true;
    }
    return false;
  };
  EXPECT_TRUE(tried("8M"));
  EXPECT_FALSE(tried("8388736"));  // 128 B more
}

/// Queues are installed with the first call (decision 0100): what is chosen begins when it does by its name, and takes
/// as long.
TEST(Trials, AnAlgorithmTakesByItsNameWhatItTakesWhenAutoChoosesIt) {
  const Tool tool;
  const auto log = [&](const std::string& op, const std::string& algorithm, const Arguments& more) {
    const Arguments call{"run", op, "--topology", "minimal", "--set", "system.sips.count=4", "-n", "3", "-b", "1K"};
    const Outcome outcome = tool(joined(joined(call, {"--algorithm", algorithm, "--oplog", "log", "-q"}), more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string text = read(tool.file("log"));
    return text.substr(text.find('\n'));  // the first line has the configuration's hash
  };
  for (const auto& [op, algorithm] : std::vector<std::pair<std::string, std::string>>{
           {"all_reduce", "flood"}, {"all_gather", "direct"}, {"broadcast", "hierarchical"}}) {
    write(tool.file("one.yaml"), "algorithms:\n  " + algorithm + ": { module: kernbench.ccl." + algorithm + " }\n");
    for (const Arguments& group : {Arguments{}, Arguments{"--group", "0,2,3"}}) {
      EXPECT_EQ(log(op, algorithm, group), log(op, "auto", joined(group, {"--ccl", "one.yaml"}))) << op;
    }
  }
}

TEST(Trials, EndWhereTheRunEnds) {
  const Tool tool;
  const Outcome limited = tool(joined(kReduceScatter, {"-b", "1K", "--max-sim-time", "1ns"}));
  const Outcome named = tool(joined(kReduceScatter, {"-b", "1K", "--max-sim-time", "1ns", "--algorithm", "direct"}));
  EXPECT_EQ(limited.code, named.code);
  EXPECT_NE(limited.code, 0);
  EXPECT_THAT(limited.err, Not(HasSubstr("Terminated")));
}

}  // namespace
}  // namespace kernbench
