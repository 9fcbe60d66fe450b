#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
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
                 "has ABI version 99, this KernBench has 17; build it again");
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
                 "has ABI version 99, this KernBench has 11; build it again");
}

TEST(AlgorithmPlugin, AMissingSymbolIsNamed) {
  const Tool tool;
  expect_refused(run_with_module(tool, KERNBENCH_NO_SYMBOL), "has no symbol 'kernbench_ccl_algorithm'");
}

/// What its module, or its plan, says is refused in its name, before any simulated time.
TEST(AlgorithmPlugin, WhatIsWrongWithItIsSaidInItsName) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"throws", "kernbench_ccl_algorithm() throws: not today"},
      {"throws a number", "kernbench_ccl_algorithm() throws something that is not a std::exception"},
      {"name", "descriptor lacks 'name'"},
      {"operations", "descriptor's 'operations' is 0x2000000; bits of 0x3ff have a meaning"},
      {"scopes", "descriptor's 'scopes' is 0x2000000; bits of 0x7 have a meaning"},
      {"topologies", "descriptor's 'topologies' is 0x2000000; bits of 0x1f have a meaning"},
      {"directions", "descriptor's 'directions' is 0x100000; bits of 0x3f have a meaning"},
      {"PE to PE", "what goes PE to PE serves all_gather, gather, scatter, reduce_scatter and all_to_all"},
      {"PE to PE and plan", "'pe_to_pe' stands in place of 'plan'"},
      {"kernel_args", "descriptor lacks 'kernel_args'"},
      {"kernel", "descriptor lacks 'kernel'"},
      {"signature", "kernel_args and kernel do not agree"},
      {"topology", "algorithm 'mine': its topo_name_to_kind says 7 to ring_1d; give 0 to 4"},
      {"links throw", "algorithm 'mine': no links today"},
      {"links", "algorithm 'mine': its links have nodes (0, 99); give two of 0 to 7"},
      {"fewer links", "its schedule is wrong: it links nodes 0 and 7, which `links` does not"},
      {"plan throws", "algorithm 'mine': no plan today"},
      {"plan throws a number", "algorithm 'mine': throws something that is not a std::exception"},
      {"no schedule", "algorithm 'mine': its plan has no schedule"},
      {"rounds", "algorithm 'mine': its plan has 0 rounds; give 1 to 16777216"},
      {"many rounds", "its plan has 1125899906842624 rounds; give 1 to 16777216"},
      {"parameter", "algorithm 'mine': no parameter 'chnk_bytes'; there are: "},
      {"seconds", "algorithm 'mine': its plan should take -1 s; give what it takes, or 0"},
      {"period", "its period is -1"},
      {"outstanding", "its outstanding is -4"},
      {"time", "step 0 of node 1 (send of block 0, node 0) is at time -1"},
      {"slots", "the link between nodes 0 and 1 has 0 slots; give at least 1"},
      {"answer",
       "deadlock: step 1 of node 3 (receive_copy of block 0, node 0) waits in round 0, step 2 of node 0 "
       "(receive_reduce of block 0, node 3) waits in round 1"},
      {"kind", "step 0 of node 1 is of unknown kind 77"}};
  for (const auto& [how, text] : cases) {
    setenv("KERNBENCH_WRONG", how, 1);
    SCOPED_TRACE(how);
    const Tool tool;
    const Outcome outcome = run_with_module(tool, KERNBENCH_WRONG_MODULE);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(text));
  }
  unsetenv("KERNBENCH_WRONG");
  const Tool tool;
  EXPECT_EQ(run_with_module(tool, KERNBENCH_WRONG_MODULE).code, 0) << "nothing else is wrong with it";
}

/// A wrong schedule is no choice, and `--explain` says why.
TEST(AlgorithmPlugin, AutoTakesNoWrongSchedule) {
  setenv("KERNBENCH_WRONG", "kind", 1);
  const Tool tool;
  std::ofstream(tool.file("ccl.yaml")) << "algorithms:\n"
                                          "  mine: {module: " KERNBENCH_WRONG_MODULE
                                          "}\n"
                                          "  ours: {module: kernbench.ccl.one_tree}\n";
  const Outcome outcome = tool({"run", "all_reduce", "--topology", "ring8", "-b", "1K", "-e", "1K", "--ccl", "ccl.yaml",
                                "--algorithm", "auto", "--explain"});
  unsetenv("KERNBENCH_WRONG");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("its schedule is wrong: "));
  EXPECT_THAT(outcome.out, HasSubstr("step 0 of node 1 is of unknown kind 77"));
}

/// `auto` opens all entries, and says all that is wrong with them.
TEST(AlgorithmPlugin, WhatIsWrongWithSeveralIsSaidAtOnce) {
  const Tool tool;
  std::ofstream(tool.file("ccl.yaml")) << "algorithms:\n"
                                          "  a: {module: " KERNBENCH_STAR
                                          ", chnk_bytes: 4 KiB}\n"
                                          "  b: {module: " KERNBENCH_NO_SYMBOL
                                          "}\n"
                                          "  c: {module: " KERNBENCH_OTHER_ABI "}\n";
  const Outcome outcome = tool({"run", "all_reduce", "--topology", "ring8", "-b", "1K", "--ccl", "ccl.yaml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("ccl.yaml:2:"));
  EXPECT_THAT(outcome.err, HasSubstr("unknown key 'chnk_bytes'"));
  EXPECT_THAT(outcome.err, HasSubstr("ccl.yaml:3:"));
  EXPECT_THAT(outcome.err, HasSubstr("has no symbol 'kernbench_ccl_algorithm'"));
  EXPECT_THAT(outcome.err, HasSubstr("ccl.yaml:4:"));
  EXPECT_THAT(outcome.err, HasSubstr("has ABI version 99"));
}

TEST(AlgorithmPlugin, FourSymbolsAreEnough) {
  const Tool tool;
  std::ofstream(tool.file("ccl.yaml")) << "defaults: {algorithm: mine, n_elem: 8}\n"
                                          "algorithms:\n  mine: {module: " KERNBENCH_FOUR_SYMBOLS "}\n";
  const std::vector<std::string> machine = {
      "--set", "system.sips.count=3", "--set", "sip.cube_mesh.w=2", "--ccl", "ccl.yaml", "--json", "-"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "all_reduce", "--topology", "minimal"});
    more.insert(more.end(), machine.begin(), machine.end());
    return tool(more);
  };
  const Outcome plain = run({});
  ASSERT_EQ(plain.code, 0) << plain.err;
  const auto row = nlohmann::json::parse(plain.out).at("results").at(0);
  EXPECT_EQ(row.at("algorithm"), "mine") << "of the defaults";
  EXPECT_EQ(row.at("count"), 2 * 8) << "8 elements on each of 2 cubes of one PE";
  EXPECT_EQ(row.at("check"), "ok");
  EXPECT_EQ(run({"--placement", "cube=replicate,pe=column_wise", "-b", "1K"}).code, 0);
  expect_refused(run({"--scope", "cube"}), "algorithm 'mine' does not serve scope cube; it serves sip");
  const Outcome mesh =
      run({"--set", "system.sips.topology=mesh_2d_no_wrap", "--set", "system.sips.w=3", "--set", "system.sips.h=1"});
  EXPECT_EQ(mesh.code, 0) << "without topo_name_to_kind every topology is kind 0\n" << mesh.err;
}

/// Which queues there are depends on a parameter: on a ring of 5, ranks 0 and 2, and 1 and 3, are no neighbours.
TEST(AlgorithmPlugin, AKernelGetsTheQueuesThatItsLinksName) {
  const Tool tool;
  const auto run = [&](int hub) {
    std::ofstream(tool.file("ccl.yaml")) << "algorithms:\n  star: {module: " KERNBENCH_STAR ", hub: " << hub << "}\n";
    return tool({"run", "all_reduce", "--topology", "minimal", "--set", "system.sips.count=5", "--algorithm", "star",
                 "-b", "10000", "--ccl", "ccl.yaml"});
  };
  for (const int hub : {0, 2, 4}) {
    const Outcome star = run(hub);
    EXPECT_EQ(star.code, 0) << "hub " << hub << ": " << star.err;
  }
  expect_refused(run(5), "algorithm 'star': hub 5 is no rank");
}

TEST(AlgorithmPlugin, AKernelForScopePeIsRefused) {
  const Tool tool;
  expect_refused(run_with_module(tool, KERNBENCH_PE_KERNEL),
                 "a kernel serves scopes sip and cube; for scope pe it has to be a schedule");
}

TEST(AlgorithmPlugin, ParametersThatNobodyCouldSetAreRefused) {
  const Tool tool;
  expect_refused(run_with_module(tool, KERNBENCH_PARAMETER_RANGE),
                 "parameter 'depth' has preset 0 and range 1 to 8; give 0 <= least <= preset <= most");
  expect_refused(run_with_module(tool, KERNBENCH_PARAMETER_TWICE),
                 "parameter 'n_elem': there is a key of this name already");
}

/// Every module of ccl.yaml is there, or nothing runs: `auto` does not pass over what is missing.
TEST(AlgorithmPlugin, AutoNeedsAllModules) {
  const Tool tool;
  std::ofstream(tool.file("ccl.yaml")) << "algorithms:\n  ring: {module: kernbench.ccl.ring}\n"
                                          "  mine: {module: ./nowhere.so}\n";
  expect_refused(tool({"run", "all_reduce", "--topology", "ring8", "-b", "1K", "--ccl", "ccl.yaml"}),
                 "ccl.yaml:3:18: error: algorithm module './nowhere.so': ");
}

}  // namespace
}  // namespace kernbench
