#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kSmall{"run", "all_reduce", "-b", "1K", "-e", "4K", "-f", "4"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The JSON object of a run that has to succeed, with nothing else on standard output and nothing on standard error.
ordered_json run(const Tool& tool, const std::vector<std::string>& arguments) {
  const Outcome outcome = tool(with(arguments, {"--json", "-"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  ordered_json json = json_of(outcome.out);
  EXPECT_FALSE(json.is_discarded()) << outcome.out;
  return json;
}

std::string without_host(ordered_json json) {
  json.erase("host");
  return json.dump(1);
}

TEST(Run, PrintsOneSchemaValidJsonObject) {
  const Tool tool;
  const ordered_json json = run(tool, kSmall);
  EXPECT_EQ(schema_errors(json), "");
  EXPECT_EQ(json["workload"], "all_reduce");
  EXPECT_EQ(json["machine"], ordered_json({{"sips", 2}, {"cubes", 32}, {"pes", 256}}));
  ASSERT_EQ(json["results"].size(), 2U);
  for (const auto& row : json["results"]) EXPECT_EQ(row["check"], "ok");
}

TEST(Run, SchemaRefusesRowsThatLackAKey) {
  const Tool tool;
  ordered_json json = run(tool, kSmall);
  json["results"][0].erase("limited_by");
  EXPECT_THAT(schema_errors(json), HasSubstr("limited_by"));
  json["results"] = ordered_json::array({{{"op", "p2p"}, {"how", "ipcq"}}});
  EXPECT_THAT(schema_errors(json), HasSubstr("distance"));
}

TEST(Run, IsByteIdenticalOutsideHost) {
  const Tool tool;
  EXPECT_EQ(without_host(run(tool, kSmall)), without_host(run(tool, kSmall)));
}

TEST(Run, TakesTheSameTimeWithoutData) {
  const Tool tool;
  const ordered_json on = run(tool, kSmall), off = run(tool, with(kSmall, {"--data", "off"}));
  EXPECT_EQ(on["sim_time_ps"], off["sim_time_ps"]);
  EXPECT_EQ(off["data"], false);
  for (const auto& row : off["results"]) EXPECT_EQ(row["check"], "skipped");
  EXPECT_EQ(schema_errors(off), "");
}

/// Also where few ranks have anything to copy.
TEST(Run, TakesTheSameTimeWithoutDataWhereTheHostsCopiesTakeTime) {
  const Tool tool;
  for (const char* op : {"gather", "scatter", "send_recv"}) {
    const std::vector<std::string> timed{
        "run", op, "-b", "64", "-e", "64", "--set", "system.sips.count=4", "--topology", "ring8", "--host-io", "timed"};
    const ordered_json on = run(tool, timed), off = run(tool, with(timed, {"--data", "off"}));
    EXPECT_EQ(on["sim_time_ps"], off["sim_time_ps"]) << op;
    EXPECT_EQ(on["results"][0]["time_ns"], off["results"][0]["time_ns"]) << op;
  }
}

TEST(Run, DoesNotDependOnTheRecordersWindow) {
  const Tool tool;
  EXPECT_EQ(without_host(run(tool, with(kSmall, {"--recorder-window", "1"}))),
            without_host(run(tool, with(kSmall, {"--recorder-window", "4096"}))));
}

/// With an op log all SIPs keep step, without one they run ahead of each other and of what the host is told.
TEST(Run, EndsAtTheSameInstantWhetherSipsKeepStepOrNot) {
  const Tool tool;
  const std::vector<std::string> groups{"run",         "all_reduce", "--topology", "ring8", "-b",      "4K",
                                        "--algorithm", "ring",       "--group",    "0,1,2", "--group", "4,5"};
  const ordered_json ahead = run(tool, groups), in_step = run(tool, with(groups, {"--oplog", "ops"}));
  EXPECT_EQ(ahead["sim_time_ps"], in_step["sim_time_ps"]);
  EXPECT_EQ(ahead["energy_pj"], in_step["energy_pj"]);
  EXPECT_EQ(ahead["results"], in_step["results"]);
}

TEST(Run, WavesAndOpLogChangeNothing) {
  const Tool tool;
  const ordered_json plain = run(tool, kSmall);
  EXPECT_EQ(without_host(run(tool, with(kSmall, {"--vcd", "run.vcd", "--oplog", "ops.jsonl"}))), without_host(plain));
  EXPECT_THAT(read(tool.file("run.vcd")), HasSubstr("$scope module pe7 $end"));
  EXPECT_THAT(read(tool.file("run.gtkw")), HasSubstr("sip0.cube0.pe0"));
  std::istringstream log(read(tool.file("ops.jsonl")));
  std::size_t rows = 0;
  for (std::string line; std::getline(log, line); ++rows) EXPECT_FALSE(json_of(line).is_discarded()) << line;
  EXPECT_GT(rows, 0U);
}

TEST(Run, WritesJsonToAFileAndATableToStandardOutput) {
  const Tool tool;
  const Outcome outcome = tool(with(kSmall, {"--json", "result.json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("busbw"));
  EXPECT_EQ(schema_errors(json_of(read(tool.file("result.json")))), "");
}

TEST(Run, RunsAgainFromItsResult) {
  const Tool tool;
  const ordered_json first = run(tool, with(kSmall, {"--set", "pe.ipcq.slots=8", "--seed", "7"}));
  std::ofstream(tool.file("first.json")) << first.dump();
  const ordered_json again = run(tool, {"run", "--from", "first.json"});
  EXPECT_EQ(without_host(first), without_host(again));
  const ordered_json other = run(tool, {"run", "--from", "first.json", "--seed", "8"});
  EXPECT_EQ(other["seed"], 8);
  EXPECT_EQ(other["config_hash"], first["config_hash"]);
}

/// A pinned layout is read again from its place, and is the one of the earlier run unless it is named again.
TEST(Run, ThePinnedLayoutOfAnEarlierRunHasToBeWhatItWas) {
  const Tool tool;
  ASSERT_EQ(tool({"topology", "export", "minimal", "--what", "cube-mesh", "-o", "cube_mesh.yaml"}).code, 0);
  std::ofstream(tool.file("machine.yaml")) << "extends: minimal\n";
  const ordered_json first = run(tool, {"run", "all_reduce", "--topology", "machine.yaml", "-b", "4K"});
  std::ofstream(tool.file("first.json")) << first.dump();
  EXPECT_EQ(first["files"].size(), 1U);
  EXPECT_EQ(tool({"run", "--from", "first.json"}).code, 0);
  std::ofstream(tool.file("cube_mesh.yaml"), std::ios::app) << "# of today\n";
  const Outcome changed = tool({"run", "--from", "first.json"});
  EXPECT_EQ(changed.code, 2);
  EXPECT_EQ(changed.err,
            "kernbench: error: 'cube_mesh.yaml' is not what it was in the earlier run\n"
            "  hint: give --set cube_mesh=cube_mesh.yaml to run with it all the same\n");
  EXPECT_EQ(tool({"run", "--from", "first.json", "--set", "cube_mesh=cube_mesh.yaml"}).code, 0);
}

TEST(Run, AResultFileThatCannotBeReadIsSaidWithTheReason) {
  const Tool tool;
  EXPECT_EQ(tool({"run", "--from", "none.json"}).err,
            "kernbench: error: cannot read 'none.json': No such file or directory\n");
  EXPECT_EQ(tool({"run", "--from", "."}).err, "kernbench: error: cannot read '.': Is a directory\n");
}

TEST(Run, RefusesAResultFileThatIsNone) {
  const Tool tool;
  std::ofstream(tool.file("bad.json")) << "{\"a\": 1}";
  const Outcome outcome = tool({"run", "--from", "bad.json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "kernbench: error: --from 'bad.json' is no result of 'kernbench run'\n  hint: give a file that 'kernbench "
            "run ... --json FILE' wrote\n");
  EXPECT_EQ(tool({"run", "--from", "none.json"}).code, 7);
  std::ofstream(tool.file("empty.json")).flush();
  const Outcome empty = tool({"run", "--from", "empty.json"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("--from 'empty.json' is not a result file (empty)\n"));
  EXPECT_EQ(tool({"run", "--from", "."}).code, 7);
}

TEST(Run, BadTopologyIsBadInput) {
  const Tool tool;
  std::ofstream(tool.file("bad.yaml")) << "extends: default\ncube:\n  noc:\n    rwos: 3\n";
  const Outcome outcome = tool(with(kSmall, {"--topology", "bad.yaml", "--json", "result.json"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "bad.yaml:4:5: error: unknown key 'rwos' in 'cube.noc'\n  hint: did you mean 'rows'?\n");
  EXPECT_FALSE(std::filesystem::exists(tool.file("result.json")));
}

TEST(Run, ArgumentsThatOnlyARankCouldRefuseAreBadInput) {
  const Tool tool;
  const Outcome sum = tool({"run", "all_reduce", "--topology", "ring8", "-b", "1K", "-e", "1K", "--dtype", "bool"});
  EXPECT_EQ(sum.code, 2);
  EXPECT_EQ(sum.err, "kernbench: error: --op sum is not defined for bool; give max (or) or min (and)\n");
  const Outcome tiles = tool({"run", "reduce_scatter", "--scope", "cube", "--placement", "cube=replicate,pe=row_wise"});
  EXPECT_EQ(tiles.code, 2);
  EXPECT_THAT(tiles.err, HasSubstr("error: --scope cube: reduce_scatter leaves other data in every tile"));
  const Outcome cubes = tool({"run", "all_reduce", "--placement", "cube=row_wise,pe=row_wise,cubes=99"});
  EXPECT_EQ(cubes.code, 2);
  EXPECT_THAT(cubes.err, ::testing::StartsWith("kernbench: error: --placement cubes is 99"));
}

/// Each is an input: no output may replace it, and the result has its hash.
TEST(Run, FilesThatOptionsNameAreInputs) {
  const Tool tool;
  std::filesystem::copy_file(KERNBENCH_SOURCE_DIR "/docs/examples/pipeline/all_kinds.yaml", tool.file("doc.yaml"));
  const std::string traces = KERNBENCH_SOURCE_DIR "/docs/examples/chakra/training_step";
  const std::vector<std::vector<std::string>> calls{
      {"tp_mlp", "--weight-placement", "p.yaml"},
      {"tp_mlp", "--output-placement", "p.yaml"},
      {"qkv", "--input-placement", "p.yaml"},
      {"qkv", "--algorithm", "p.xml"},
      {"tp_transformer", "--bias-placement", "p.yaml"},
      {"all_reduce", "--placement", "p.yaml"},
      {"all_reduce", "--in-place", "0", "--out-placement", "p.yaml"},
      {"va_offset_verify", "--placement", "p.yaml"},
      {"chakra", "--workload-configuration", traces, "--placement", "p.yaml"},
      {"pipeline", "--file", "doc.yaml", "--place", "x:p.yaml"},
      {"pipeline", "--file", "doc.yaml", "--gemm-placement", "p.yaml"},
      {"pipeline", "--file", "doc.yaml", "--algorithm", "p.xml"}};
  for (const std::vector<std::string>& call : calls) {
    SCOPED_TRACE(::testing::PrintToString(call));
    const std::string file = call.back().substr(call.back().size() - 5) == "p.xml" ? "p.xml" : "p.yaml";
    const std::string text = "cube: column_wise\npe: column_wise\n";
    std::ofstream(tool.file(file)) << text;
    const Outcome outcome = tool(with(with({"run"}, call), {"--json", file}));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err,
              "kernbench: error: an input and --json are both '" + file + "'\n  hint: give each a file of its own\n");
    EXPECT_EQ(read(tool.file(file)), text);
  }
  const ordered_json json =
      run(tool, {"run", "va_offset_verify", "--topology", "minimal", "--bytes", "1K", "--placement", "p.yaml"});
  EXPECT_TRUE(json.at("files").contains("p.yaml"));
}

/// Also where a rank refuses it, after the machine stands and other work is done.
TEST(Run, OneThatIsRefusedLeavesOutputsOfEarlierOnesAsTheyWere) {
  const Tool tool;
  const std::vector<std::string> outputs{"--trace",  "t.json", "--stats", "s.st",   "--oplog",
                                         "o.sqlite", "--vcd",  "v.vcd",   "--json", "r.json"};
  const std::vector<std::string> gemm{"run", "gemm", "--m", "16", "--n", "64", "--k", "64", "--topology", "minimal"};
  const Outcome good = tool(with(gemm, outputs));
  ASSERT_EQ(good.code, 0) << good.err;
  const auto contents = [&] {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(tool.folder().path())) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && name.front() != '.') all += name + "\n" + read(entry.path().string());
    }
    return all;
  };
  const std::string before = contents();
  const Outcome refused = tool(with(with(gemm, outputs), {"--mapping", "auto", "ring"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, ::testing::StartsWith("kernbench: error: "));
  EXPECT_EQ(refused.err.find("warning"), std::string::npos) << refused.err;
  EXPECT_TRUE(contents() == before);
}

TEST(Run, PlacementGoesAroundMissingPes) {
  const Tool tool;
  std::ofstream(tool.file("one.yaml"))
      << "extends: default\noverrides:\n  - {match: \"sip1.cube5.pe3\", missing: true}\n";
  for (const char* placement : {"cube=column_wise,pe=column_wise", "cube=replicate,pe=replicate,cubes=2",
                                "cube=row_wise,pe=replicate", "cube=replicate,pe=column_wise"}) {
    const Outcome outcome =
        tool({"run", "all_reduce", "-b", "4K", "-e", "4K", "--topology", "one.yaml", "--placement", placement});
    EXPECT_EQ(outcome.code, 0) << placement << outcome.err;
  }
  // Cubes that lack different PEs: copies of a shard would not face each other.
  std::ofstream(tool.file("less.yaml"))
      << "extends: default\noverrides:\n  - {match: \"sip1.cube5.pe3\", missing: true}\n"
         "  - {match: \"sip0.cube2.pe0\", missing: true}\n";
  EXPECT_EQ(tool({"run", "all_reduce", "-b", "4K", "-e", "4K", "--topology", "less.yaml"}).code, 0);
  EXPECT_EQ(tool({"run", "gemm", "--m", "64", "--n", "64", "--k", "64", "--topology", "less.yaml"}).code, 0);
  EXPECT_EQ(tool({"run", "stream", "--bytes", "16K", "--topology", "less.yaml"}).code, 0);
  EXPECT_EQ(tool({"run", "tp_mlp", "--topology", "less.yaml"}).code, 0);
  const Outcome copies = tool({"run", "all_reduce", "-b", "4K", "-e", "4K", "--topology", "less.yaml", "--placement",
                               "cube=replicate,pe=column_wise"});
  EXPECT_EQ(copies.code, 2);
  EXPECT_THAT(copies.err, HasSubstr("copies of one shard lie on other PEs of sip0.cube2 than of sip0.cube0"));
  const Outcome eight = tool({"run", "all_reduce", "--topology", "less.yaml", "--placement", "pe=column_wise,pes=8"});
  EXPECT_EQ(eight.code, 2);
  EXPECT_EQ(eight.err,
            "kernbench: error: --placement pes is 8: give 1 to 7, the PEs that every cube offers: some are missing on "
            "this machine\n");
}

TEST(Run, WarnsOfAWaveFilterThatMatchesNothing) {
  const Tool tool;
  const Outcome outcome =
      tool(with(kSmall, {"--vcd", "run.vcd", "--wave-filter", "sip0.cube0.pe0.*", "--wave-filter", "sip9.**"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "kernbench: warning: --wave-filter 'sip9.**' matches no signal\n");
}

TEST(Run, WarnsOfAWaveWindowBehindTheEnd) {
  const Tool tool;
  const Outcome outcome = tool(with(kSmall, {"--vcd", "run.vcd", "--wave-window", "1s..2s"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("kernbench: warning: no waves: the run ended at "));
  EXPECT_EQ(tool(with(kSmall, {"--vcd", "run.vcd", "--wave-window", "0ns..2s"})).err, "");
}

/// A round goes on when the models have nothing left, which then are ahead of the host by as much as a window.
TEST(Run, RoundsWithTimedCopiesEndOnEverySip) {
  const Tool tool;
  for (const char* preset : {"ring8", "torus4x4", "minimal"}) {
    const Outcome outcome = tool({"run", "p2p", "-e", "256", "--topology", preset, "--host-io", "timed", "--scheduling",
                                  "rounds", "--fidelity", "fast"});
    EXPECT_EQ(outcome.code, 0) << preset << outcome.err;
  }
}

TEST(Run, VerboseTellsMachineEventsAndHostTime) {
  const Tool tool;
  const Outcome plain = tool(kSmall), verbose = tool(with(kSmall, {"-v"}));
  EXPECT_EQ(verbose.code, 0);
  EXPECT_EQ(verbose.out, plain.out);
  EXPECT_THAT(verbose.err, ::testing::ContainsRegex("configuration [0-9a-f]+: 2 SIPs, 32 cubes, 256 PEs\n"));
  EXPECT_THAT(verbose.err, ::testing::ContainsRegex(" us of simulated time, [1-9][0-9]* events; wall .* CPU .* MiB\n"));
  EXPECT_THAT(verbose.err,
              ::testing::ContainsRegex("energy [0-9.]+ [mu]J, [0-9.]+ % of it static: [a-z_]+ [0-9.]+ [mu]J, "));
}

TEST(Run, StopsAtTheSimulatedTimeLimit) {
  const Tool tool;
  const Outcome outcome = tool(with(kSmall, {"--max-sim-time", "1 us", "--json", "result.json", "--vcd", "run.vcd"}));
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              HasSubstr("kernbench: error: the simulated time limit of 1.000 us (--max-sim-time) was reached"));
  EXPECT_THAT(tool.folder().path(), ::testing::Truly([](const std::filesystem::path& p) {
                return !std::filesystem::exists(p / "result.json");
              }));
  EXPECT_THAT(read(tool.file("run.vcd")), HasSubstr("$enddefinitions"));
}

/// A long run that gets `signal` once its files are open and it has had a second to get going.
Outcome signalled(const Tool& tool, const std::string& signal) {
  return tool.shell(quoted(KERNBENCH_BINARY) +
                    " run all_reduce -b 64M -e 64M --data off --vcd run.vcd --json result.json & pid=$!; "
                    "while ! ls run.vcd.*.tmp > ls.out 2>&1; do sleep 0.1; done; sleep 1; kill -" +
                    signal + " $pid; wait $pid; exit $?");
}

TEST(Run, HangupAndTermEndAsCtrlCDoes) {
  for (const std::string signal : {"HUP", "TERM"}) {
    const Tool tool;
    const Outcome outcome = signalled(tool, signal);
    EXPECT_EQ(outcome.code, 130) << signal;
    EXPECT_THAT(outcome.err, HasSubstr("kernbench: error: interrupted at "));
    EXPECT_THAT(read(tool.file("run.vcd")), HasSubstr("$enddefinitions"));
  }
}

TEST(Run, InterruptLeavesReadableWaves) {
  const Tool tool;
  const Outcome outcome = signalled(tool, "INT");
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("kernbench: error: interrupted at "));
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(read(tool.file("run.vcd")), HasSubstr("$enddefinitions"));
  for (const auto& entry : std::filesystem::directory_iterator(tool.folder().path()))
    EXPECT_NE(entry.path().extension(), ".tmp");
  EXPECT_FALSE(std::filesystem::exists(tool.file("result.json")));
}

TEST(Run, OutOfDeviceMemoryHasACodeOfItsOwn) {
  const Tool tool;
  const Outcome outcome =
      tool({"run", "tp_mlp", "--in", "4096", "--hidden", "524288", "--out", "1048576", "--data", "off"});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "kernbench: error: rank 0 of 2 failed; first reason: out of device memory: tensor 'fc2.weight' asks for "
            "4294967296 B of sip0.cube0.hbm.pe0 (2147483648 B): 2130182144 B are free, the largest free block has "
            "2130182144 B; biggest tensors there: 'fc1.weight' 16777216 B, 'fc1.bias' 524288 B\n");
}

TEST(Run, EveryWorkloadsExampleWorksWhenPasted) {
  const Tool tool;
  // Examples name their files as a clone has them.
  std::filesystem::create_directory_symlink(std::string(KERNBENCH_SOURCE_DIR) + "/docs", tool.file("docs"));
  std::istringstream list(tool({"list", "--workloads"}).out);
  std::string line;
  std::getline(list, line);
  int count = 0;
  for (std::string name; list >> name; ++count) {
    std::getline(list, line);
    const std::string help = tool({"run", name, "--help"}).out;
    const auto at = help.find("Example:\n  kernbench ");
    ASSERT_NE(at, std::string::npos) << help;
    const std::string example = help.substr(at + std::string("Example:\n  kernbench ").size());
    const Outcome outcome =
        tool.shell(quoted(KERNBENCH_BINARY) + " " + example.substr(0, example.find('\n')) + " --json result.json");
    EXPECT_EQ(outcome.code, 0) << example << outcome.err;
    EXPECT_EQ(schema_errors(json_of(read(tool.file("result.json")))), "") << example;
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace kernbench
