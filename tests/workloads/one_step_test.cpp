// Layers by an algorithm of a user's that adds in a different order on each rank.
#include "tests/workloads/one_step.h"

#include <fstream>

#include "tests/workloads/small_transformer.h"
#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

/// The ranks' bits are the same only where the algorithm adds in one order, as the tool's own do.
TEST(OneStepSums, OfLayersAreRightWithoutTheSameBitsOnAllRanks) {
  const Tool tool;
  std::ofstream(tool.file("one_step.xml")) << one_step_all_reduce(4);
  for (const std::vector<std::string>& run :
       {std::vector<std::string>{"run", "tp_mlp", "--batch", "3", "--in", "40", "--hidden", "64", "--out", "24",
                                 "--topology", "minimal", "--set", "system.sips.count=4", "--algorithm",
                                 "one_step.xml"},
        small_transformer(tool, {"--ends", "0", "--algorithm", "one_step.xml"}, small_model(2), "1")}) {
    unsigned checked = 0;
    for (const auto& row : rows_of(tool, run)) {
      if (!row.contains("check")) continue;
      ++checked;
      EXPECT_EQ(row["check"], "ok") << row;
    }
    EXPECT_GT(checked, 1U) << run[1];
  }
}

}  // namespace
}  // namespace kernbench
