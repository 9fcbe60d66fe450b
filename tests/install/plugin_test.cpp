#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {

using ::testing::HasSubstr;

/// Before any simulated time: the tool ends with bad input and prints no result.
void expect_refused(const Outcome& outcome, const std::string& text) {
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(text));
}

TEST(WorkloadPlugin, AMissingFileIsNamed) {
  const Tool tool;
  expect_refused(tool({"run", "--plugin", "nowhere.so", "axpy"}), "error: plug-in 'nowhere.so': ");
}

TEST(WorkloadPlugin, AnotherAbiIsRefused) {
  const Tool tool;
  expect_refused(tool({"run", "--plugin", KERNBENCH_OTHER_ABI, "axpy"}),
                 "has ABI version 99, this KernBench has 1; build it again");
}

TEST(WorkloadPlugin, AMissingSymbolIsNamed) {
  const Tool tool;
  expect_refused(tool({"run", "--plugin", KERNBENCH_NO_SYMBOL, "axpy"}), "has no symbol 'kernbench_workload_plugin'");
}

Outcome run_with_module(const Tool& tool, const std::string& module) {
  std::ofstream(tool.file("ccl.yaml")) << "algorithms:\n  mine: {module: " << module << "}\n";
  return tool(
      {"run", "all_reduce", "--topology", "ring8", "-b", "1K", "-e", "1K", "--ccl", "ccl.yaml", "--algorithm", "mine"});
}

TEST(AlgorithmPlugin, AMissingFileIsNamed) {
  const Tool tool;
  expect_refused(run_with_module(tool, "./nowhere.so"), "nowhere.so");
}

TEST(AlgorithmPlugin, AnotherAbiIsRefused) {
  const Tool tool;
  expect_refused(run_with_module(tool, KERNBENCH_OTHER_ABI),
                 "has ABI version 99, this KernBench has 2; build it again");
}

TEST(AlgorithmPlugin, AMissingSymbolIsNamed) {
  const Tool tool;
  expect_refused(run_with_module(tool, KERNBENCH_NO_SYMBOL), "has no symbol 'kernbench_ccl_algorithm'");
}

/// Every project header that a public header includes is public, too: the installed package is complete.
TEST(PublicHeaders, IncludeOnlyPublicHeaders) {
  std::istringstream list(KERNBENCH_PUBLIC_HEADERS);
  std::vector<std::string> headers;
  for (std::string header; std::getline(list, header, ',');) headers.push_back(header);
  ASSERT_GT(headers.size(), 20u);
  const std::regex include("#include \"([^\"]+)\"");
  for (std::size_t i = 0; i <= headers.size(); ++i) {
    const std::string name = i < headers.size() ? headers[i] : "sc_main/api/kernbench/kernbench.h";
    const std::string text = read(std::string(KERNBENCH_SOURCE_DIR) + "/" + name);
    for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at) {
      EXPECT_THAT(headers, ::testing::Contains((*at)[1].str())) << "included by " << name;
    }
  }
}

}  // namespace
}  // namespace kernbench
