#include <map>
#include <set>
#include <sstream>

#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {
using nlohmann::ordered_json;

std::map<std::string, ordered_json> by_case(const std::vector<ordered_json>& rows) {
  std::map<std::string, ordered_json> cases;
  for (const ordered_json& row : rows) cases[row["case"]] = row;
  return cases;
}

TEST(Probe, LatencyGrowsWithDistance) {
  const Tool tool;
  auto cases = by_case(rows_of(tool, on_six_cubes({"run", "probe", "--bytes", "256"})));
  double before = 0;
  for (const char* name : {"own_slice", "same_cube_farthest_pe", "next_cube", "farthest_cube", "other_sip"}) {
    ASSERT_TRUE(cases.count(name)) << name;
    const double ns = cases[name]["time_ns"];
    EXPECT_GT(ns, before) << name;
    before = ns;
  }
  EXPECT_GE(cases["d2h"]["time_ns"].get<double>(), cases["h2d"]["time_ns"].get<double>());
}

/// Cube 0 has no PEs: the first is in cube 1, the last of its row, and the cube behind it in number is no neighbour.
TEST(Probe, NextIsToTheEastAndFarthestByTheWayWhicheverPesAreThere) {
  const Tool tool;
  const auto cases = by_case(rows_of(tool, {"run", "probe", "--bytes", "256", "--topology", "ring8", "--set",
                                            "overrides=[{match: 'sip*.cube0.pe*', missing: true}]"}));
  EXPECT_EQ(cases.count("next_cube"), 0U);
  EXPECT_EQ(cases.count("cube_to_next_cube"), 0U);
  EXPECT_EQ(cases.at("farthest_cube")["target"].get<std::string>().substr(0, 11), "sip0.cube2.") << "diagonal";
}

TEST(Probe, BreakdownAddsUpAndNamesWhatIsOnTheWay) {
  const Tool tool;
  for (const char* bytes : {"256", "16K"}) {
    const auto rows = rows_of(tool, on_six_cubes({"run", "probe", "--bytes", bytes}));
    EXPECT_EQ(rows.size(), 14U);
    for (const ordered_json& row : rows) {
      double sum = 0;
      for (const auto& part : row["breakdown"]) sum += part.get<double>();
      EXPECT_NEAR(sum, row["op_time_ns"].get<double>(), 1e-6) << row;
      EXPECT_GT(row["breakdown"]["hbm_ns"].get<double>(), 0) << row;
    }
    auto cases = by_case(rows);
    const auto part = [&](const char* name, const char* key) { return cases[name]["breakdown"][key].get<double>(); };
    for (const char* inside : {"own_slice", "same_cube_farthest_pe", "neighbours_to_one_slice_3", "sip_own_slices"}) {
      EXPECT_EQ(part(inside, "ucie_ns"), 0) << inside;
      EXPECT_EQ(part(inside, "fabric_ns"), 0) << inside;
    }
    EXPECT_GT(part("next_cube", "ucie_ns"), 0);
    EXPECT_EQ(part("next_cube", "fabric_ns"), 0);
    EXPECT_GT(part("farthest_cube", "ucie_ns"), part("next_cube", "ucie_ns"));
    for (const char* outside : {"other_sip", "h2d", "d2h"}) {
      EXPECT_GT(part(outside, "ucie_ns"), 0) << outside;
      EXPECT_GT(part(outside, "fabric_ns"), 0) << outside;
    }
  }
}

TEST(Probe, AggregateUtilisationIsAtMostOne) {
  const Tool tool;
  for (const char* bytes : {"256", "16K", "64K"}) {
    for (const ordered_json& row : rows_of(tool, on_six_cubes({"run", "probe", "--bytes", bytes}))) {
      EXPECT_GT(row["aggregate_utilisation"].get<double>(), 0) << row;
      EXPECT_LE(row["aggregate_utilisation"].get<double>(), 1) << row;
      if (row["issuers"] == 1) {
        EXPECT_EQ(row["aggregate_utilisation"], row["single_utilisation"]);
      }
    }
  }
  auto cases = by_case(rows_of(tool, on_six_cubes({"run", "probe", "--bytes", "64K"})));
  EXPECT_GT(cases["own_slice"]["aggregate_utilisation"].get<double>(), 0.8);
  EXPECT_GT(cases["cube_to_one_slice"]["aggregate_utilisation"].get<double>(), 0.8);
}

TEST(Probe, AllPesOfALaunchStartTogether) {
  const Tool tool;
  rows_of(tool, on_one_cube({"run", "probe", "--bytes", "256", "--oplog", "ops.jsonl"}));
  std::istringstream log(read(tool.file("ops.jsonl")));
  // Every PE's load is its kernel's first op: of one launch, all begin in one instant.
  std::map<std::uint64_t, std::set<std::string>> issuers;
  for (std::string line; std::getline(log, line);) {
    const ordered_json record = json_of(line);
    if (record["op_name"] == "dma_read") issuers[record["t_start"]].insert(record["component"]);
  }
  std::map<std::size_t, int> launches;  // by number of PEs
  for (const auto& [start, pes] : issuers) ++launches[pes.size()];
  EXPECT_EQ(launches[8] % 4, 0);  // cube_to_one_slice, sip_own_slices
  EXPECT_GE(launches[8], 8);
  for (const auto& [pes, count] : launches)
    EXPECT_TRUE(pes == 1 || pes == 2 || pes == 3 || pes == 8 || count == 0) << pes;
}

}  // namespace
}  // namespace kernbench
