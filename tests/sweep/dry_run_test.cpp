#include <algorithm>
#include <fstream>

#include "tests/cli/tool_runner.h"

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

TEST(DryRun, RefusesWhatTheWorkloadWouldAtTheValueThatIsToBlame) {
  const Tool tool;
  const Outcome outcome = dry_run(tool,
                                  "workload: gemm_single_pe\ntopology: minimal\naxes:\n  m: [16, 0, 32]\n"
                                  "  k:\n    - 16\n    - 2000000\n  cube.noc.rows: [2, 3]\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "s.yaml:4:11: error: --m is 0; give an integer from 1 to 1048576\n"
            "s.yaml:7:7: error: --k is 2000000; give an integer from 1 to 1048576\n");
}

TEST(DryRun, NamesThePointWhereValuesAreBadOnlyTogether) {
  const Tool tool;
  const Outcome outcome = dry_run(tool,
                                  "workload: broadcast\ntopology: minimal\noptions: {data: 'off'}\naxes:\n"
                                  "  root: [0, 3]\n  system.sips.count: [2, 4]\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "s.yaml:5:13: error: point with root = 3, system.sips.count = 2: --root is 3; give 0 to 1, a rank of the "
            "group\n  hint: leave such points out with a constraint\n");
}

TEST(DryRun, RefusesMachinesThatCannotBe) {
  const Tool tool;
  const Outcome outcome = dry_run(tool,
                                  "workload: gemm_single_pe\naxes:\n  cube.hbm.channels: [8, 16]\n"
                                  "  cube.hbm.size: [6 GiB, 7 KiB]\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("s.yaml:4:26: error: cube.hbm.size is '7 KiB'"), std::string::npos) << outcome.err;
}

TEST(DryRun, SaysWhatIsWrongWithEveryPointOnce) {
  const Tool tool;
  const Outcome outcome =
      dry_run(tool, "# a comment\nworkload: noc_traffic\noptions: {pattern: unifrom}\naxes:\n  rows: [4, 8]\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.rfind("s.yaml:2:1: error: every point is refused: unknown pattern 'unifrom'\n  hint: ", 0), 0U)
      << outcome.err;
}

TEST(BrokenSweepFiles, EachEndTheToolWithTwoAndTheirMessageAndLeaveNoStore) {
  const fs::path folder = fs::path(KERNBENCH_SOURCE_DIR) / "tests" / "sweep" / "broken";
  const Tool tool;
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().filename().string();
    fs::copy_file(entry.path(), tool.file(name));
    const Outcome outcome = tool({"sweep", name});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_EQ(outcome.out, "") << name;
    EXPECT_EQ(outcome.err, read(fs::path(entry.path()).replace_extension(".txt").string())) << name;
    EXPECT_FALSE(fs::exists(fs::path(tool.file(name)).replace_extension(".sqlite"))) << name;
    ++files;
  }
  EXPECT_GE(files, 20U);
}

}  // namespace
}  // namespace kernbench::sweep
