/// What once crashed, hung or lost a result, each as it was found.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/tool_runner.h"
#include "tests/support/children_cpu.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

struct Line {
  const char* what;
  std::string command;  ///< after the tool's name
  int code;
  std::string said;  ///< on either stream
};

void expect_lines(const Tool& tool, const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    const Outcome outcome = tool.shell("timeout -s KILL 20 " + quoted(KERNBENCH_BINARY) + " " + line.command);
    EXPECT_EQ(outcome.code, line.code) << line.what << "\n" << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(line.said)) << line.what;
    EXPECT_THAT(outcome.err, Not(HasSubstr("internal error"))) << line.what;
  }
}

TEST(Survival, EveryAcceptedMachineRunsToItsEnd) {
  const Tool tool;
  const std::string ring =
      "run all_reduce -b 256K -e 256K --topology ring8 --algorithm ring --fidelity fast --set "
      "system.links.flit_size=256B ";
  const std::string tcm = "--topology minimal --set 'pe.tcm.bandwidth=1 GB/s' --fidelity fast ";
  const std::string writes = "--topology minimal --set cube.hbm.write_low=0 ";
  expect_lines(
      tool,
      {{"SIPs behind a switch are two wires apart",
        "run link --kind inter_sip -n 20 -e 256 --set system.sips.topology=switch", 0, "inter_sip"},
       {"a packet that slips in behind a replay", ring + "--set system.links.bit_errors=1000000000000", 0, " ring; "},
       {"the same over UCIe", "run p2p -b 64K -e 64K --fidelity fast --set cube.ucie.bit_errors=1000000000000", 0,
        " ok"},
       {"a port slower than the trains that it takes",
        "run all_reduce -b 20K -e 20K --algorithm direct --set system.sips.count=2 " + tcm, 0, " direct; "},
       {"the same behind a read", "run stream --bytes 16K " + tcm, 0, "triad"},
       {"reads that wait for fewer than no writes", "run stream --bytes 16K " + writes, 0, "triad"},
       {"the same in the fast grade", "run stream --bytes 16K --fidelity fast " + writes, 0, "triad"},
       {"the same of a probe", "run probe " + writes, 0, "h2d"},
       {"the same of a GEMM", "run gemm --m 64 --n 64 --k 64 " + writes, 0, " ok"},
       {"the same of a collective", "run all_reduce -b 16K -e 16K --set system.sips.count=2 " + writes, 0,
        "values : 0 OK"},
       {"p2p without its first PE", "run p2p --topology none.yaml", 2, "none.yaml"}});
  std::ofstream(tool.file("holes.yaml"))
      << "extends: minimal\ncube: {pes: 2}\noverrides: [{match: sip0.cube0.pe0, missing: true}]\n";
  expect_lines(tool, {{"p2p without its first PE", "run p2p -b 64 -e 64 --topology holes.yaml", 2,
                       "p2p begins at sip0.cube0.pe0"},
                      {"marks the wrong way round", "topology check minimal --set cube.hbm.write_high=10", 2,
                       "cube.hbm.write_high is 10, below write_low, 20"}});
}

/// The same problem, found again in every override: it is said once, and no value of its is used.
TEST(Survival, AnInvalidValueUnderOverridesIsReportedAndTheRestIsChecked) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << "extends: default\ncube: {hbm: {generation: HBM3E}}\n"
                                        "overrides:\n  - {match: sip0.cube3, pe: {gemm: {rows: 64}}}\n"
                                        "  - {match: sip0.cube4, pe: {gemm: {rows: 0}}}\n";
  const Outcome outcome = tool({"topology", "check", "m.yaml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("m.yaml:2:26: error: cube.hbm.generation is 'HBM3E'"));
  EXPECT_THAT(outcome.err, HasSubstr("m.yaml:5:43: error: pe.gemm.rows is '0'"));
}

std::string deep(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Survival, FilesOfOthersAreReadWithinLimitsAndSaidInPrintableText) {
  const Tool tool;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(tool.file(name), std::ios::binary) << text;
  };
  write("from.json", R"({"command": ["run", "probe"], "config": {"a": )" + deep(100'000) + "}}");
  write("groups.json", deep(100'000));
  write("deep.yaml", deep(5'000));
  write("escape.xml", "<algo name=\"a\" proto=\"\033[31m\" coll=\"x\033[31m\xff\" ngpus=\"2\"></algo>");
  write("mesh.yaml", "extends: minimal\ncube_mesh: /dev/zero\n");
  write("base.yaml", "extends: /dev/zero\n");
  std::filesystem::create_symlink("/dev/zero", tool.file("zero.xml"));
  write("deep.safetensors", std::string("\x00\x10\x00\x00\x00\x00\x00\x00", 8) + std::string(4096, '['));
  const std::string reduce = "run all_reduce -b 1K -e 1K --topology minimal ";
  expect_lines(tool, {{"a result file", "run --from from.json", 2, "is nested deeper than 100 levels"},
                      {"communicators",
                       "run chakra --workload-configuration " KERNBENCH_SOURCE_DIR
                       "/docs/examples/chakra/training_step --comm-group-configuration groups.json",
                       2, "groups.json:1:101: error: is nested deeper than 100 levels"},
                      {"a machine", "topology check deep.yaml", 2, "deeper than"},
                      {"a device as a base", "topology check base.yaml", 2,
                       "base.yaml:1:10: error: extends: '/dev/zero' is larger than 16 MiB"},
                      {"a device as a layout", "topology check mesh.yaml", 2,
                       "mesh.yaml:2:12: error: cube_mesh: '/dev/zero' is larger than 16 MiB"},
                      {"a device as a schedule", reduce + "--algorithm zero.xml", 2, "is larger than 64 MiB"},
                      {"weights",
                       "run tp_transformer --model llama3-8b --layers 1 --topology minimal --weights deep.safetensors",
                       2, "deep.safetensors: error: its header is nested deeper than 100 levels"}});
  for (const std::string& command :
       {reduce + "--algorithm escape.xml", reduce + "--algorithm \"$(printf 'x\\033[31m\\377.xml')\"",
        std::string("topology check \"$(printf 'x\\033[31m\\377.yaml')\"")}) {
    const Outcome outcome = tool.shell(quoted(KERNBENCH_BINARY) + " " + command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("\\x1b[31m\\xff")) << command;
    EXPECT_EQ((outcome.out + outcome.err).find('\033'), std::string::npos) << command;
  }
  write("y\033[31m\xff.yaml", "extends: minimal\n");  // a right one is named in what goes to standard output
  const Outcome right = tool.shell(quoted(KERNBENCH_BINARY) + " topology check \"$(printf 'y\\033[31m\\377.yaml')\"");
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_THAT(right.out, HasSubstr("y\\x1b[31m\\xff.yaml: ok"));
}

TEST(Survival, EveryReaderOfJsonAndYamlHasADepthLimit) {
  const Tool tool;
  std::string deep;
  for (int level = 0; level < 50'000; ++level) deep += "{\"a\":";
  deep += "1" + std::string(50'000, '}');
  std::ofstream(tool.file("deep.json")) << deep;
  std::ofstream(tool.file("deep.yaml")) << deep;
  ASSERT_EQ(tool({"run", "probe", "--topology", "minimal", "--json", "r.json"}).code, 0);
  const std::string small = " --topology minimal ";
  std::vector<Line> lines;
  for (const std::string& command :
       {std::string("diff deep.json r.json"), std::string("diff r.json deep.json"), std::string("what-if deep.json"),
        std::string("report deep.json"), std::string("run --from deep.json"), std::string("pipeline check deep.json"),
        std::string("run pipeline --file deep.json"), "run tp_transformer --model deep.json" + small,
        std::string("sweep deep.json"), std::string("search deep.json"), std::string("topology check deep.json"),
        "run all_reduce -b 1K -e 1K --ccl deep.json" + small, "run gemm --mapping deep.json" + small,
        "run tp_mlp --weight-placement deep.yaml" + small}) {
    lines.push_back({"a reader", command, 2, "nested deeper than 100 levels"});
  }
  expect_lines(tool, lines);
}

/// What is there for people's eyes is escaped wherever it is said; what programs read is the same as in a file.
TEST(Survival, TextsOfEveryKindAreEscapedAndDocumentsAreNot) {
  const Tool tool;
  const std::string name = "n\xc2\x9b";  // right UTF-8, and to a terminal the same as an escape and a bracket
  std::ofstream(tool.file("ccl.yaml")) << "algorithms:\n  \"a\\e[31m\": {module: kernbench.ccl.ring}\n";
  ASSERT_EQ(tool({"pipeline", "export", "--in", "64", "--hidden", "64", "--out", "64", "--output", "p.json"}).code, 0);
  std::string pipeline = std::regex_replace(read(tool.file("p.json")), std::regex("npu0"), name);
  pipeline = std::regex_replace(pipeline, std::regex("\"name\": \"mlp"), "\"name\": \"\\u001b[31mmlp");
  auto document = nlohmann::ordered_json::parse(pipeline);
  auto& tensors = document["tensors"];
  const auto constant =
      std::find_if(tensors.begin(), tensors.end(), [](const auto& one) { return one.contains("value"); });
  ASSERT_NE(constant, tensors.end());
  tensors["unused\x1b[31m"] = nlohmann::ordered_json(*constant);
  std::ofstream(tool.file("p.json")) << document.dump(1);
  const std::string binary = quoted(KERNBENCH_BINARY) + " ";
  for (const char* command : {"run all_reduce -b 1K -e 1K --topology minimal --set system.sips.count=2 --ccl ccl.yaml "
                              "--explain --critical-path --algorithm \"$(printf 'a\\033[31m')\"",
                              "pipeline check p.json", "run pipeline --file p.json",
                              "pipeline show p.json --output \"$(printf 'd\\033[31m.svg')\"",
                              "pipeline export --output \"$(printf 'e\\033[31m.json')\""}) {
    const Outcome outcome = tool.shell(binary + command);
    EXPECT_EQ(outcome.code, 0) << command << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr("\\x1b[31m")) << command;
    EXPECT_EQ((outcome.out + outcome.err).find('\033'), std::string::npos) << command;
  }
  std::ofstream(tool.file(name + ".yaml")) << "extends: minimal\n";
  for (const std::string& command :
       {"topology export " + name + ".yaml", "topology show --view system --format json " + name + ".yaml",
        "topology show --view system --format svg " + name + ".yaml", std::string("pipeline show p.json"),
        std::string("pipeline show --format dot p.json")}) {
    const Outcome shown = tool.shell(binary + command);
    ASSERT_EQ(tool.shell(binary + command + " --output written").code, 0) << command;
    EXPECT_THAT(shown.out, HasSubstr(name)) << command;
    EXPECT_EQ(shown.out, read(tool.file("written"))) << command;
  }
}

TEST(Survival, AResultFileRunsNoCodeAndNamesNoOutputs) {
  const Tool tool;
  const Outcome first = tool({"run", "probe", "--topology", "minimal", "--json", "first.json"});
  ASSERT_EQ(first.code, 0) << first.err;
  auto result = nlohmann::ordered_json::parse(read(tool.file("first.json")));
  const nlohmann::ordered_json command = result["command"];
  const auto with = [&](const char* name, const std::vector<std::string>& more) {
    result["command"] = command;
    for (const std::string& word : more) result["command"].push_back(word);
    std::ofstream(tool.file(name)) << result.dump();
  };
  with("outputs.json", {"--vcd", "stolen.vcd", "--oplog=stolen.log", "--json", "stolen.json"});
  const Outcome outputs = tool({"run", "--from", "outputs.json"});
  EXPECT_EQ(outputs.code, 0) << outputs.err;
  EXPECT_THAT(outputs.err, HasSubstr("what 'outputs.json' says of --vcd, --oplog, --json is left out"));
  for (const char* name : {"stolen.vcd", "stolen.log", "stolen.json"})
    EXPECT_FALSE(std::filesystem::exists(tool.file(name))) << name;

  // A pipeline's own output is one, too.
  ASSERT_EQ(tool({"pipeline", "export", "--in", "64", "--hidden", "64", "--out", "64", "--output", "p.json"}).code, 0);
  ASSERT_EQ(tool({"run", "pipeline", "--file", "p.json", "--topology", "minimal", "--json", "piped.json"}).code, 0);
  auto piped = nlohmann::ordered_json::parse(read(tool.file("piped.json")));
  for (const char* word : {"--outputs", "stolen.safetensors"}) piped["command"].push_back(word);
  std::ofstream(tool.file("piped.json")) << piped.dump();
  const Outcome again = tool({"run", "--from", "piped.json"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("what 'piped.json' says of --outputs is left out"));
  EXPECT_FALSE(std::filesystem::exists(tool.file("stolen.safetensors")));

  with("plugin.json", {"--plugin", KERNBENCH_RUNAWAY_WORKLOAD});
  const Outcome plugin = tool({"run", "--from", "plugin.json"});
  EXPECT_EQ(plugin.code, 2);
  EXPECT_THAT(plugin.err, HasSubstr("a result file runs no code"));
  const Outcome other = tool({"run", "--from", "plugin.json", "--plugin", KERNBENCH_RUNAWAY_WORKLOAD});
  EXPECT_EQ(other.code, 2) << "its hash is not in the file";
  EXPECT_THAT(other.err, HasSubstr("is not the plug-in of the earlier run"));

  // The plug-in that a run had, named again: the same run.
  ASSERT_EQ(
      tool({"run", "probe", "--topology", "minimal", "--plugin", KERNBENCH_RUNAWAY_WORKLOAD, "--json", "had.json"})
          .code,
      0);
  EXPECT_EQ(tool({"run", "--from", "had.json"}).code, 2);
  const Outcome same =
      tool({"run", "--from", "had.json", "--plugin", KERNBENCH_RUNAWAY_WORKLOAD, "--json", "same.json"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(nlohmann::ordered_json::parse(read(tool.file("same.json")))["results"],
            nlohmann::ordered_json::parse(read(tool.file("had.json")))["results"]);

  std::ofstream(tool.file("ccl.yaml")) << "algorithms:\n  broken:\n    module: " KERNBENCH_BROKEN_ALGORITHM "\n";
  result["ccl"] = read(tool.file("ccl.yaml"));  // as it is now: there is no other reason to refuse it
  with("ccl.json", {"--ccl", "ccl.yaml"});
  const Outcome ccl = tool({"run", "--from", "ccl.json"});
  EXPECT_EQ(ccl.code, 2);
  EXPECT_THAT(ccl.err, HasSubstr("a result file runs no code"));
}

TEST(Survival, ATextOfAlgorithmsThatTheCommandDoesNotNameIsNamed) {
  const Tool tool;
  ASSERT_EQ(tool({"run", "probe", "--topology", "minimal", "--json", "r.json"}).code, 0);
  nlohmann::ordered_json edited = nlohmann::ordered_json::parse(read(tool.file("r.json")));
  edited["ccl"] = "algorithms: {}";
  std::ofstream(tool.file("r.json")) << edited;
  const Outcome outcome = tool({"run", "--from", "r.json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("error: 'ccl' in 'r.json' has a text, but its command names no --ccl"));
}

TEST(Survival, ANameThatJsonCannotHoldIsRefusedBeforeTheRun) {
  const Tool tool;
  std::ofstream(tool.file("n\xff.yaml")) << "extends: minimal\n";
  const Outcome outcome = tool({"run", "probe", "--topology", "n\xff.yaml", "--json", "result.json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'n\\xff.yaml' is no UTF-8"));
  EXPECT_EQ(tool({"run", "probe", "--topology", "n\xff.yaml"}).code, 0) << "without JSON it may have any name";
}

/// Whatever is written for programs and browsers: the byte stands there escaped, or the name is refused before the
/// work.
TEST(Survival, NoOutputHoldsTheRawBytesOfAName) {
  const Tool tool;
  std::ofstream(tool.file("n\xff.yaml")) << "extends: minimal\n";
  ASSERT_EQ(tool({"run", "probe", "--topology", "minimal", "--json", "b\xff.json"}).code, 0);
  const auto written = [&](std::vector<std::string> words, const std::string& output) {
    words.insert(words.end(), {"--output", output});
    const Outcome outcome = tool(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string text = read(tool.file(output));
    EXPECT_FALSE(text.empty()) << output;
    EXPECT_EQ(text.find('\xff'), std::string::npos) << output;
    return text;
  };
  for (const char* format : {"json", "svg", "dot"})
    written({"topology", "show", "n\xff.yaml", "--view", "system", "--format", format}, std::string("v.") + format);
  EXPECT_THAT(written({"topology", "export", "n\xff.yaml"}, "again.yaml"), HasSubstr("# n\\xff.yaml"));
  EXPECT_EQ(tool({"topology", "check", "again.yaml"}).code, 0);
  EXPECT_THAT(written({"report", "b\xff.json"}, "page.html"), HasSubstr("<title>probe: b\\xff.json"));
  const Outcome run = tool({"run", "probe", "--topology", "n\xff.yaml", "--report", "run.html"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(read(tool.file("run.html")).find('\xff'), std::string::npos);

  const Outcome refused =
      tool({"pipeline", "export", "--in", "64", "--hidden", "64", "--out", "64", "--output", "p\xff.json"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("'p\\xff.json' is no UTF-8, as the JSON of --output has to be"));
}

/// Code that does not come back hears no flag; one signal is enough all the same, and leaves nothing behind.
TEST(Survival, OneSignalEndsARunThatDoesNotListen) {
  const Tool tool;
  const double before = children_cpu_s();
  const Outcome outcome =
      tool.shell("timeout -k 100 1 " + quoted(KERNBENCH_BINARY) + " run --plugin " + KERNBENCH_RUNAWAY_WORKLOAD +
                 " runaway --topology minimal --mode loop --json r.json --vcd r.vcd; echo $?");
  EXPECT_EQ(outcome.out, "124\n") << "137: it had to be killed";
  EXPECT_LT(children_cpu_s() - before, 1 + 4 + 2) << "until the signal, and in which it may listen yet";
  EXPECT_THAT(outcome.err, HasSubstr("kernbench: error: interrupted"));
  for (const auto& entry : std::filesystem::directory_iterator(tool.folder().path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name == ".out" || name == ".err") << name;
  }
}

/// A run that listens ends at once: no patience of four seconds, no second signal.
TEST(Survival, ARunThatListensEndsAtTheSignal) {
  const Tool tool;
  const double before = children_cpu_s();
  const Outcome outcome = tool.shell("timeout -k 100 1 " + quoted(KERNBENCH_BINARY) +
                                     " run all_reduce -b 64M -e 64M -n 100 --topology ring8 --data off; echo $?");
  EXPECT_EQ(outcome.out.substr(outcome.out.size() - 4), "124\n");
  EXPECT_THAT(outcome.err, HasSubstr("kernbench: error: interrupted"));
  EXPECT_LT(children_cpu_s() - before, 4) << "a second until the signal, and no patience";
}

/// What a plug-in throws is its program's failure and names the cause, also where another rank catches everything.
TEST(Survival, ARanksFailureIsTheCauseWhateverOthersCatch) {
  const Tool tool;
  for (const char* mode : {"runtime", "invalid", "swallow", "stop", "outside"}) {
    const Outcome outcome =
        tool({"run", "--plugin", KERNBENCH_RUNAWAY_WORKLOAD, "runaway", "--topology", "minimal", "--mode", mode});
    EXPECT_EQ(outcome.code, 8) << mode << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(std::string(mode) == "stop" ? "sc_stop()" : "the cause")) << mode;
  }
}

/// Outside of its ranks, too: before its run, in it, behind it.
TEST(Survival, WhatAPlugInThrowsNamesItAndTheCallWhateverItsType) {
  const Tool tool;
  const std::string plugin = "throwing.so";  // long paths are shortened
  std::filesystem::create_symlink(KERNBENCH_THROWING_WORKLOAD, tool.file(plugin));
  const auto run = [&](const std::string& how) {
    setenv("KERNBENCH_THROWS", how.c_str(), 1);
    Outcome outcome = tool({"run", "--plugin", plugin, "throwing", "--topology", "minimal"});
    unsetenv("KERNBENCH_THROWS");
    return outcome;
  };
  EXPECT_EQ(run("").code, 0) << "nothing else is wrong with it";
  const std::map<std::string, std::string> calls{{"entry", "kernbench_workload_plugin()"},
                                                 {"constructor", "its constructor"},
                                                 {"name", "name()"},
                                                 {"add_options", "add_options()"},
                                                 {"check_options", "check_options()"},
                                                 {"files", "files()"},
                                                 {"observer", "observer()"},
                                                 {"run", "run()"},
                                                 {"end", "run()"}};
  for (const auto& [how, call] : calls) {
    const std::string whose = "kernbench: error: plug-in '" + plugin + "': " + call + " threw";
    for (const char* type : {"", " runtime", " range", " 3"}) {
      const Outcome outcome = run(how + type);
      EXPECT_EQ(outcome.code, 8) << how << type;
      EXPECT_EQ(outcome.err,
                whose + (std::string(type) == " 3" ? " something that is not a std::exception\n" : ": the cause\n"))
          << how << type;
    }
    EXPECT_EQ(run(how + " invalid").code, 2) << how << ": refused";
  }
  setenv("KERNBENCH_THROWS", "help", 1);
  const Outcome list = tool({"list", "--workloads", "--plugin", plugin});
  unsetenv("KERNBENCH_THROWS");
  EXPECT_EQ(list.code, 8);
  EXPECT_EQ(list.err, "kernbench: error: plug-in '" + plugin + "': help() threw: the cause\n");
}

TEST(Survival, APlugInsOptionMayNotHaveANameThatEveryRunHas) {
  const Tool tool;
  const std::string plugin = "throwing.so";
  std::filesystem::create_symlink(KERNBENCH_THROWING_WORKLOAD, tool.file(plugin));
  for (const auto& [option, name] : {std::pair("topology", "--topology"), {"seed,s", "--seed"}, {"quality,q", "-q"}}) {
    setenv("KERNBENCH_OPTION", option, 1);
    for (const char* more : {"--verbose", "--help"}) {
      const Outcome outcome = tool({"run", "--plugin", plugin, "throwing", more});
      EXPECT_EQ(outcome.code, 2) << option;
      EXPECT_EQ(outcome.err, "kernbench: error: plug-in 'throwing.so': workload 'throwing' has the option '" +
                                 std::string(name) +
                                 "', and there is one of this name already; give it another name\n");
    }
  }
  setenv("KERNBENCH_OPTION", "mode,s", 1);
  EXPECT_EQ(tool({"run", "--plugin", plugin, "throwing", "--topology", "minimal", "-s"}).code, 0);
  unsetenv("KERNBENCH_OPTION");
}

TEST(Survival, RacesThatDebugFindsAreNoSuccess) {
  const Tool tool;
  const std::vector<std::string> race{
      "run",    "--plugin", KERNBENCH_RUNAWAY_WORKLOAD, "runaway", "--topology", "minimal", "--set", "cube.pes=2",
      "--mode", "race"};
  EXPECT_EQ(tool(race).code, 0) << "nobody looks";
  std::vector<std::string> debug = race;
  debug.push_back("--debug");
  const Outcome outcome = tool(debug);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("kernel 'race'"));
  EXPECT_THAT(outcome.err, HasSubstr("kernbench: error: --debug found 1 race"));
}

TEST(Survival, ASearchThatFindsNothingSaysWhy) {
  const Tool tool;
  const std::string file =
      "workload: gemm_single_pe\ntopology: minimal\naxes: {m: [32, 64], n: [64, 128]}\n"
      "objectives: [{name: time_ns, goal: minimize}, {name: rows, goal: maximize, value: m}]\n";
  std::ofstream(tool.file("none.yaml")) << file << "constraints: [m < 0]\n";
  std::ofstream(tool.file("late.yaml")) << file;
  std::ofstream(tool.file("twice.yaml")) << file << "options: {topology: ring8}\n";
  std::vector<Line> lines{{"said twice", "sweep twice.yaml", 2, "'topology' is set in 'topology' and in 'options'"}};
  for (const char* algorithm : {"nsga2", "nspso", "moead", "random"}) {
    lines.push_back({"every point fails", std::string("search late.yaml --point-time '1 ms' --algorithm ") + algorithm,
                     6, "points failed"});
    lines.push_back({"no point is allowed", std::string("search none.yaml --algorithm ") + algorithm, 2,
                     "all that were looked at are refused by constraint 'm < 0'"});
  }
  expect_lines(tool, lines);
}

/// What is lost on standard output is an error; a standard error that is gone is none.
TEST(Survival, StandardStreamsThatAreFullOrClosed) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml"))
      << "workload: gemm\ntopology: minimal\noptions: {m: 32, n: 32, k: 32}\n"
         "axes: {cube.hbm.channels: [1]}\nobjectives: [{name: time_ns, goal: minimize}]\n";
  const std::string sweep = quoted(KERNBENCH_BINARY) + " sweep s.yaml ";
  EXPECT_EQ(tool.shell(sweep + "--dry-run > /dev/full").code, 7);
  EXPECT_EQ(tool.shell(sweep + "--dry-run >&-").code, 7);
  EXPECT_EQ(tool.shell(quoted(KERNBENCH_BINARY) + " bench --filter elaboration_1k_pes --repeat 1 > /dev/full").code, 7);
  EXPECT_EQ(tool.shell(sweep + "-o full.sqlite 2> /dev/full").code, 0);
  EXPECT_EQ(tool.shell(sweep + "-o closed.sqlite 2>&-").code, 0);
  EXPECT_EQ(tool.shell(sweep + "-o closed.sqlite --export closed.sqlite 2>&-").code, 2);
  EXPECT_EQ(tool.shell(quoted(KERNBENCH_BINARY) + " sweep --export closed.sqlite --csv -").code, 0)
      << "no text got into it";
  const std::string warned =
      " run probe --topology minimal --vcd w.vcd --wave-filter nothing --json r.json >/dev/null ";
  for (const char* stream : {"", "2>&-"}) {
    EXPECT_EQ(tool.shell(quoted(KERNBENCH_BINARY) + warned + stream).code, 0);
    EXPECT_TRUE(nlohmann::json::accept(read(tool.file("r.json"))))
        << "nor into a result: " << read(tool.file("r.json"));
  }
}

/// An output appears under a name that nobody can have prepared, and keeps the mode of what it replaces.
TEST(Survival, OutputsFollowNoLinksAndKeepTheirMode) {
  const Tool tool;
  const std::string result = tool.file("r.json");
  std::ofstream(result) << "old";
  ASSERT_EQ(::chmod(result.c_str(), 0600), 0);
  ASSERT_EQ(tool({"run", "probe", "--topology", "minimal", "--json", "r.json"}).code, 0);
  struct stat info {};
  ASSERT_EQ(::stat(result.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(read(result).front(), '{');
  for (const auto& entry : std::filesystem::directory_iterator(tool.folder().path()))
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();

  // A link in the place of a result, and those that somebody has laid where temporary files might go.
  std::ofstream(tool.file("other")) << "somebody else's";
  for (const char* link : {"link.json", "link.json.tmp", "link.json.tmp0", ".link.json.tmp"})
    std::filesystem::create_symlink("other", tool.file(link));
  ASSERT_EQ(tool({"run", "probe", "--topology", "minimal", "--json", "link.json"}).code, 0);
  EXPECT_EQ(read(tool.file("other")), "somebody else's");
  EXPECT_FALSE(std::filesystem::is_symlink(tool.file("link.json")));
  EXPECT_EQ(read(tool.file("link.json")).front(), '{');
}

/// vcd2fst, which writes it, makes files of its own under names that can be foreseen.
TEST(Survival, WavesThatAnotherProgramWritesFollowNoLinksAndKeepTheirMode) {
  const Tool tool;
  if (tool.shell("command -v vcd2fst").code != 0) GTEST_SKIP() << "NOT TESTED: vcd2fst (package gtkwave) is missing";
  const std::string fst = tool.file("x.fst");
  std::ofstream(fst) << "old";
  ASSERT_EQ(::chmod(fst.c_str(), 0600), 0);
  const Outcome outcome = tool({"run", "probe", "--topology", "minimal", "--vcd", "x.fst"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  struct stat info {};
  ASSERT_EQ(::stat(fst.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_NE(read(fst), "old");
  for (const auto& entry : std::filesystem::directory_iterator(tool.folder().path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_NE(name.rfind("x.fst.", 0), 0U) << name;
  }
}

TEST(Survival, AnotherProgramWritesWavesInAFolderThatIsOnlyOurs) {
  const Tool tool;
  std::filesystem::create_directory(tool.file("bin"));
  // In the place of vcd2fst: where it is to write, and what mode that folder has.
  std::ofstream(tool.file("bin/vcd2fst")) << "#!/bin/sh\nstat -c %a \"$(dirname \"$4\")\" > mode\necho made > \"$4\"\n";
  ASSERT_EQ(::chmod(tool.file("bin/vcd2fst").c_str(), 0755), 0);
  std::filesystem::create_directory(tool.file("out"));
  ASSERT_EQ(::chmod(tool.file("out").c_str(), 0777), 0);
  const Outcome outcome = tool.shell("PATH=\"$PWD/bin:$PATH\" " + quoted(KERNBENCH_BINARY) +
                                     " run probe --topology minimal --vcd out/x.fst");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read(tool.file("mode")), "700\n");
  EXPECT_EQ(read(tool.file("out/x.fst")), "made\n");
}
}  // namespace
}  // namespace kernbench
