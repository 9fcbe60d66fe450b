#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr const char* kComments =
    "# topology=mesh k=2 n=2 routing_function=dim_order\n# traffic=uniform  -- to every node\n"
    "# packet_size=4 flits; num_vcs=2 vc_buf_size=4 flits; injection_process=bernoulli\n"
    "# router=iq: routing_delay=0 vc_alloc_delay=1 sw_alloc_delay=1 st_prepare_delay=0 st_final_delay=1 "
    "credit_delay=1 hold_switch_for_packet=0 wait_for_tail_credit=0\n"
    "# sample_period=2000 warmup_periods=1 measured_periods=4 seed=1\n"
    "# zero_load_latency_cycles=13.0000\n# ideal_capacity_flits_per_node_per_cycle=1.0\n"
    "# saturation_load_flits_per_node_per_cycle=none: never\n";

/// A folder with one table.
void write_text(const Tool& tool, const std::string& text) {
  std::filesystem::create_directories(tool.file("reference"));
  std::ofstream(tool.file("reference/small.csv")) << text;
}
/// Of one low load, which runs in a moment: as the reference has it, or changed.
void write_table(const Tool& tool, const std::string& rows, const std::string& comments = kComments) {
  write_text(tool, comments +
                       "injection_rate_flits_per_node_per_cycle,injection_rate_packets_per_node_per_cycle,"
                       "accepted_flits_per_node_per_cycle,avg_packet_latency_cycles,state\n" +
                       rows);
}

Outcome validate(const Tool& tool, const std::string& more = "") {
  return tool.shell(quoted(KERNBENCH_BINARY) + " validate noc --reference reference " + more);
}

// Uniform over 2 x 2 nodes: one link on average, 6 + 4 + 3 = 13 cycles; at 1% load next to nothing contends.
constexpr const char* kGoodRow = "0.01,0.0025,0.01,13.05,stable\n";

TEST(Validate, TableWithinItsLimitsEndsWithZero) {
  const Tool tool;
  write_table(tool, kGoodRow);
  const Outcome outcome = validate(tool, "--json result.json --plot plots");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("small/load=0.01"));
  EXPECT_THAT(outcome.out, HasSubstr("# noc: 2 of 2 judged cases within their limits"));
  const Json json = Json::parse(read(tool.file("result.json")));
  EXPECT_EQ(schema_errors(json, "validate.schema.json"), "");
  EXPECT_EQ(json["cases"][0]["metric"], "avg_packet_latency_cycles");
  EXPECT_EQ(json["cases"][0]["reference"], 13.05);
  EXPECT_NEAR(json["cases"][0]["measured"].get<double>(), 13.05, 0.4);
  EXPECT_THAT(read(tool.file("plots/small.svg")), StartsWith("<svg"));
}

TEST(Validate, CaseOutsideItsLimitEndsWithOne) {
  const Tool tool;
  write_table(tool, "0.01,0.0025,0.01,11.5,stable\n");
  const Outcome outcome = validate(tool, "--json result.json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("OUTSIDE"));
  EXPECT_THAT(outcome.out, HasSubstr("# noc: 1 of 2 judged cases within their limits"));
  EXPECT_FALSE(Json::parse(read(tool.file("result.json")))["cases"][0]["within"].get<bool>());
}

TEST(Validate, SaturatedRowsAreJudgedByThroughputAndNotByLatency) {
  const Tool tool;
  // Whatever their latency says: one virtual channel of 4 flits cannot take two flits per node and cycle.
  write_table(tool, std::string(kGoodRow) + "2,0.5,0.0001,99999,saturated\n");
  const Outcome outcome = validate(tool, "--json -");
  EXPECT_EQ(outcome.code, 1);
  const Json json = Json::parse(outcome.out);
  for (const Json& one : json["cases"]) {
    if (one["case"] == "small/load=2") {
      EXPECT_EQ(one["metric"], "accepted_flits_per_node_per_cycle");
    }
  }
}

TEST(Validate, ResultsDoNotDependOnTheNumberOfProcesses) {
  const Tool tool;
  write_table(tool, std::string(kGoodRow) + "0.05,0.0125,0.05,13.2,stable\n");
  Json one = Json::parse(validate(tool, "--json - --jobs 1").out);
  Json many = Json::parse(validate(tool, "--json - --jobs 7").out);
  one.erase("host");
  many.erase("host");
  EXPECT_EQ(one, many);
}

TEST(Validate, BrokenTablesNameThemselvesWithLineAndColumn) {
  const Tool tool;
  write_table(tool, "0.01,0.0025,0.01,fast,stable\n");
  Outcome outcome = validate(tool);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "reference/small.csv:10:18: error: 'avg_packet_latency_cycles' is 'fast'\n  hint: give a number\n");
  write_table(tool, "0.01,0.0025\n");
  outcome = validate(tool);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "reference/small.csv:10:1: error: 2 fields in this row, 5 columns in the header\n");
  write_table(tool, kGoodRow, "# topology=torus k=2\n");
  outcome = validate(tool);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "reference/small.csv:1:3: error: 'topology' is 'torus'\n  hint: the model has topology=mesh only\n");
}

/// By what a bare mesh itself refuses, before anything runs.
TEST(Validate, AMeshThatCannotBeBuiltIsLocatedInItsTable) {
  const Tool tool;
  const auto refused = [&](const std::string& error) {
    const Outcome outcome = validate(tool);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "reference/small.csv:" + error + "\n");
  };
  const auto changed = [&](const std::string& from, const std::string& to, const std::string& error) {
    std::string comments = kComments;
    write_table(tool, kGoodRow, comments.replace(comments.find(from), from.size(), to));
    refused(error);
  };
  changed("num_vcs=2", "num_vcs=20", "3:24: error: 20 virtual channels\n  hint: give 1 to 16");
  changed("num_vcs=2", "num_vcs=99999999999",
          "3:24: error: 'num_vcs' is '99999999999'\n"
          "  hint: give an integer from 0 to 100000000");
  changed("packet_size=4", "packet_size=65", "3:3: error: packets of 65 flits\n  hint: give 1 to 64");
  changed("vc_buf_size=4", "vc_buf_size=0",
          "3:34: error: virtual channels without buffers\n  hint: give a depth of at least 1 flit");
  changed("k=2", "k=65", "1:17: error: a mesh of 65 x 65 routers\n  hint: give 1 to 4096 in all");
  changed("uniform", "shuffel", "2:3: error: unknown pattern 'shuffel'\n  hint: did you mean 'shuffle'?");
  changed("routing_delay=0", "routing_delay=40",
          "4:14: error: NocConfig: routing and virtual channel allocation takes 41 cycles; at most 32 are modelled");
  changed("measured_periods=4", "measured_periods=0", "5:39: error: an empty window\n  hint: give at least 1 cycle");
  write_table(tool, "5,1.25,0.01,13.05,stable\n");
  refused(
      "10:1: error: a load of 5 flits per node and cycle\n"
      "  hint: give more than 0, and at most one packet per cycle, 4");
}

/// A table that changes one setting at a time.
TEST(Validate, ASettingThatIsNoNumberIsLocatedInItsTable) {
  const Tool tool;
  const auto refused = [&](const std::string& packets, const std::string& variant, const std::string& error) {
    write_text(tool, "# 2x2 mesh, uniform, " + packets +
                         " packets, vc_buf_size=8\n"
                         "# 100 cycles warm-up, 1000 measured\n"
                         "num_vcs,variant,injection_rate_flits_per_node_per_cycle,accepted_flits_per_node_per_cycle,"
                         "avg_packet_latency_cycles\n1," +
                         variant + ",0.01,0.01,13\n");
    const Outcome outcome = validate(tool);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "reference/small.csv:" + error + "\n");
  };
  const std::string hint = "\n  hint: give an integer from 0 to 100000000";
  refused("4-flit", "vc_buf_size=x", "4:3: error: 'vc_buf_size' is 'x'" + hint);
  refused("99999999999999999999999-flit", "baseline",
          "1:22: error: 'KxK mesh, PATTERN, N-flit packets' has '99999999999999999999999'" + hint);
  refused("65-flit", "baseline", "1:22: error: packets of 65 flits\n  hint: give 1 to 64");
}

TEST(Validate, RefusesBadCommandLines) {
  const Tool tool;
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& text) {
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(text));
  };
  refused({"validate"}, "no domain given");
  refused({"validate", "nco"}, "unknown domain 'nco'\n  hint: did you mean 'noc'?");
  refused({"validate", "noc", "--reference", "nowhere"}, "--reference 'nowhere' is not a folder");
  refused({"validate", "noc", "--filter", "x*"}, "--filter 'x*' matches nothing");
  refused({"validate", "noc", "--fidelity", "quick"}, "quick");
  refused({"validate", "noc", "--jobs", "0"}, "--jobs is '0'");
  write_table(tool, kGoodRow);
  std::filesystem::remove(tool.file("reference/small.csv"));
  refused({"validate", "noc", "--reference", "reference"}, "no CSV table in this folder");
}

TEST(Validate, FindsTheTablesThatComeWithTheTool) {
  const Tool tool;
  const Outcome outcome = tool({"validate", "noc", "--sample", "--filter", "calib_zero_load_line"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("32 of 32 judged cases within their limits, worst error 0.00%"));
}

TEST(ValidateSample, NocIsWithinItsLimits) {
  const Tool tool;
  const Outcome outcome = tool({"validate", "noc", "--sample"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(ValidateGemm, EveryCaseIsWithinItsLimitsInBothGrades) {
  const Tool tool;
  for (const char* grade : {"accurate", "fast"}) {
    const Outcome outcome = tool({"validate", "gemm", "--fidelity", grade, "--quiet"});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("# gemm: 104 of 104 judged cases within their limits"));
  }
}

TEST(ValidateSample, CollectivesAreWithinTheirLimits) {
  const Tool tool;
  const Outcome outcome = tool({"validate", "collectives", "--sample", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

/// A table of one run of the analytical simulator.
Outcome validate_collective(const Tool& tool, const std::string& topology, const std::string& dims, const char* sim_ns,
                            const std::string& more = "") {
  std::filesystem::create_directories(tool.file("reference"));
  std::ofstream(tool.file("reference/runs.csv"))
      << "run_id,backend,collective,algorithm,topology,dims,npus,size_bytes,link_bw_GiBps,link_latency_ns,"
         "endpoint_delay_ns,local_mem_GBps,chunks,active_chunks,multi_dim_opt,sim_ns,closed_form_ns\n"
      << "S1,congestion_aware,all_gather,ring," << topology << "," << dims << ",4,65536,50,500,10,1600,1,1,," << sim_ns
      << "," << sim_ns << "\n";
  return tool.shell(quoted(KERNBENCH_BINARY) + " validate collectives --reference reference " + more);
}

TEST(ValidateCollectives, RunsWhatTheTableSays) {
  const Tool tool;
  // Three steps of 16 KiB over a link of 50 GiB/s: 3 (10 + 500 + 305) + 10.
  const Outcome right = validate_collective(tool, "Ring", "4", "2455", "--json -");
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  const Json json = Json::parse(right.out);
  EXPECT_EQ(schema_errors(json, "validate.schema.json"), "");
  EXPECT_EQ(json["cases"][0]["case"], "runs/S1_all_gather_Ring_4_65536_B");
  EXPECT_EQ(json["cases"][0]["limit"], 0.05);
  EXPECT_EQ(validate_collective(tool, "Ring", "4", "2300").code, 1);  // 6% less
  EXPECT_EQ(validate_collective(tool, "Ring", "4", "2300", "--fidelity fast").code, 0);
}

TEST(ValidateCollectives, BrokenTablesNameThemselvesWithLineAndColumn) {
  const Tool tool;
  Outcome outcome = validate_collective(tool, "Star", "4", "2455");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.err,
      "reference/runs.csv:2:37: error: 'topology' is 'Star'\n  hint: give Ring, FullyConnected or Switch for each "
      "dimension, joined by '_'\n");
  outcome = validate_collective(tool, "Ring_Ring", "4", "2455");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "reference/runs.csv:2:47: error: 'dims' is '4'\n  hint: give as many lengths as the topology has "
            "dimensions\n");
}

TEST(NocTraffic, RunsAndReportsAsTheSchemaSays) {
  const Tool tool;
  const Outcome outcome = tool({"run", "noc_traffic", "--topology", "minimal", "--cols", "4", "--rows", "4", "--load",
                                "0.1", "0.2", "--warmup", "500", "--window", "2000", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(schema_errors(json), "");
  ASSERT_EQ(json["results"].size(), 2U);
  for (const Json& row : json["results"]) {
    EXPECT_EQ(row["arrived_packets"], row["measured_packets"]);
    EXPECT_EQ(row["state"], "stable");
    EXPECT_EQ(row["zero_load_latency_cycles"], 23.0);  // 6 + 4 * 2.5 + 7
  }
}

TEST(NocTraffic, RefusesWhatCannotBeBuilt) {
  const Tool tool;
  const Outcome outcome = tool({"run", "noc_traffic", "--topology", "minimal", "--load", "9"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("a load of 9 flits per node and cycle"));
}

TEST(Bench, ReportsAsTheSchemaSaysBesideTheCalibration) {
  const Tool tool;
  const Outcome outcome = tool({"bench", "--filter", "elaboration_1k_pes", "--repeat", "1", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(schema_errors(json, "bench.schema.json"), "");
  ASSERT_EQ(json["benches"].size(), 1U);
  const Json& one = json["benches"][0];
  EXPECT_EQ(one["units"], 1024);
  const double loops = one["cpu_s"].get<double>() / 1024 * 1e9 / one["calibration"].get<double>();
  EXPECT_NEAR(one["ratio"].get<double>(), loops, 1e-6 * loops);
}

TEST(Bench, RefusesBadCommandLines) {
  const Tool tool;
  const Outcome outcome = tool({"bench", "--filter", "x*"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--filter 'x*' matches nothing"));
  // Each grade has the benchmarks of its own HBM.
  EXPECT_THAT(outcome.err, HasSubstr("hbm_engine_random"));
  EXPECT_EQ(outcome.err.find("hbm_engine_fast"), std::string::npos) << outcome.err;
  const Outcome fast = tool({"bench", "--fidelity", "fast", "--filter", "x*"});
  EXPECT_THAT(fast.err, HasSubstr("hbm_engine_fast"));
  EXPECT_EQ(fast.err.find("hbm_engine_random"), std::string::npos) << fast.err;
}

}  // namespace
}  // namespace kernbench
