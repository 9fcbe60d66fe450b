// Streams and validation of HBM through the tool, as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

/// A folder with one table, beside the devices of the repository.
Outcome validate(const Tool& tool, const std::string& table, const std::string& name = "table.csv") {
  std::filesystem::create_directories(tool.file("reference"));
  std::filesystem::copy(KERNBENCH_SOURCE_DIR "/bench/reference/hbm/timing.yaml", tool.file("reference/timing.yaml"),
                        std::filesystem::copy_options::overwrite_existing);
  std::ofstream(tool.file("reference/" + name)) << table;
  return tool({"validate", "hbm", "--reference", tool.file("reference")});
}
constexpr const char* kHeader = "device_grade,case,measured_ck,measured_ns,formula_ck,formula_ns,formula,match\n";

TEST(HbmValidation, TheSampleIsWithinItsLimitsInBothGrades) {
  const Tool tool;
  for (const char* grade : {"accurate", "hbm=fast"}) {
    const Outcome outcome = tool({"validate", "hbm", "--sample", "--fidelity", grade});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  }
}

TEST(HbmValidation, IdleLatenciesAreJudgedToTheClock) {
  const Tool tool;
  // 1 + tCL + BL of HBM2-2400: a device that the tables of the repository do not use.
  const Outcome good = validate(tool, std::string(kHeader) + "HBM2_2400,row_hit,20,16.66,20,16.66,x,yes\n");
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  const Outcome late = validate(tool, std::string(kHeader) + "HBM2_2400,row_hit,21,17.5,21,17.5,x,yes\n");
  EXPECT_EQ(late.code, 1) << late.out << late.err;
}

TEST(HbmValidation, BrokenTablesNameTheirLine) {
  const Tool tool;
  const Outcome device = validate(tool, std::string(kHeader) + "HBM9_1,row_hit,20,16.66,20,16.66,x,yes\n");
  EXPECT_EQ(device.code, 2);
  EXPECT_THAT(device.err, HasSubstr("table.csv:2:"));
  const Outcome unknown = validate(tool, std::string(kHeader) + "HBM2_2000,row_lost,20,16.66,20,16.66,x,yes\n");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("table.csv:2:"));
}

/// No computer has the memory or the time for the runs.
TEST(HbmValidation, AReferenceThatIsNoNumberIsRefusedBeforeAnythingRuns) {
  const Tool tool;
  const std::string row = "pc,RoBaCoBg,seq,32,1,0,FRFCFS_plain,open,off,32,900000000000000,50000,";
  const Outcome outcome = validate(
      tool,
      "case_id,device_grade,scope,mapping,pattern,req_bytes,reads_per_cycle_of_mix,writes_per_cycle_of_mix,scheduler,"
      "page_policy,refresh,queue_depth,n_requests,n_bursts_32B,sim_cycles_ck,avg_read_lat_ns\n"
      "S1,HBM2_2000," +
          row + "100044,\nS2,HBM2_2000," + row + "soon,\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            tool.file("reference/table.csv") + ":3:84: error: 'sim_cycles_ck' is 'soon'\n  hint: give a number\n");
}

/// A row is left out for its pattern, and the others are judged.
/// Names of rows, and values that are refused, are a file's.
TEST(HbmValidation, WhatATableSaysIsShownInPrintableText) {
  const Tool tool;
  std::ifstream file(KERNBENCH_SOURCE_DIR "/bench/reference/hbm/bandwidth.csv");
  std::string header, row;
  std::getline(file, header);
  std::getline(file, row);
  const std::string raw = "\033[31m\xff", id = row.substr(0, row.find(','));
  const Outcome outcome = validate(
      tool, header + "\n" + raw + row + "\n" + std::regex_replace(row, std::regex("seq_read"), "zig" + raw) + "\n",
      "bandwidth.csv");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("bandwidth/\\x1b[31m\\xff" + id));
  EXPECT_THAT(outcome.err, HasSubstr("'pattern' is 'zig\\x1b[31m\\xff'"));
  EXPECT_EQ((outcome.out + outcome.err).find_first_of("\033\xff"), std::string::npos);
}

TEST(HbmValidation, UnknownPatternsAreLocatedSkippedAndCounted) {
  const Tool tool;
  std::ifstream file(KERNBENCH_SOURCE_DIR "/bench/reference/hbm/bandwidth.csv");
  std::string line, table, row;
  while (std::getline(file, line)) {
    if (table.empty()) table = line + "\n";
    if (line.find(",rowconf_1bank_bgfirst,") != std::string::npos && row.empty()) row = line;
  }
  const auto with = [&row](const std::string& pattern) {
    return std::regex_replace(row, std::regex("rowconf_1bank_bgfirst"), pattern) + "\n";
  };
  const Outcome outcome = validate(
      tool, table + with("zigzag") + with("rowconf_1bank_bgfirst") + with("rowconf_999bank_bgfirst"), "bandwidth.csv");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("bandwidth.csv:2:26: error: 'pattern' is 'zigzag'\n"));
  EXPECT_THAT(outcome.err, HasSubstr("bandwidth.csv:4:26: error: 'pattern' is 'rowconf_999bank_bgfirst'\n"));
  EXPECT_THAT(outcome.out, HasSubstr("# hbm: 1 of 1 judged cases within their limits"));
  EXPECT_THAT(outcome.out, HasSubstr("2 rows skipped"));
}

TEST(HbmValidation, UnknownDevicesAndSchedulersAreLocatedSkippedAndCounted) {
  const Tool tool;
  std::ifstream file(KERNBENCH_SOURCE_DIR "/bench/reference/hbm/bandwidth.csv");
  std::string header, row;
  while (header.empty() || header.front() == '#') std::getline(file, header);
  std::getline(file, row);
  const std::string device = std::regex_replace(row, std::regex(",HBM[^,]*,"), ",HBM9_1,"),
                    scheduler = std::regex_replace(row, std::regex(",FRFCFS_[^,]*,"), ",FRFCFS_bogus,");
  const Outcome outcome =
      validate(tool, header + "\n" + device + "\n" + row + "\n" + scheduler + "\n", "bandwidth.csv");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::ContainsRegex("bandwidth.csv:2:[0-9]+: error: 'device_grade' is 'HBM9_1'\n"));
  EXPECT_THAT(outcome.err, ::testing::ContainsRegex("bandwidth.csv:4:[0-9]+: error: 'scheduler' is 'FRFCFS_bogus'\n"));
  EXPECT_THAT(outcome.out, HasSubstr("2 rows skipped"));

  const Outcome none = validate(tool, header + "\n" + device + "\n" + scheduler + "\n", "bandwidth.csv");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("nothing was compared: all rows are skipped, 2 of them"));
}

TEST(StreamPattern, WritesToBanksAndToBanksOfOneGroupAreKnown) {
  const Tool tool;
  for (const char* pattern :
       {"rowconf_write_1bank_bgfirst", "rowconf_write_4bank_bgfirst", "rowconf_write_2bank_samebg"})
    EXPECT_EQ(tool({"run", "stream", "--topology", "minimal", "--pattern", pattern}).code, 0) << pattern;
}

TEST(StreamPattern, TakesTheClocksOfTheReferenceAndReportsAsTheSchemaSays) {
  const Tool tool;
  // bench/reference/hbm/bandwidth.csv, S002: 100032 clocks.
  const Outcome outcome =
      tool({"run", "stream", "--pattern", "seq_read", "--mapping", "RoBaCoBg", "--topology", "minimal", "--set",
            "cube.hbm.generation=HBM2-2000", "--set", "cube.hbm.refresh=none", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(schema_errors(json), "");
  const Json& row = json["results"][0];
  EXPECT_NEAR(row["clocks"].get<double>(), 100'032, 1);
  EXPECT_NEAR(row["gbps"].get<double>(), 15.995, 0.001);
  EXPECT_EQ(row["row_hits"].get<int>() + row["row_closed"].get<int>() + row["row_conflicts"].get<int>(), 50'000);
}

TEST(StreamPattern, RefusesWhatItDoesNotKnow) {
  const Tool tool;
  const Outcome pattern = tool({"run", "stream", "--pattern", "zigzag", "--topology", "minimal"});
  EXPECT_EQ(pattern.code, 2);
  EXPECT_THAT(pattern.err, HasSubstr("pattern 'zigzag': give seq, rand"));
  const Outcome mapping = tool({"run", "stream", "--pattern", "seq", "--mapping", "RoBaCo", "--topology", "minimal"});
  EXPECT_EQ(mapping.code, 2);
  EXPECT_THAT(mapping.err, HasSubstr("mapping 'RoBaCo': name each of"));
}

/// Runs of bursts are no short cut where commands of pseudo channels wait for each other, or rows close within them.
TEST(HbmStream, GradesAreOneWhereRunsOfBurstsDoNotHold) {
  const Tool tool;
  const auto row_of = [&](const std::string& grade, const std::vector<std::string>& more) {
    std::vector<std::string> words{"run",    "stream",      "--pattern",  "seq",   "--requests",
                                   "4000",   "--request",   "256",        "--set", "cube.hbm.refresh=none",
                                   "--json", "stream.json", "--fidelity", grade};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = tool(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(std::ifstream(tool.file("stream.json")))["results"][0].dump();
  };
  for (const std::vector<std::string>& machine :
       std::vector<std::vector<std::string>>{{"--queue", "256", "--scope", "ch", "--mapping", "RoSiBaCoBgPc", "--set",
                                              "cube.hbm.pseudo_channels=4", "--set", "cube.hbm.channels=8"},
                                             {"--set", "cube.hbm.page_policy=closed"}})
    EXPECT_EQ(row_of("fast", machine), row_of("accurate", machine));
}

}  // namespace
}  // namespace kernbench
