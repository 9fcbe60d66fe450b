#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "runtime/tp/linear.h"
#include "sc_main/workloads/tp_times.h"
#include "tests/runtime/machine_run.h"
#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

using ::testing::HasSubstr;
using Args = std::vector<std::string>;

/// Four SIPs of two cubes of two PEs.
Args small(Args arguments) {
  arguments.insert(arguments.end(), {"--topology", "ring8", "--set", "system.sips.count=4", "--set",
                                     "sip.cube_mesh.w=2", "--set", "sip.cube_mesh.h=1", "--set", "cube.pes=2"});
  return arguments;
}
Args with(Args arguments, const Args& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}
const Args kMlp = {"run", "tp_mlp", "--batch", "3", "--in", "40", "--hidden", "64", "--out", "24"};
const Args kQkv = {"run", "qkv", "--tokens", "5", "--heads", "8", "--head-size", "6"};

/// The rows behind the set-up's.
std::vector<nlohmann::ordered_json> passes_of(const Tool& tool, const Args& arguments) {
  auto rows = rows_of(tool, arguments);
  if (rows.empty()) return rows;
  EXPECT_EQ(rows.front()["layer"], "set-up");
  rows.erase(rows.begin());
  return rows;
}

std::int64_t ps(const nlohmann::ordered_json& ns) { return std::llround(ns.get<double>() * 1000); }

/// What a row says that its time went to.
const Args kOfSetUp{"mapping_ns", "loading_ns", "queues_ns", "waiting_ns"};
const Args kOfPass{"launch_ns", "collective_ns", "waiting_ns"};
std::int64_t sum_of(const nlohmann::ordered_json& row, const Args& columns) {
  std::int64_t sum = 0;
  for (const std::string& column : columns) {
    EXPECT_TRUE(row.contains(column)) << column << " of " << row;
    if (row.contains(column)) sum += ps(row[column]);
  }
  return sum;
}

TEST(TpMlp, EveryRankAgreesWithTheHostsModel) {
  const Tool tool;
  const auto rows = passes_of(tool, small(kMlp));
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["check"], "ok") << row;
    EXPECT_EQ(row["ranks"], 4);
    EXPECT_EQ(row["batch"], 3);
  }
  EXPECT_EQ(rows[0]["layer"], "fc1");
  EXPECT_EQ(rows[0]["launches"], 1);
  EXPECT_EQ(rows[0]["collectives"], 0);
  EXPECT_EQ(rows[1]["launches"], 2) << "GEMM, then bias after the all-reduce";
  EXPECT_EQ(rows[1]["collectives"], 1);
  EXPECT_EQ(rows[2]["launches"], 3);
  EXPECT_GE(rows[2]["time_ns"].get<double>(), rows[1]["time_ns"].get<double>());
}

TEST(TpMlp, DefaultsAreThoseOfTheSpecification) {
  const Tool tool;
  const auto rows = passes_of(tool, small({"run", "tp_mlp"}));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["batch"], 1);
  EXPECT_EQ(rows[0]["in"], 512);
  EXPECT_EQ(rows[0]["out"], 2048);
  EXPECT_EQ(rows[1]["out"], 512);
  EXPECT_EQ(rows[0]["dtype"], "f16");
  for (const auto& row : rows) EXPECT_EQ(row["check"], "ok") << row;
}

/// The whole path of chunks on every rank, in both schedulings: against the host's model, all ranks to the bit.
TEST(TpMlp, ChunksThatOverlapAgreeWithTheHostsModel) {
  const Tool tool;
  for (const Args& more :
       {Args{"--overlap", "3"}, Args{"--overlap", "2", "--scheduling", "rounds", "--dtype", "f32"}}) {
    const auto rows = passes_of(tool, small(with(kMlp, more)));
    ASSERT_EQ(rows.size(), 3u);
    for (const auto& row : rows) EXPECT_EQ(row["check"], "ok") << row;
  }
  const Outcome outcome = tool(small({"run", "tp_mlp", "--overlap", "17"}));
  EXPECT_EQ(outcome.err, "kernbench: error: --overlap is 17; give an integer from 1 to 16\n");
}

TEST(TpMlp, ServesTypesActivationsAndPlacements) {
  const Tool tool;
  for (const Args& more : {Args{"--dtype", "f32", "--activation", "silu"}, Args{"--dtype", "bf16", "--bias", "0"},
                           Args{"--weight-placement", "cube=row_wise,pe=tiled_row_major", "--output-placement",
                                "cube=replicate,pe=row_wise", "--activation", "none"},
                           Args{"--scheduling", "rounds"}, Args{"--host-io", "timed"}}) {
    for (const auto& row : passes_of(tool, small(with(kMlp, more)))) EXPECT_EQ(row["check"], "ok") << row << more[1];
  }
}

/// f32, f64 and bf16 with sums that grow with the input, in all of which the host's bounds have to hold.
TEST(TpMlp, ServesEveryTypeWithSmallAndLargeInputs) {
  const Tool tool;
  for (const char* dtype : {"f16", "bf16", "f32", "f64"}) {
    for (const char* input : {"0.1", "-3", "100"}) {
      for (const auto& row : passes_of(tool, small(with(kMlp, {"--dtype", dtype, "--input", input})))) {
        EXPECT_EQ(row["check"], "ok") << row << input;
        EXPECT_EQ(row["dtype"], dtype);
      }
    }
  }
}

TEST(TpMlp, RunsWithItsDefaultSizesOnAWholePreset) {
  const Tool tool;
  const auto rows = passes_of(tool, {"run", "tp_mlp", "--topology", "ring8", "--fidelity", "fast"});
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["check"], "ok") << row;
    EXPECT_EQ(row["ranks"], 8);
  }
}

TEST(TpMlp, RefusesRanksThatArePes) {
  const Tool tool;
  std::ofstream(tool.file("ccl.yaml"))
      << "algorithms: { ring: { module: kernbench.ccl.ring_allreduce, world_size: 8 } }\n";
  const Outcome outcome = tool(small(with(kMlp, {"--ccl", "ccl.yaml", "--algorithm", "ring"})));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "kernbench: error: --ccl gives a world_size of 8; a tensor-parallel rank is a SIP, of which there are 4\n");
}

TEST(TpMlp, TakesTheSameTimeWithoutData) {
  const Tool tool;
  for (const char* io : {"debug", "timed"}) {
    auto on = rows_of(tool, small(with(kMlp, {"--host-io", io})));
    auto off = rows_of(tool, small(with(kMlp, {"--host-io", io, "--data", "off"})));
    ASSERT_EQ(on.size(), off.size());
    for (std::size_t i = 0; i < on.size(); ++i) {
      if (i > 0) {
        EXPECT_EQ(off[i]["check"], "skipped");
      }
      for (const char* of_data : {"check", "mismatches", "max_abs_err"}) {
        on[i].erase(of_data);
        off[i].erase(of_data);
      }
      EXPECT_EQ(on[i], off[i]) << "row " << i;
    }
  }
}

/// Runs that say where their time goes: both workloads in both schedulings, with and without timed host copies and
/// biases; an algorithm that is named, and one that is chosen.
std::vector<Args> timed_runs() {
  // The last: its GEMMs pass rows on between PEs, by queues of their own.
  const Args passed = {"run", "tp_mlp", "--batch", "16", "--in", "256", "--hidden", "512", "--out", "256"};
  std::vector<Args> runs;
  for (const char* scheduling : {"concurrent", "rounds"}) {
    for (const Args& run :
         {kMlp, with(kMlp, {"--host-io", "timed"}), with(kMlp, {"--bias", "0", "--algorithm", "ring"}), kQkv, passed}) {
      runs.push_back(with(run, {"--scheduling", scheduling}));
    }
  }
  return runs;
}

TEST(TpTimes, ColumnsAddUpToTheTimeOfTheirRowAndLayersToTheWhole) {
  const Tool tool;
  for (const Args& run : timed_runs()) {
    for (const int passes : {1, 3}) {
      const auto rows = rows_of(tool, small(with(run, {"-w", "0", "-n", std::to_string(passes)})));
      const std::int64_t rounding = passes == 1 ? 0 : 4;  // ps: thirds of columns and of their sum
      ASSERT_GE(rows.size(), 2u);
      EXPECT_EQ(rows[0]["layer"], "set-up");
      EXPECT_EQ(sum_of(rows[0], kOfSetUp), ps(rows[0]["time_ns"])) << rows[0];
      EXPECT_GT(ps(rows[0]["mapping_ns"]), 0);
      EXPECT_EQ(ps(rows[0]["loading_ns"]) > 0, run[run.size() - 3] == "timed") << rows[0];
      for (std::size_t i = 1; i < rows.size(); ++i) {
        EXPECT_NEAR(sum_of(rows[i], kOfPass), ps(rows[i]["time_ns"]), rounding) << rows[i];
      }
      if (rows.size() == 2) continue;  // one layer
      ASSERT_EQ(rows.size(), 4u);
      for (const char* column : {"time_ns", "launch_ns", "collective_ns", "waiting_ns"}) {
        EXPECT_NEAR(ps(rows[1][column]) + ps(rows[2][column]), ps(rows[3][column]), rounding) << column;
      }
    }
  }
}

/// The numbers of a line of a table, but for what is no number.
std::vector<std::int64_t> numbers_of(const std::string& line) {
  std::vector<std::int64_t> numbers;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const bool in_ps = word.size() > 4 && word[word.size() - 4] == '.';
    if (in_ps) numbers.push_back(std::llround(std::stod(word) * 1000));
  }
  return numbers;
}

/// What lies on one PE of each SIP has shorter ways than what lies on all: only bounds that hold anywhere count.
TEST(TpTimes, BoundsOfCollectivesGoByWhereTensorsLie) {
  testing::MachineRun machine(testing::machine_of(2, 6, 2));
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        for (const DPPolicy& policy : {DPPolicy().cubes(1).pes(1), tp::LinearPlacement::split()}) {
          const Tensor own = ctx.zeros({1, 24}, DType::i32, policy, "own"),
                       all = ctx.zeros({1, 48}, DType::i32, policy, "all");
          ctx.all_gather(own, all);
        }
      },
      std::tuple<>(), 2);
  CollectiveBounds bounds(machine.machine.map(), 2);
  std::vector<HostTraceEntry> of_rank;
  for (const HostTraceEntry& one : machine.runtime.host_trace()) {
    if (one.rank == 0) of_rank.push_back(one);
  }
  ASSERT_EQ(of_rank.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const bool spread = i == 1;
    EXPECT_EQ(std::string(of_rank[i].bound.kind), spread ? "spread" : "");
    EXPECT_GE(of_rank[i].t_complete - of_rank[i].t_submit, bounds.of("all_gather", 48 * 4, spread));
  }
  EXPECT_GT(bounds.of("all_gather", 48 * 4, false), 0u);
  EXPECT_LT(bounds.of("all_gather", 48 * 4, false), bounds.of("all_gather", 48 * 4, true));
}

TEST(TpTimes, TheTextsColumnsAddUpToo) {
  const Tool tool;
  for (const Args& run : {kMlp, with(kMlp, {"--scheduling", "rounds"})}) {
    const Outcome outcome = tool(small(with(run, {"-w", "0"})));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::vector<std::int64_t>> rows;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("#", 0) != 0) rows.push_back(numbers_of(line));
    }
    ASSERT_EQ(rows.size(), 4u) << outcome.out;
    EXPECT_EQ(rows[0].size(), 3u) << "time, set-up, waiting";
    for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(rows[i].size(), 4u) << "time, launch, collective, waiting";
    for (const auto& row : rows) {
      EXPECT_EQ(std::accumulate(row.begin() + 1, row.end(), std::int64_t{0}), row[0]) << outcome.out;
    }
    for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(rows[1][c] + rows[2][c], rows[3][c]) << outcome.out;
  }
}

struct Op {
  std::string name, component, message;
  std::int64_t start = 0, end = 0;
  std::string call;  ///< of a host_call
};
std::vector<Op> ops_of(const std::string& path) {
  std::vector<Op> ops;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto json = json_of(line);
    if (!json.contains("op_name")) continue;
    Op op{json["op_name"], json["component"], "", json["t_start"], json["t_end"], ""};
    if (json["params"].contains("message")) op.message = json["params"]["message"];
    if (json["params"].contains("call")) op.call = json["params"]["call"];
    ops.push_back(std::move(op));
  }
  return ops;
}

/// Of the machine's own account: every map message and every neighbour table is through before the first pass begins,
/// and what the passes call adds up to what their rows say.
TEST(TpTimes, NothingIsMappedOrInstalledInAPass) {
  const Tool tool;
  for (const Args& run : timed_runs()) {
    const auto rows = rows_of(tool, small(with(run, {"-w", "0", "--oplog", tool.file("ops")})));
    ASSERT_GE(rows.size(), 2u);
    const std::int64_t begin = ps(rows.front()["time_ns"]), end = begin + ps(rows.back()["time_ns"]);
    std::int64_t launches = 0, collectives = 0;
    std::size_t maps = 0, tables = 0;
    for (const Op& op : ops_of(tool.file("ops"))) {
      if (op.name == "mmu_map") ++maps;
      if (op.message == "sfr_write") ++tables;
      if (op.name == "mmu_map" || op.message == "sfr_write" || op.message == "program") {
        EXPECT_LE(op.end, begin) << op.name << " " << op.message << " in a pass";
      }
      if (op.component != "host.rank0" || op.start < begin || op.end > end) continue;
      (op.call == "launch" ? launches : collectives) += op.end - op.start;
    }
    EXPECT_GT(maps, 0u);
    if (run[1] == "tp_mlp") {
      EXPECT_GT(tables, 0u);
    }
    EXPECT_EQ(launches, ps(rows.back()["launch_ns"]));
    EXPECT_EQ(collectives, ps(rows.back()["collective_ns"]));
  }
}

/// Hidden and exposed communication are the time in which a collective of rank 0 is under way, of the machine's own
/// account, and what is exposed is what no launch covers. A row GEMM of 15 us and an all-reduce of 7: in chunks, half
/// of the second goes on behind the first, and the layer takes less.
TEST(TpTimes, HiddenAndExposedAreTheCollectivesTimeAndOverlapHelps) {
  const Tool tool;
  std::map<int, std::int64_t> times;
  for (const int chunks : {1, 2}) {
    const Args run = small({"run",        "tp_mlp",        "--batch", "512",  "--in",      "16",
                            "--hidden",   "1024",          "--out",   "1024", "--data",    "off",
                            "--fidelity", "fast",          "-w",      "0",    "--overlap", std::to_string(chunks),
                            "--oplog",    tool.file("ops")});
    const auto rows = rows_of(tool, run);
    ASSERT_EQ(rows.size(), 4u);
    const auto& fc2 = rows[2];
    EXPECT_EQ(fc2["collectives"], chunks);
    EXPECT_EQ(fc2["launches"], chunks + 1) << "GEMMs, and bias";
    const std::int64_t begin = ps(rows[0]["time_ns"]) + ps(rows[1]["time_ns"]), end = begin + ps(fc2["time_ns"]);
    std::vector<std::pair<std::int64_t, std::int64_t>> calls;
    for (const Op& op : ops_of(tool.file("ops"))) {
      if (op.component == "host.rank0" && op.call != "launch" && op.start >= begin && op.end <= end)
        calls.emplace_back(op.start, op.end);
    }
    EXPECT_EQ(calls.size(), static_cast<std::size_t>(chunks));
    std::sort(calls.begin(), calls.end());
    std::int64_t covered = 0, until = begin;
    for (const auto& [from, to] : calls) {
      covered += std::max<std::int64_t>(0, to - std::max(from, until));
      until = std::max(until, to);
    }
    EXPECT_EQ(ps(fc2["hidden_ns"]) + ps(fc2["collective_ns"]), covered);
    EXPECT_EQ(ps(fc2["communication_ns"]), covered);
    EXPECT_EQ(sum_of(fc2, kOfPass), ps(fc2["time_ns"]));
    EXPECT_EQ(ps(fc2["hidden_ns"]) > 0, chunks > 1);
    times[chunks] = ps(fc2["time_ns"]);
  }
  EXPECT_LT(static_cast<double>(times[2]), 0.97 * static_cast<double>(times[1]));
}

TEST(TpTimes, WarmUpPassesRunAndDoNotCount) {
  const Tool tool;
  const auto rows = rows_of(tool, small(with(kMlp, {"-w", "2", "-n", "3", "--oplog", tool.file("ops")})));
  ASSERT_EQ(rows.size(), 4u);
  std::int64_t launches = 0, collectives = 0;
  for (const Op& op : ops_of(tool.file("ops"))) {
    if (op.component != "host.rank0") continue;
    ++(op.call == "launch" ? launches : collectives);
  }
  EXPECT_EQ(rows[3]["launches"], 3) << "of one pass";
  EXPECT_EQ(launches, (2 + 3) * 3);
  EXPECT_EQ(collectives, 2 + 3);
  // A pass without a warm-up finds its queues and pages: no more than refreshes and cold rows lie between them.
  const auto cold = rows_of(tool, small(with(kMlp, {"-w", "0", "-n", "1"})));
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_NEAR(cold[i]["time_ns"].get<double>() / rows[i]["time_ns"].get<double>(), 1, 0.1) << rows[i];
  }
  EXPECT_EQ(cold[0]["time_ns"], rows[0]["time_ns"]) << "the set-up is over before";
}

TEST(TpMlp, RefusesBadOptionsBeforeItRuns) {
  const Tool tool;
  const Outcome hidden = tool(small({"run", "tp_mlp", "--hidden", "30"}));
  EXPECT_EQ(hidden.code, 2);
  EXPECT_EQ(hidden.err, "kernbench: error: --hidden is 30; give a multiple of the machine's 4 SIPs\n");
  for (const std::string name : {"i8", "f8"}) {
    const Outcome type = tool(small({"run", "tp_mlp", "--dtype", name}));
    EXPECT_EQ(type.code, 2);
    EXPECT_EQ(type.err, "kernbench: error: --dtype is '" + name + "'; give f16, bf16, f32 or f64\n");
  }
  const Outcome activation = tool(small({"run", "tp_mlp", "--activation", "glu"}));
  EXPECT_EQ(activation.code, 2);
  EXPECT_THAT(activation.err, HasSubstr("--activation is 'glu'; did you mean"));
  const Outcome passes = tool(small({"run", "tp_mlp", "-w", "-1", "-n", "0"}));
  EXPECT_EQ(passes.code, 2);
  EXPECT_EQ(passes.err,
            "kernbench: error: -w is -1; give an integer from 0 to 1000000\n"
            "kernbench: error: -n is 0; give an integer from 1 to 1000000\n");
}

TEST(Placement, CommandLineNamesTheOptionAndWhatIsWrong) {
  const Tool tool;
  const auto error_of = [&](const std::string& option, const std::string& value) {
    const Outcome outcome = tool(small({"run", "tp_mlp", option, value}));
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  for (const char* option : {"--weight-placement", "--output-placement", "--input-placement", "--bias-placement"}) {
    EXPECT_EQ(error_of(option, "cube=row_wise,cube=row_wise"),
              std::string("kernbench: error: ") + option + " gives 'cube' twice\n");
  }
  EXPECT_EQ(error_of("--weight-placement", "pes=0"),
            "kernbench: error: --weight-placement pes is '0'; give a number of at least 1\n");
  EXPECT_EQ(error_of("--weight-placement", "cub=row_wise"),
            "kernbench: error: --weight-placement has no key 'cub'; did you mean 'cube'?\n");
}

TEST(Placement, AYamlFileSaysTheSameAsTheCommandLine) {
  const Tool tool;
  std::ofstream(tool.file("p.yaml")) << "cube: row_wise\npe: tiled_row_major\nnum_pes: 1\n";
  const auto from_file = rows_of(tool, small(with(kMlp, {"--weight-placement", "p.yaml"})));
  const auto from_line =
      rows_of(tool, small(with(kMlp, {"--weight-placement", "cube=row_wise,pe=tiled_row_major,pes=1"})));
  EXPECT_EQ(from_file, from_line);
}

TEST(Placement, AYamlFileWithASipAxisIsALocatedError) {
  const Tool tool;
  std::ofstream(tool.file("p.yaml")) << "cube: row_wise\nnum_sips: 2\n";
  for (const char* workload : {"tp_mlp", "va_offset_verify"}) {
    const std::string option = std::string(workload) == "tp_mlp" ? "--weight-placement" : "--placement";
    const Outcome outcome = tool(small({"run", workload, option, "p.yaml"}));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err,
              "p.yaml:2:1: error: unknown key 'num_sips' in 'policy'\n"
              "  hint: placement has no SIP axis: a tensor lives on its rank's SIP, chosen by set_device(rank); which "
              "rank owns what is tensor parallelism\n");
  }
}

TEST(Placement, CommandLineRefusesASipAxisAndAFlatIndex) {
  const Tool tool;
  const Outcome sip = tool(small({"run", "all_reduce", "--placement", "cube=row_wise,num_sips=2"}));
  EXPECT_EQ(sip.code, 2);
  EXPECT_EQ(
      sip.err,
      "kernbench: error: --placement has no key 'num_sips': placement has no SIP axis: a tensor lives on its rank's "
      "SIP, chosen by set_device(rank); which rank owns what is tensor parallelism\n");
  const Outcome flat = tool(small({"run", "tp_mlp", "--weight-placement", "pe_index=3"}));
  EXPECT_EQ(flat.code, 2);
  EXPECT_THAT(flat.err, HasSubstr("there is no flat PE index: give 'sip', 'cube' and 'pe'"));
}

TEST(Qkv, EveryRanksHeadsAgreeWithTheHost) {
  const Tool tool;
  const auto rows = passes_of(tool, small({"run", "qkv", "--tokens", "5", "--heads", "8", "--head-size", "6"}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["check"], "ok");
  EXPECT_EQ(rows[0]["hidden"], 48);
  const Outcome heads = tool(small({"run", "qkv", "--heads", "6"}));
  EXPECT_EQ(heads.code, 2);
  EXPECT_EQ(heads.err, "kernbench: error: --heads is 6; give a multiple of the machine's 4 SIPs\n");
}

TEST(VaOffsetVerify, EveryPlacementLeadsToItsOwnersMemory) {
  const Tool tool;
  const auto rows = rows_of(tool, small({"run", "va_offset_verify", "--bytes", "1000"}));
  EXPECT_EQ(rows.size(), 4u * 15 * 3);  // SIPs, placements, distances
  for (const auto& row : rows) EXPECT_EQ(row["check"], "ok") << row;
}

TEST(VaOffsetVerify, ServesShardsOfEightBytesOnTheDefaultMachine) {
  const Tool tool;
  const auto rows =
      rows_of(tool, {"run", "va_offset_verify", "--bytes", "1K", "--placement", "cube=column_wise,pe=column_wise"});
  ASSERT_EQ(rows.size(), 6u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["check"], "ok") << row;
    EXPECT_EQ(row["shards"], 128);
  }
}

TEST(VaOffsetVerify, AllPePlacementsWithFewerCubesAndPes) {
  const Tool tool;
  const auto rows = rows_of(
      tool, small({"run", "va_offset_verify", "--bytes", "96", "--placement", "cube=row_wise,pe=row_wise,pes=1"}));
  for (const auto& row : rows) EXPECT_EQ(row["shards"], 2) << row;
}

// Without, all read from one memory at a time: here 1.5 times as long, and more where there are more rows.
TEST(GemmWorkload, CubesThatHoldRowsBeginWithTheirOwn) {
  const Tool tool;
  const auto time = [&](const char* operands) {
    return rows_of(tool, {"run", "gemm", "--m", "1024", "--n", "1792", "--k", "2048", "--operands", operands,
                          "--fidelity", "fast", "--data", "off"})
        .at(0)["time_ns"]
        .get<double>();
  };
  EXPECT_LT(time("rows"), 1.1 * time("packed"));
}

// As a column layer leaves it, a lies in shards of 56 columns. Steps of 64 rows of b, cut where a shard ends, were
// loads and messages of 8 to 56 columns: 45 us, where the estimate says 19.
TEST(GemmWorkload, StepsEndWhereAShardOfAEnds) {
  const Tool tool;
  const nlohmann::ordered_json row =
      rows_of(tool, {"run", "gemm", "--m", "128", "--n", "4096", "--k", "7168", "--operands", "row", "--mapping",
                     "passed:32x32x64,rows=4,chains=1", "--fidelity", "fast", "--data", "off"})
          .at(0);
  EXPECT_GT(row["bound_share"].get<double>(), 0.75);
}

}  // namespace
}  // namespace kernbench
