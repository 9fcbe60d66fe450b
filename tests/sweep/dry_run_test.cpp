#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/tool_runner.h"
#include "tests/support/files_with_texts.h"

namespace kernbench::sweep {
namespace {
namespace fs = std::filesystem;

/// What a dry run of a file says.
Outcome dry_run(const Tool& tool, const std::string& text) {
  std::ofstream(tool.file("s.yaml")) << text;
  return tool({"sweep", "s.yaml", "--dry-run"});
}

TEST(DryRun, ListsThePointsAndRunsNone) {
  const Tool tool;
  const Outcome outcome = dry_run(tool,
                                  "workload: gemm_single_pe\ntopology: minimal\naxes: {m: [16, 32], k: [32]}\n"
                                  "constraints: ['m < 32']\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "#  point  m   k \n"
            "       0  16  32\n"
            "       -  32  32  refused: constraint 'm < 32'\n"
            "# 1 point of sweep s, 1 more refused\n"
            "# the first: kernbench run gemm_single_pe --topology minimal --m=16 --k=32\n");
  EXPECT_FALSE(fs::exists(tool.file("s.sqlite")));
}

#ifndef KERNBENCH_SANITIZED  // the sanitizer's own memory is beyond any limit
TEST(DryRun, AsksForNoMemoryThatOnlyARunNeeds) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml")) << "workload: all_reduce\ntopology: minimal\n"
                                        "options: {minbytes: 32M, maxbytes: 32M, warmup: 0, iters: 1}\n"
                                        "axes: {system.sips.count: [2, 8]}\n";
  const Outcome outcome =
      tool.shell("ulimit -v 600000; exec " + quoted(KERNBENCH_BINARY) + " sweep s.yaml --dry-run --jobs 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("# 2 points of sweep s, 0 more refused"));
  EXPECT_EQ(outcome.err, "");
}

TEST(DryRun, WhatThisComputerLacksRefusesNoPoint) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml")) << "workload: probe\ntopology: default\naxes: {cube.hbm.channels: [8, 16]}\n";
  bool warned = false;
  for (int limit = 110; limit < 180; limit += 2) {  // MB; with some of them the children alone have too little
    const Outcome outcome = tool.shell("ulimit -v " + std::to_string(limit) + "000; exec " + quoted(KERNBENCH_BINARY) +
                                       " sweep s.yaml --dry-run --jobs 1");
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 7) << limit << outcome.err;
    warned = warned || (outcome.code == 0 && outcome.err.find("could not be checked: ") != std::string::npos);
  }
  EXPECT_TRUE(warned);
}
#endif

/// A file whose dry run ends with 2, and all that it says or the begin of it.
struct Refused {
  const char *name, *text, *error;
};
class DryRunRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(DryRunRefuses, WhatTheRunWould) {
  const Tool tool;
  const Outcome outcome = dry_run(tool, GetParam().text);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.substr(0, std::string(GetParam().error).size()), GetParam().error);
  EXPECT_FALSE(fs::exists(tool.file("s.sqlite")));
}

INSTANTIATE_TEST_SUITE_P(
    Points, DryRunRefuses,
    ::testing::Values(
        Refused{"AValueAtItsPlace",
                "workload: gemm_single_pe\ntopology: minimal\naxes:\n  m: [16, 0, 32]\n  k:\n    - 16\n    - 2000000\n"
                "  cube.noc.rows: [2, 3]\n",
                "s.yaml:4:11: error: --m is 0; give an integer from 1 to 1048576\n"
                "s.yaml:7:7: error: --k is 2000000; give an integer from 1 to 1048576\n"},
        Refused{"ValuesThatAreBadOnlyTogether",
                "workload: broadcast\ntopology: minimal\noptions: {data: 'off'}\naxes:\n  root: [0, 3]\n"
                "  system.sips.count: [2, 4]\n",
                "s.yaml:5:13: error: point with root = 3, system.sips.count = 2: --root is 3; give 0 to 1, a rank of "
                "the group\n  hint: leave such points out with a constraint\n"},
        Refused{"AMachineThatCannotBe",
                "workload: gemm_single_pe\naxes:\n  cube.hbm.channels: [8, 16]\n  cube.hbm.size: [6 GiB, 7 KiB]\n",
                "s.yaml:4:26: error: cube.hbm.size is '7 KiB'"},
        Refused{"AMachineWhosePartsDoNotFit",
                "workload: gemm_single_pe\ntopology: minimal\naxes:\n  cube.hbm.channels: [8, 9]\n",
                "s.yaml:4:26: error: cube.hbm.size is 2 GiB, which 1 PEs cannot share in whole stripes of 4608 B\n"
                "  hint: give a multiple of 4608 B\n"},
        Refused{"EveryPointOnce",
                "# a comment\nworkload: noc_traffic\noptions: {pattern: unifrom}\naxes:\n  rows: [4, 8]\n",
                "s.yaml:2:1: error: every point is refused: unknown pattern 'unifrom'\n  hint: "}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DryRun, BlamesAPointThatIsRefusedTwiceForEachByItself) {
  const Tool tool;
  EXPECT_EQ(dry_run(tool, "workload: gemm_single_pe\ntopology: minimal\naxes: {m: [16, 0], k: [16, 0]}\n").err,
            "s.yaml:3:16: error: --m is 0; give an integer from 1 to 1048576\n"
            "s.yaml:3:28: error: --k is 0; give an integer from 1 to 1048576\n");
}

/// The text of the second one does not have its key in it.
TEST(DryRun, BlamesTwoAxesOfWhichOneHasNoGoodValue) {
  const Tool tool;
  const Outcome outcome = dry_run(tool,
                                  "workload: broadcast\ntopology: minimal\naxes:\n  placement: ['cube=x', 'cube=y']\n"
                                  "  iters: [1, 0]\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "s.yaml:4:15: error: --placement cube is 'x'; valid values: replicate, column_wise, row_wise\n"
            "s.yaml:4:25: error: --placement cube is 'y'; valid values: replicate, column_wise, row_wise\n"
            "s.yaml:5:14: error: -n is 0; give at least 1\n");
}

TEST(BrokenSweepFiles, EachEndTheToolWithTwoAndTheirMessageAndLeaveNoStore) {
  const fs::path folder = fs::path(KERNBENCH_SOURCE_DIR) / "tests" / "sweep" / "broken";
  const Tool tool;
  const std::vector<std::string> names = yaml_files(folder);
  EXPECT_GE(names.size(), 20U);
  for (const std::string& name : names) {
    fs::copy_file(folder / (name + ".yaml"), tool.file(name + ".yaml"));
    const Outcome outcome = tool({"sweep", name + ".yaml"});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_EQ(outcome.out, "") << name;
    EXPECT_EQ(outcome.err, read((folder / (name + ".txt")).string())) << name;
    EXPECT_FALSE(fs::exists(tool.file(name + ".sqlite"))) << name;
  }
}

TEST(Sweep, OfNoPointsIsRefusedWithWhatLeavesNone) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml")) << "name: s\nworkload: gemm_single_pe\ntopology: minimal\naxes: {m: [16, 32]}\n"
                                        "constraints: [m < 0]\nobjectives: [{name: time_ns, goal: minimize}]\n";
  const Outcome outcome = tool({"sweep", "s.yaml", "--store", "s.sqlite"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "s.yaml:1:1: error: no point is left: all are refused by constraint 'm < 0'\n"
            "  hint: loosen a constraint, or give axes that it allows\n");
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(fs::exists(tool.file("s.sqlite")));
}

}  // namespace
}  // namespace kernbench::sweep
