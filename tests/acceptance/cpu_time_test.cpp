#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tests/acceptance/run_json.h"

namespace kernbench {
namespace {

double cpu_s(const std::vector<std::string>& more) {
  const nlohmann::ordered_json json =
      run_json(with({"run", "all_reduce", "-b", "1M", "-e", "1M", "--dtype", "f16"}, more));
  EXPECT_EQ(json["results"].size(), 1U);
  EXPECT_EQ(json["results"][0]["check"], "ok");
  return json["host"]["cpu_s"].get<double>();
}

TEST(ProcessorTime, OfAMebibyteAllReduceIsBelowFiveSeconds) {
  const double seconds = cpu_s({});
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 5);
}

// Half a second is wanted, and judged by `kernbench bench`: twice that leaves room for what else the machine does.
TEST(ProcessorTime, OfAFastMebibyteAllReduceIsBelowASecond) { EXPECT_LT(cpu_s({"--fidelity", "fast"}), 1); }

/// Times are shown when they are known: whoever ends a long check has them. `stamp` notes when a line has come.
TEST(GemmResults, AreShownBeforeALongCheck) {
  const Tool tool;
  const std::string run = quoted(KERNBENCH_BINARY) +
                          " run gemm --m 2048 --n 2048 --k 1024 --fidelity fast --topology ring8 "
                          "--set system.sips.count=1";
  const Outcome outcome = tool.shell("(" + run + "; date +%s%N) | (read -r line; echo \"$line\"; date +%s%N; cat)");
  std::istringstream lines(outcome.out);
  std::string first, shown, last;
  std::getline(lines, first);
  std::getline(lines, shown);
  for (std::string line; std::getline(lines, line);) last = line;
  EXPECT_TRUE(std::regex_match(first, std::regex("# [a-z]+: [0-9.]+ ns; its result is checked now"))) << first;
  EXPECT_GT(std::stod(last) - std::stod(shown), 1e8) << "ns of checking behind it: " << outcome.out;
  EXPECT_NE(outcome.out.find("       ok "), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace kernbench
