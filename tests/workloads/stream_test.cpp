#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

TEST(Stream, CountsRowsAndChecksWhatItWrites) {
  const Tool tool;
  const auto rows = rows_of(tool, on_one_cube({"run", "stream", "--bytes", "64K"}));
  ASSERT_EQ(rows.size(), 5U);
  for (const auto& row : rows) {
    EXPECT_GT(row["row_hits"].get<std::uint64_t>(), 0U) << row;
    EXPECT_GT(row["avg_latency_ns"].get<double>(), 0) << row;
    const bool writes = row["pattern"] != "read" && row["pattern"] != "latency";
    EXPECT_EQ(row["check"], writes ? "ok" : "skipped") << row;
  }
  // Sequential blocks: nearly every access finds its row open.
  const double hits = rows[0]["row_hits"], closed = rows[0]["row_closed"], conflicts = rows[0]["row_conflicts"];
  EXPECT_GT(hits / (hits + closed + conflicts), 0.9);
}

TEST(Stream, TakesTheSameTimeWithoutData) {
  const Tool tool;
  const auto on = rows_of(tool, on_one_cube({"run", "stream", "--bytes", "32K"}));
  const auto off = rows_of(tool, on_one_cube({"run", "stream", "--bytes", "32K", "--data", "off"}));
  ASSERT_EQ(on.size(), off.size());
  for (std::size_t i = 0; i < on.size(); ++i) {
    EXPECT_EQ(on[i]["time_ns"], off[i]["time_ns"]);
    EXPECT_EQ(on[i]["row_conflicts"], off[i]["row_conflicts"]);
    EXPECT_EQ(off[i]["check"], "skipped");
  }
}

}  // namespace
}  // namespace kernbench
