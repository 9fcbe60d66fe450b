#include <gmock/gmock.h>

#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

/// 64 KiB on each PE.
double all_reduce_ns(const Tool& tool, const std::string& buffer) {
  const auto rows = rows_of(
      tool, on_one_cube({"run", "all_reduce", "-b", "512K", "-e", "512K", "--set", "pe.ipcq.buffer=" + buffer}));
  if (rows.size() != 1) return 0;
  EXPECT_EQ(rows[0]["check"], "ok") << buffer;
  return rows[0]["time_ns"];
}

TEST(QueueMemory, AllReduceIsCorrectInEachAndFastestInTcm) {
  const Tool tool;
  const double tcm = all_reduce_ns(tool, "tcm"), sram = all_reduce_ns(tool, "sram"), hbm = all_reduce_ns(tool, "hbm");
  EXPECT_GT(tcm, 0);
  EXPECT_LT(tcm, sram);
  EXPECT_LT(tcm, hbm);
}

TEST(QueueMemory, AllReduceOverCubesIsCorrectInEach) {
  const Tool tool;
  for (const char* buffer : {"sram", "hbm"}) {
    for (const char* scope : {"sip", "cube"}) {
      const auto rows = rows_of(tool, on_six_cubes({"run", "all_reduce", "-b", "1K", "-e", "64K", "-f", "64", "--scope",
                                                    scope, "--set", std::string("pe.ipcq.buffer=") + buffer}));
      ASSERT_EQ(rows.size(), 2U);
      for (const auto& row : rows) EXPECT_EQ(row["check"], "ok") << buffer << row;
    }
  }
}

TEST(QueueMemory, PeerToPeerChecksWhatArrives) {
  const Tool tool;
  for (const char* buffer : {"tcm", "sram", "hbm"}) {
    const auto rows = rows_of(tool, on_six_cubes({"run", "p2p", "-b", "64", "-e", "16K", "-f", "256", "--set",
                                                  std::string("pe.ipcq.buffer=") + buffer}));
    ASSERT_EQ(rows.size(), 16U);
    for (const auto& row : rows) EXPECT_EQ(row["check"], "ok") << buffer << row;
  }
}

}  // namespace
}  // namespace kernbench
