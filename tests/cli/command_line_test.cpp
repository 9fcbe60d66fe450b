#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/tool_runner.h"
#include "tlm/kernel/dtype.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Bad input: exit code 2, the exact text on standard error, nothing on standard output.
void expect_refused(const Outcome& outcome, const std::string& text) {
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "kernbench: error: " + text + "\n");
}

TEST(CommandLine, PrintsVersionAndHelp) {
  const Tool tool;
  const Outcome version = tool({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "kernbench " KERNBENCH_VERSION "\n");
  EXPECT_EQ(version.err, "");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{{"--help"},
                                                                                         {"-h"},
                                                                                         {"run", "--help"},
                                                                                         {"topology", "--help"},
                                                                                         {"list", "--help"},
                                                                                         {"tune", "--help"},
                                                                                         {"diff", "--help"},
                                                                                         {"what-if", "--help"},
                                                                                         {"pipeline", "--help"}}) {
    const Outcome help = tool(arguments);
    EXPECT_EQ(help.code, 0) << arguments.front();
    EXPECT_THAT(help.out, StartsWith("Usage: kernbench"));
    EXPECT_THAT(help.out, HasSubstr("Example"));
    EXPECT_EQ(help.err, "");
  }
}

TEST(CommandLine, NamesTheNearestCommand) {
  const Tool tool;
  expect_refused(tool({}), "no command given\n  hint: try 'kernbench --help'");
  expect_refused(tool({"rnu"}), "unknown command 'rnu'\n  hint: did you mean 'run'?");
  expect_refused(tool({"--topology", "default"}),
                 "unknown option '--topology'\n  hint: give a command first: run, sweep, search, report, topology, "
                 "list, validate, bench, tune, pipeline, diff, what-if");
}

TEST(CommandLine, RefusesGroupsThatThereAreNot) {
  const Tool tool;
  const auto group = [&](const std::string& text) { return tool({"run", "all_reduce", "--group", text}); };
  EXPECT_THAT(tool({"run", "all_reduce", "--topology", "ring8", "-b", "1K", "--group", "3,4"}).out,
              StartsWith("# all_reduce on 8 SIPs (ring_1d), group 3,4, scope sip, "));
  expect_refused(group("x"), "--group 'x': 'x' is no rank; give ranks and commas, as 0,2,3");
  expect_refused(group("0,2"), "--group '0,2': there is no rank 2; give 0 to 1");
  expect_refused(group("1,1"), "--group '1,1': rank 1 stands in it twice");
}

/// All ranks ask the same: which of them came first says nothing.
TEST(CommandLine, WhatACollectiveRefusesNamesNoRank) {
  const Tool tool;
  expect_refused(
      tool({"run", "all_reduce", "-b", "1K", "--in-place", "0", "--algorithm", "lrab_hierarchical_allreduce"}),
      "algorithm 'lrab_hierarchical_allreduce' works in place only");
  expect_refused(tool({"run", "all_reduce", "-b", "1K", "--placement", "cube=row_wise,pe=row_wise,cubes=99"}),
                 "--placement cubes is 99: give 1 to 16");
}

TEST(CommandLine, OneSipIsNotSips) {
  const Tool tool;
  const Outcome outcome =
      tool({"run", "all_reduce", "-b", "1K", "--topology", "minimal", "--set", "system.sips.count=1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("# all_reduce on 1 SIP ("));
}

TEST(CommandLine, NamesTheNearestOptionAndWorkload) {
  const Tool tool;
  expect_refused(tool({"run", "all_reduce", "--topolgy", "default"}),
                 "unknown option '--topolgy'\n  hint: did you mean '--topology'?");
  expect_refused(tool({"run", "all_reduce", "--jsn", "-"}), "unknown option '--jsn'\n  hint: did you mean '--json'?");
  EXPECT_EQ(tool({"run", "all_reduce", "--topo", "default"}).code, 2) << "abbreviations are not guessed";
  expect_refused(tool({"run", "all_reduec"}), "unknown workload 'all_reduec'\n  hint: did you mean 'all_reduce'?");
  EXPECT_EQ(tool({"run"}).code, 2);
  EXPECT_THAT(tool({"run"}).err, StartsWith("kernbench: error: no workload given\n  hint: workloads: "));
}

/// Wherever it stands: behind options that every run has, but not behind what only a workload could know.
TEST(CommandLine, NamesTheNearestWorkloadBesidePlugInsToo) {
  const Tool tool;
  const std::string plugin = KERNBENCH_RUNAWAY_WORKLOAD;
  const std::vector<std::vector<std::string>> named{
      {"--plugin", plugin, "runawya"},
      {"--plugin=" + plugin, "runawya", "--mode", "loop"},
      {"-q", "--set", "system.sips.count=2", "runawya", "--plugin", plugin},
      {"--plugin", plugin, "runawya", "--help"}};
  for (std::vector<std::string> arguments : named) {
    arguments.insert(arguments.begin(), "run");
    expect_refused(tool(arguments), "unknown workload 'runawya'\n  hint: did you mean 'runaway'?");
  }
  const Outcome none = tool({"run", "--plugin", plugin, "--load", "0.1", "0.2"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, StartsWith("kernbench: error: no workload given\n  hint: workloads: "));
}

TEST(CommandLine, RefusesValuesThatDoNotFit) {
  const Tool tool;
  expect_refused(tool({"run", "all_reduce", "--data", "maybe"}), "--data is 'maybe'\n  hint: give 'on' or 'off'");
  expect_refused(tool({"run", "all_reduce", "--color", "blue"}), "--color is 'blue'\n  hint: give 'auto' or 'never'");
  expect_refused(tool({"run", "all_reduce", "--recorder-window", "0"}),
                 "--recorder-window is '0'\n  hint: give an integer of at least 1");
  expect_refused(tool({"run", "all_reduce", "--wave-filter", "**"}),
                 "--wave-filter without --vcd\n  hint: give --vcd FILE as well");
  expect_refused(tool({"run", "all_reduce", "--vcd", "x.vcd", "--wave-window", "2us..1us"}),
                 "--wave-window is '2us..1us', which is empty\n  hint: give FROM..TO, e.g. '10us..20us'");
  expect_refused(tool({"run", "all_reduce", "--seed", "x"}), "--seed is 'x'\n  hint: give an integer of at least 0");
  expect_refused(tool({"run", "all_reduce", "stray"}),
                 "unexpected argument 'stray'\n  hint: an option's value follows its name");
  expect_refused(tool({"sweep", "sweep.yaml", "--sbatch-option=--partition=long"}),
                 "--sbatch-option is for --executor slurm\n  hint: leave it out, or give it");
  expect_refused(tool({"sweep", "sweep.yaml", "--host", "far"}),
                 "--host and --host-tool are for --executor parallel\n  hint: leave them out, or give it");
  expect_refused(tool({"sweep", "sweep.yaml", "--tasks", "0"}),
                 "--tasks is '0'\n  hint: give an integer of at least 1");
  EXPECT_EQ(tool({"run", "all_reduce", "--max-sim-time", "10"}).code, 2);
  EXPECT_THAT(tool({"run", "all_reduce", "--max-sim-time", "10"}).err,
              StartsWith("kernbench: error: --max-sim-time is '10'"));
}

TEST(CommandLine, OnePassFindsAllValuesThatDoNotFit) {
  const Tool tool;
  const std::string next = "\nkernbench: error: ";
  expect_refused(
      tool({"run",   "all_reduce", "-d",         "f13",  "-o",         "sume", "-b",          "x",   "-e",     "4X",
            "-w",    "-1",         "-n",         "0",    "--scope",    "foo",  "--placement", "row", "--data", "maybe",
            "--vcd", "-",          "--fidelity", "slow", "--topology", ""}),
      "--data is 'maybe'\n  hint: give 'on' or 'off'" + next +
          "--fidelity is 'slow', entry 1: unknown grade 'slow'\n  hint: grades: accurate, fast" + next +
          "--vcd is '-'\n  hint: give a file; only --json goes to standard output" + next +
          "--topology is ''\n  hint: give a file or a preset; 'kernbench list' names the presets" + next +
          "-b is 'x'; give bytes, such as 512, 4K, 1M or 2G (powers of 1024)" + next +
          "-e is '4X'; give bytes, such as 512, 4K, 1M or 2G (powers of 1024)" + next +
          "--dtype is 'f13'; did you mean 'f16'?" + next + "--op is 'sume'; did you mean 'sum'?" + next +
          "--scope is 'foo'; valid values: sip, cube, pe" + next +
          "--placement has no key 'row'; valid keys: cube, pe, cubes, pes" + next + "-w is -1; give 0 or more" + next +
          "-n is 0; give at least 1");
}

TEST(CommandLine, WhatAFileOrAnotherOptionRefusesHidesNoValue) {
  const Tool tool;
  const std::string next = "\nkernbench: error: ", size = "give bytes, such as 512, 4K, 1M or 2G (powers of 1024)";
  std::ofstream(tool.file("pl.yaml")) << "cub: x\npe: bar\n";
  EXPECT_EQ(tool({"run", "all_reduce", "--placement", "pl.yaml", "--out-placement", "none.yaml", "--in-place", "0",
                  "-w", "-1"})
                .err,
            "pl.yaml:1:1: error: unknown key 'cub' in 'policy'\n  hint: did you mean 'cube'?\n"
            "pl.yaml:2:5: error: policy.pe is 'bar'\n"
            "  hint: valid values: replicate, column_wise, row_wise, tiled_column_major, tiled_row_major\n"
            "none.yaml: error: cannot be read: No such file or directory\n"
            "kernbench: error: -w is -1; give 0 or more\n");
  expect_refused(tool({"run", "all_reduce", "-b", "x", "--placement", "cubes=x,row=1", "--group", "0,x", "--group", "1",
                       "--group", "2,2"}),
                 "-b is 'x'; " + size + next + "--placement cubes is 'x'; give a number of at least 1" + next +
                     "--placement has no key 'row'; valid keys: cube, pe, cubes, pes" + next +
                     "--group '0,x': 'x' is no rank; give ranks and commas, as 0,2,3" + next +
                     "--group '2,2': rank 2 stands in it twice");
  expect_refused(tool({"run", "all_reduce", "-b", "4K", "-e", "1K", "-f", "1"}),
                 "-e 1K is below -b 4K" + next + "-f is 1; give a factor of at least 2");
  expect_refused(tool({"run", "all_reduce", "-e", "1K", "-i", "0"}),
                 "-e 1K is below 1M, where sizes begin without -b; give -b as well" + next +
                     "-i is 0; give the bytes to add from size to size");
  const std::string help = "\n  hint: see --help", whole = "\n  hint: give an integer of at least 0";
  expect_refused(tool({"run", "all_reduce", "-w", "x", "-w", "1", "-n", "x", "--group", "0", "--group", "1"}),
                 "--warmup is 'x'" + whole + next + "option '--warmup' cannot be specified more than once" + help +
                     next + "--iters is 'x'\n  hint: give an integer of at least 1");
  expect_refused(tool({"run", "gemm", "--n", "x", "--m", "4.5"}),
                 "--n is 'x'\n  hint: give an integer" + next + "--m is '4.5'\n  hint: give an integer");
  const std::string leave = "\n  hint: give a value, or leave the option out";
  expect_refused(tool({"run", "all_reduce", "--ccl", "", "--json", "", "-b", "", "-w", "x"}),
                 "--ccl is ''" + leave + next + "--json is ''" + leave + next + "--minbytes is ''" + leave + next +
                     "--warmup is 'x'" + whole);
  expect_refused(tool({"run", "all_reduce", "--replay", "", "--out-placement", ""}),
                 "--replay is ''" + leave + next + "--out-placement is ''" + leave);
  expect_refused(tool({"run", "tp_transformer", "--requests", "", "--weights", ""}),
                 "--requests is ''" + leave + next + "--weights is ''" + leave);
  expect_refused(tool({"tune", "--ccl", "", "-o", ""}), "--ccl is ''" + leave + next + "--output is ''" + leave);
  expect_refused(tool({"sweep", "s.yaml", "--store", "", "--csv", "", "--export", ""}),
                 "--store is ''" + leave + next + "--csv is ''" + leave + next + "--export is ''" + leave);
  expect_refused(tool({"run", "all_reduce", "-w", "2147483647", "-n", "1000001"}),
                 "-w is 2147483647; give at most 1000000" + next + "-n is 1000001; give at most 1000000");
  expect_refused(tool({"tune", "-n", "1000001"}), "--iters is '1000001'\n  hint: give at most 1000000");
  expect_refused(tool({"run", "all_reduce", "-w", "x", "-w", "y", "-w", "1"}),
                 "--warmup is 'x'" + whole + next + "--warmup is 'y'" + whole + next +
                     "option '--warmup' cannot be specified more than once" + help);
}

/// What no machine could serve is refused at once, whatever the workload.
TEST(CommandLine, OnePassFindsAllValuesOfEveryWorkload) {
  const Tool tool;
  const std::string next = "\nkernbench: error: ", flag = "-c is 2; give 0 or 1",
                    range = " is 0; give an integer from 1 to 1048576",
                    dtype =
                        "--dtype is 'q'; valid values: f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, bool",
                    of_layers = "--dtype is 'q'; give f16, bf16, f32 or f64",
                    row = " has no key 'row'; valid keys: cube, pe, cubes, pes",
                    size = " is 'x'; give bytes, such as 512, 4K, 1M or 2G (powers of 1024)";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"tp_mlp --batch 0 --activation x --dtype q -c 2",
       "--batch" + range + next + "--activation is 'x'; valid values: none, relu, gelu, silu, tanh, sigmoid" + next +
           of_layers + next + flag},
      {"qkv --tokens 0 --dtype q --weight-placement row --bias-placement row",
       "--tokens is 0; give an integer from 1 to 65536" + next + of_layers + next + "--weight-placement" + row + next +
           "--bias-placement" + row},
      {"gemm --m 0 --k 0 --dtype q -c 2", dtype + next + "--m" + range + next + "--k" + range + next + flag},
      {"p2p -b x -n 0", "-b" + size + next + "-n is 0; give 1 to 100000"},
      {"link -e 1G --loads 2 --kind x -n 1",
       "-b and -e: give sizes from 1 B to 16 MiB" + next + "--loads is '2'; give numbers from 0 to 1, such as 0,0.5,1" +
           next + "--kind is 'x'; give ucie, inter_sip, pcie or all" + next + "-n is 1; give 10 to 1000000"},
      {"probe --bytes x --data x", "--data is 'x'\n  hint: give 'on' or 'off'" + next + "--bytes" + size},
      {"va_offset_verify --bytes 1 --placement row",
       "--bytes is 1; give an element or more" + next + "--placement" + row},
      {"stream --block 3 --scope x --arrivals y",
       "--bytes 256K and --block 3: give a block of whole 4 B elements that divides the bytes" + next +
           "--scope is 'x'\n  hint: give pc or ch" + next +
           "--arrivals is 'y'\n  hint: give saturate, closed, fixed or poisson"},
      {"noc_traffic --switch x --cols 0 --flits 0 --load 0.1 0.2",
       "--switch is 'x'\n  hint: give 'interleave' or 'hold'" + next +
           "a mesh of 0 x 8 routers\n  hint: give 1 to 4096 in all" + next +
           "packets of 0 flits\n  hint: give 1 to 64"},
      {"chakra -w 2 --op x --compute x --workload-configuration none",
       "-w is 2; give 0 or 1" + next + "--op is 'x'; valid values: sum, max, min" + next +
           "--compute is 'x'; valid values: auto, roofline, recorded"}};
  for (const auto& [arguments, error] : cases) {
    const Outcome outcome = tool.shell(quoted(KERNBENCH_BINARY) + " run " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.err, "kernbench: error: " + error + "\n") << arguments;
  }
}

TEST(CommandLine, OnePassFindsAllUnknownOptionsAndValuesOfAnotherType) {
  const Tool tool;
  const std::string next = "\nkernbench: error: ";
  expect_refused(tool({"run", "all_reduce", "--topolgy", "default", "--jsn=x", "--seed", "-1", "-w", "x"}),
                 "unknown option '--topolgy'\n  hint: did you mean '--topology'?" + next +
                     "unknown option '--jsn'\n  hint: did you mean '--json'?" + next +
                     "--seed is '-1'\n  hint: give an integer of at least 0" + next +
                     "--warmup is 'x'\n  hint: give an integer of at least 0");
}

TEST(CommandLine, AnEndBelowWhereSizesBeginSaysWhereThatIs) {
  const Tool tool;
  expect_refused(tool({"run", "all_reduce", "-e", "64K"}),
                 "-e 64K is below 1M, where sizes begin without -b; give -b as well");
  expect_refused(tool({"run", "all_reduce", "-b", "1M", "-e", "64K"}), "-e 64K is below -b 1M");
}

TEST(CommandLine, ReportsFilesThatCannotBeWrittenBeforeItRuns) {
  const Tool tool;
  for (const std::string option : {"--json", "--vcd", "--oplog"}) {
    const Outcome outcome = tool({"run", "all_reduce", "-b", "1K", "-e", "1K", option, "missing/file"});
    EXPECT_EQ(outcome.code, 7);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "kernbench: error: cannot write 'missing/file': No such file or directory\n");
  }
}

TEST(CommandLine, StandardOutputThatIsFullIsTheEnvironmentsFault) {
  const Tool tool;
  for (const std::string arguments :
       {"--help", "--version", "run --help", "list", "topology check minimal", "topology export minimal",
        "topology show default", "validate links", "topology show minimal --view system",
        "topology show default --stage 6", "run all_reduce -b 1K -e 1K", "run all_reduce -b 1K -e 1K --json -"}) {
    const Outcome full = tool.shell(quoted(KERNBENCH_BINARY) + " " + arguments + " > /dev/full");
    EXPECT_EQ(full.code, 7) << arguments;
    EXPECT_EQ(full.err, "kernbench: error: cannot write to standard output\n") << arguments;
  }
}

TEST(CommandLine, OutputsThatFailWhileTheyAreWritten) {
  const Tool tool;
  for (const std::string option : {"--json", "--vcd", "--oplog"}) {
    const Outcome outcome = tool({"run", "all_reduce", "-b", "64K", "-e", "64K", option, "/dev/full"});
    EXPECT_EQ(outcome.code, 7) << option;
    EXPECT_EQ(outcome.err, "kernbench: error: cannot write '/dev/full': No space left on device\n");
  }
  // More than stdio's buffer, so that the write fails while the machine runs.
  const Outcome log = tool({"run", "all_reduce", "-b", "1K", "-e", "1K", "--oplog", "ops", "--vcd", "run.vcd"});
  ASSERT_EQ(log.code, 0);
  EXPECT_GT(std::filesystem::file_size(tool.file("ops")), std::uintmax_t{65536});
  const Outcome limited = tool.shell("rm -rf ops run.*; ulimit -f 16; " + quoted(KERNBENCH_BINARY) +
                                     " run all_reduce -b 1K -e 1K --json result.json --oplog ops");
  EXPECT_EQ(limited.code, 7);
  EXPECT_EQ(limited.out, "");
  EXPECT_EQ(limited.err, "kernbench: error: cannot write 'ops': File too large\n");
  for (const auto& entry : std::filesystem::directory_iterator(tool.folder().path()))
    EXPECT_EQ(entry.path().filename().string().front(), '.') << entry.path();
}

TEST(CommandLine, EveryExampleOfTheHelpWorksWhenPasted) {
  const Tool tool;
  int count = 0;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{{"--help"},
                                                                                         {"run", "--help"},
                                                                                         {"topology", "--help"},
                                                                                         {"list", "--help"},
                                                                                         {"tune", "--help"},
                                                                                         {"diff", "--help"},
                                                                                         {"what-if", "--help"},
                                                                                         {"pipeline", "--help"}}) {
    std::istringstream help(tool(arguments).out);
    bool examples = false;
    const std::string start = "  kernbench ";
    for (std::string line; std::getline(help, line);) {
      examples = examples || line.rfind("Example", 0) == 0;
      if (!examples || line.rfind(start, 0) != 0) continue;
      const Outcome outcome = tool.shell(quoted(KERNBENCH_BINARY) + " " + line.substr(start.size()));
      EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
      ++count;
    }
  }
  EXPECT_GE(count, 6);
}

TEST(CommandLine, NegativeNumbersAreNotWrappedAround) {
  const Tool tool;
  expect_refused(tool({"run", "all_reduce", "--seed", "-1"}), "--seed is '-1'\n  hint: give an integer of at least 0");
  expect_refused(tool({"run", "all_reduce", "--recorder-window", "-1"}),
                 "--recorder-window is '-1'\n  hint: give an integer of at least 1");
  expect_refused(tool({"run", "all_reduce", "-f", "-2"}),
                 "--stepfactor is '-2'\n  hint: give an integer of at least 2");
}

TEST(CommandLine, NumbersOfAnotherKindAreToldWhatIsAllowed) {
  const Tool tool;
  expect_refused(tool({"run", "all_reduce", "-f", "0.5"}),
                 "--stepfactor is '0.5'\n  hint: give an integer of at least 2");
  expect_refused(tool({"run", "all_reduce", "-w", ""}), "--warmup is ''\n  hint: give an integer of at least 0");
  expect_refused(tool({"run", "all_reduce", "-n", "2147483648"}),
                 "--iters is '2147483648'\n  hint: give at most 2147483647");
  expect_refused(tool({"run", "all_reduce", "--seed", "18446744073709551616"}),
                 "--seed is '18446744073709551616'\n  hint: give at most 18446744073709551615");
}

TEST(CommandLine, RefusesOnePathForTwoOutputs) {
  const Tool tool;
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "all_reduce", "-b", "1K", "-e", "1K"});
    return tool(more);
  };
  const std::string hint = "\n  hint: give each a file of its own";
  expect_refused(run({"--json", "x", "--oplog", "./x"}), "--json and --oplog are both './x'" + hint);
  expect_refused(run({"--json", "x", "--vcd", "x"}), "--json and --vcd are both 'x'" + hint);
  expect_refused(run({"--vcd", "x", "--oplog", "x"}), "--vcd and --oplog are both 'x'" + hint);
  expect_refused(run({"--vcd", "x.vcd", "--json", "x.gtkw"}),
                 "--json and the save file of --vcd are both 'x.gtkw'" + hint);
  for (const std::string option : {"--vcd", "--oplog"}) {
    expect_refused(run({option, "-"}), option + " is '-'\n  hint: give a file; only --json goes to standard output");
  }
  EXPECT_EQ(run({"--json", "/dev/null", "--oplog", "/dev/null"}).code, 0);
}

/// Of the machine, every file: the topology, what it extends, and the layout that it pins.
TEST(CommandLine, RefusesAnOutputThatIsAnInput) {
  const Tool tool;
  ASSERT_EQ(tool({"topology", "export", "minimal", "--what", "cube-mesh", "-o", "cube_mesh.yaml"}).code, 0);
  ASSERT_EQ(tool({"topology", "export", "minimal", "--what", "cube-mesh", "-o", "other.yaml"}).code, 0);
  std::ofstream(tool.file("base.yaml")) << "extends: minimal\n";
  std::ofstream(tool.file("beside.yaml")) << "extends: base.yaml\n";
  std::ofstream(tool.file("named.yaml")) << "extends: base.yaml\ncube_mesh: other.yaml\n";
  const auto refused = [&](const std::string& topology, const std::string& option, const std::string& file) {
    const std::string before = read(tool.file(file));
    expect_refused(tool({"run", "probe", "--topology", topology, option, file}),
                   "an input and " + option + " are both '" + file + "'\n  hint: give each a file of its own");
    EXPECT_EQ(read(tool.file(file)), before);
  };
  refused("beside.yaml", "--json", "cube_mesh.yaml");
  refused("named.yaml", "--stats", "other.yaml");
  refused("named.yaml", "--report", "base.yaml");
  refused("named.yaml", "--json", "named.yaml");
  EXPECT_EQ(tool({"run", "probe", "--topology", "named.yaml", "--json", "cube_mesh.yaml"}).code, 0);  // not read
}

/// But for a pinned layout, which the one by rule replaces.
TEST(CommandLine, TopologyWritesOverNoFileOfItsMachine) {
  const Tool tool;
  std::ofstream(tool.file("base.yaml")) << "extends: minimal\n";
  std::ofstream(tool.file("m.yaml")) << "extends: base.yaml\n";
  ASSERT_EQ(tool({"topology", "export", "m.yaml", "--what", "cube-mesh", "-o", "cube_mesh.yaml"}).code, 0);
  const auto refused = [&](std::vector<std::string> words, const std::string& file) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const std::string before = read(tool.file(file));
    words.insert(words.end(), {"--output", file});
    expect_refused(tool(words), "an input and --output are both '" + file + "'\n  hint: give each a file of its own");
    EXPECT_EQ(read(tool.file(file)), before);
  };
  refused({"topology", "show", "m.yaml", "--stage", "1"}, "m.yaml");
  refused({"topology", "show", "m.yaml", "--stage", "3"}, "base.yaml");
  refused({"topology", "show", "m.yaml", "--view", "cube"}, "cube_mesh.yaml");
  refused({"topology", "check", "m.yaml"}, "m.yaml");
  refused({"topology", "export", "m.yaml"}, "./m.yaml");
  refused({"topology", "export", "m.yaml", "--what", "cube-mesh"}, "m.yaml");
  refused({"topology", "export", "m.yaml", "--what", "schema"}, "m.yaml");
}

TEST(CommandLine, RefusesCombinationsWithoutMeaning) {
  const Tool tool;
  expect_refused(tool({"topology", "check", "default", "--stage", "3"}),
                 "--stage together with 'check'\n  hint: it belongs to 'kernbench topology show'");
  expect_refused(tool({"topology", "show", "--what", "schema"}),
                 "--what together with 'show'\n  hint: it belongs to 'kernbench topology export'");
  expect_refused(tool({"topology", "show", "--stage", "3", "--view", "cube"}),
                 "--stage together with --view\n  hint: give one of them");
  expect_refused(tool({"topology", "show", "--stage", "3", "--format", "svg"}),
                 "--format without --view\n  hint: give --view system, sip, cube or pe as well");
  const std::string hint = "\n  hint: give a file or a preset; 'kernbench list' names the presets";
  expect_refused(tool({"topology", "check", ""}), "the argument FILE|PRESET is ''" + hint);
  expect_refused(tool({"run", "p2p", "--topology", ""}), "--topology is ''" + hint);
}

TEST(CommandLine, OneOfAThingIsNotSeveral) {
  const Tool tool;
  EXPECT_THAT(tool({"topology", "check", "minimal", "--set", "system.sips.count=1", "--set", "sip.cube_mesh.w=1",
                    "--set", "sip.cube_mesh.h=1"})
                  .out,
              HasSubstr(": ok: 1 SIP (ring_1d), 1 cube (1 x 1) per SIP, "));
}

TEST(CommandLine, ListsWhatThereIs) {
  const Tool tool;
  const Outcome all = tool({"list"});
  EXPECT_EQ(all.code, 0);
  for (const char* word : {"all_reduce", "gemm_single_pe", "gemm", "p2p", "stream", "probe", "minimal", "default",
                           "ring8", "torus4x4", "mesh4x4", "fc8", "kernbench-py", "bf16"}) {
    EXPECT_THAT(all.out, HasSubstr(word));
  }
}

TEST(CommandLine, HelpOfGemmNamesEveryTypeThatItTakes) {
  const Outcome help = Tool()({"run", "gemm", "--help"});
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_TRUE(!is_float(dtype) || help.out.find(to_string(dtype)) != std::string::npos) << to_string(dtype);
  }
}

TEST(CommandLine, ListsTheWorkloadsOfPlugIns) {
  const Tool tool;
  EXPECT_THAT(tool({"list", "--workloads"}).out, ::testing::Not(HasSubstr("  runaway ")));
  const Outcome with = tool({"list", "--workloads", "--plugin", KERNBENCH_RUNAWAY_WORKLOAD});
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_THAT(with.out, HasSubstr("\n  runaway "));
  EXPECT_EQ(tool({"list", "--plugin", "./none.so"}).code, 2);
}

TEST(CommandLine, LimitsAreThoseOfTheArchitecturePage) {
  const Tool tool;
  const std::string page = read(KERNBENCH_SOURCE_DIR "/docs/architecture.md");
  const std::string begin = "<!-- limits -->\n", end = "<!-- /limits -->";
  const auto from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  std::string limits = page.substr(from + begin.size(), to - from - begin.size());
  for (std::size_t stars; (stars = limits.find("**")) != std::string::npos;) limits.erase(stars, 2);
  EXPECT_EQ(limits, tool({"list", "--limits"}).out);
}

TEST(CommandLine, AReportGoesToStandardOutputAsOtherDocumentsDo) {
  const Tool tool;
  ASSERT_EQ(tool({"run", "probe", "--topology", "minimal", "--json", "r.json"}).code, 0);
  const Outcome outcome = tool({"report", "r.json", "-o", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("<!DOCTYPE html>", 0), 0U) << outcome.out.substr(0, 40);
  EXPECT_EQ(outcome.err, "");
  EXPECT_FALSE(std::filesystem::exists(tool.file("-")));
}

TEST(CommandLine, TopologyIsShownWhereTheFirstPeIsMissing) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << "extends: ring8\noverrides: [{match: sip0.cube0.pe0, missing: true}]\n";
  const Outcome outcome = tool({"topology", "show", "m.yaml", "-o", "m.svg"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(tool.file("m.svg")));
}

}  // namespace
}  // namespace kernbench
