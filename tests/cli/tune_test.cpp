#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/two_sips.h"

/// Measured times for `auto` (kernbench tune).
namespace kernbench {
namespace {
using nlohmann::ordered_json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> tune(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"tune"};
  arguments.insert(arguments.end(), kTwo.begin(), kTwo.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Tune, WritesWhatAutoThenChoosesBy) {
  const Tool tool;
  const Outcome outcome =
      tool(tune({"--ops", "all_reduce", "-b", "1K", "-e", "4K", "--fidelity", "accurate", "-o", "tuned.yaml"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("\n# all_reduce, scope sip, ring_1d_2_cubes_1x1_pes_1_"));
  const std::vector<std::string> tuned{"-b", "1K", "--explain", "--json", "-", "--ccl", "tuned.yaml"};
  const ordered_json json = parsed(tool(all_reduce(tuned)));
  const ordered_json& candidates = json.at("results").at(0).at("explain").at("candidates");
  EXPECT_EQ(candidates.at(0).at("measured"), true);
  // The table is part of what the run is made of: its text and the hash.
  EXPECT_EQ(json.at("ccl"), read(tool.file("tuned.yaml")));
  const ordered_json plain = parsed(tool(all_reduce({"-b", "1K", "--json", "-"})));
  EXPECT_NE(json.at("config_hash"), plain.at("config_hash"));
}

TEST(Tune, TimesAreThoseOfTheRuns) {
  const Tool tool;
  EXPECT_EQ(tool(tune({"-q", "--ops", "all_gather", "-b", "4K", "-e", "4K", "-o", "tuned.yaml"})).code, 0);
  const ordered_json tuned = parsed(tool({"run", "all_gather", "--topology", "minimal", "--set", "system.sips.count=2",
                                          "-b", "4K", "--ccl", "tuned.yaml", "--explain", "--json", "-"})),
                     alone = parsed(
                         tool({"run",     "all_gather", "--topology", "minimal", "--set",       "system.sips.count=2",
                               "-b",      "4K",         "-n",         "4",       "--algorithm", "ring",
                               "--dtype", "f32",        "--fidelity", "fast",    "--data",      "off",
                               "--json",  "-"}));
  for (const auto& candidate : tuned.at("results").at(0).at("explain").at("candidates")) {
    if (candidate.at("algorithm") != "ring") continue;
    EXPECT_NEAR(candidate.at("expected_ns").get<double>(), alone.at("results").at(0).at("time_ns").get<double>(), 1);
    return;
  }
  FAIL() << "ring is no candidate";
}

TEST(Tune, KeepsWhatTheFileSaidAndReplacesOldTimes) {
  const Tool tool;
  const std::string own = "# mine\ndefaults: { algorithm: a }\nalgorithms:\n  a: { module: kernbench.ccl.ring }\n";
  write(tool.file("ccl.yaml"), own);
  const std::vector<std::string> first =
      tune({"-q", "--ops", "all_reduce", "-b", "1K", "-e", "1K", "--ccl", "ccl.yaml"});
  const Outcome once = tool(first);
  EXPECT_EQ(once.code, 0) << once.err;
  EXPECT_THAT(once.out, StartsWith(own + "tuned:"));
  write(tool.file("ccl.yaml"), once.out);
  EXPECT_EQ(tool(first).out, once.out);
}

TEST(Tune, WritesWhatCanBeReadWhateverTheStyleOfTheFile) {
  const Tool tool;
  const std::string old = "- machine: m\n  op: all_reduce\n  scope: sip\n  bytes: [8]\n  time_ns: {a: [1]}\n";
  const std::string algorithms = "algorithms:\n  a: { module: kernbench.ccl.ring }\n";
  const std::vector<std::string> call =
      tune({"-q", "--ops", "all_reduce", "-b", "1K", "-e", "1K", "--ccl", "ccl.yaml", "-o", "ccl.yaml"});
  for (const std::string& text : {algorithms + "tuned:\n" + old, "tuned:\n" + old + "# mine\n" + algorithms,
                                  "'tuned':\n" + old + algorithms, "---\n" + algorithms + "tuned: []\n"}) {
    SCOPED_TRACE(text);
    write(tool.file("ccl.yaml"), text);
    const Outcome outcome = tool(call);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string tuned = read(tool.file("ccl.yaml"));
    EXPECT_EQ(tuned.find("# mine") == std::string::npos, text.find("# mine") == std::string::npos);
    const Outcome run = tool(all_reduce({"-b", "1K", "--ccl", "ccl.yaml", "--algorithm", "auto", "--explain"}));
    EXPECT_EQ(run.code, 0) << run.err << tuned;
    EXPECT_THAT(run.out, HasSubstr("tuned to take"));
  }
}

TEST(Tune, LeavesAFileAsItWasWhereTimesCannotBeWritten) {
  const Tool tool;
  for (const std::string& text : {std::string("{ algorithms: { a: { module: kernbench.ccl.ring } } }\n"),
                                  std::string("algorithms:\n  a: { module: kernbench.ccl.ring }\n...\n")}) {
    SCOPED_TRACE(text);
    write(tool.file("ccl.yaml"), text);
    const Outcome outcome = tool(tune({"--ops", "all_reduce", "-b", "1K", "--ccl", "ccl.yaml", "-o", "ccl.yaml"}));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("ccl.yaml:1:1: error: times cannot be written into this file\n  hint: begin "));
    EXPECT_EQ(outcome.err.find("(us)"), std::string::npos) << "nothing has run";
    EXPECT_EQ(read(tool.file("ccl.yaml")), text);
  }
}

TEST(Tune, ModulesAreFoundFromTheFolderOfTheNewFile) {
  const Tool tool;
  std::filesystem::copy_file(KERNBENCH_BROKEN_ALGORITHM, tool.file("mine.so"));
  std::filesystem::create_directory(tool.file("other"));
  write(tool.file("ccl.yaml"), "algorithms:\n  a: { module: './mine.so' } # mine\n  b: { module: mine.so, mode: 0 }\n");
  const Outcome outcome =
      tool(tune({"-q", "--ops", "all_reduce", "-b", "1K", "-e", "1K", "--ccl", "ccl.yaml", "-o", "other/tuned.yaml"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(read(tool.file("other/tuned.yaml")), HasSubstr(tool.file("mine.so") + "' } # mine\n"));
  for (const char* name : {"a", "b"}) {
    const Outcome run =
        tool(all_reduce({"-b", "1K", "--check", "0", "--ccl", "other/tuned.yaml", "--algorithm", name}));
    EXPECT_EQ(run.code, 0) << run.err;
  }
}

/// Two PEs of one SIP take less than all SIPs, which says nothing of them.
TEST(Tune, LeavesOutEntriesWhoseRanksArePes) {
  const Tool tool;
  const std::string of_pes = "algorithms:\n  a: { module: kernbench.ccl.ring, world_size: 2 }\n";
  write(tool.file("ccl.yaml"), of_pes + "  b: { module: kernbench.ccl.ring }\n");
  const std::vector<std::string> call =
      tune({"--ops", "all_reduce", "-b", "1K", "-e", "1K", "--ccl", "ccl.yaml", "--set", "cube.pes=2"});
  const Outcome outcome = tool(call);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("# a: not measured: its ranks are PEs (world_size)\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("time_ns:\n      b: "));
  write(tool.file("ccl.yaml"), of_pes);
  EXPECT_EQ(tool(call).code, 2);
}

/// The second operation takes minutes; the first is kept, with a text that says which are not.
TEST(Tune, KeepsTheOperationsThatItHasMeasuredWhenInterrupted) {
  const Tool tool;
  write(tool.file("ccl.yaml"),
        "algorithms:\n  a: { module: '" KERNBENCH_BROKEN_ALGORITHM "' }\n  b: { module: '" KERNBENCH_SOURCE_DIR
        "/docs/examples/schedules/doubling4_all_gather.xml' }\n");
  const auto interrupted = [&](const std::string& jobs, const std::string& ops, const std::string& sign) {
    return tool.shell("set -m; " + quoted(KERNBENCH_BINARY) +
                      " tune --topology minimal --set system.sips.count=4 -b 512M -e 512M -n 100 --ccl ccl.yaml -o "
                      "tuned.yaml --jobs " +
                      jobs + " --ops " + ops + " 2> err & while ! grep -q " + quoted(sign) +
                      " err; do sleep 0.1; done; sleep 1; kill -INT $!; wait $!; code=$?; cat err >&2; exit $code");
  };
  const Outcome none = interrupted("1", "all_gather,all_reduce", "# all_gather a: not measured");
  EXPECT_EQ(none.code, 130);
  EXPECT_THAT(none.err, HasSubstr("kernbench: error: interrupted: no operation was measured with all algorithms\n"));
  EXPECT_FALSE(std::filesystem::exists(tool.file("tuned.yaml")));
  const Outcome one = interrupted("2", "all_gather,all_reduce", "# all_reduce b: not measured");
  EXPECT_EQ(one.code, 130);
  EXPECT_THAT(one.err, HasSubstr("kernbench: error: interrupted: what is written has no new times of all_gather\n"));
  EXPECT_THAT(read(tool.file("tuned.yaml")), HasSubstr("op: all_reduce"));
  EXPECT_EQ(read(tool.file("tuned.yaml")).find("op: all_gather"), std::string::npos);
}

TEST(Tune, WritesTheOperationsThatCanBeMeasuredAndRefusesTheOthers) {
  const Tool tool;
  write(tool.file("ccl.yaml"), "algorithms:\n  a: { module: kernbench.ccl.lrab_hierarchical_allreduce }\n");
  const Outcome outcome = tool(
      tune({"-q", "--ops", "all_gather,all_reduce", "-b", "1K", "-e", "1K", "--ccl", "ccl.yaml", "-o", "tuned.yaml"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "kernbench: error: no algorithm could be measured for all_gather\n"
            "  hint: run it without -q to see why; ranks that are PEs (world_size) are not measured\n");
  EXPECT_THAT(read(tool.file("tuned.yaml")), HasSubstr("op: all_reduce"));
}

TEST(Tune, RefusesWhatItCannotMeasure) {
  const Tool tool;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& text) {
    const Outcome outcome = tool(tune(more));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("kernbench: error: " + text));
    EXPECT_EQ(outcome.out, "");
  };
  refused({"--ops", "all_reduc"}, "--ops is 'all_reduc'; did you mean 'all_reduce'?");
  refused({"--ops", "gather,all_reduce,gather"},
          "--ops is 'gather,all_reduce,gather'\n  hint: give each operation once");
  refused({"--scope", "sips"}, "--scope is 'sips'; did you mean 'sip'?");
  refused({"--iters", "0", "--jobs", "0", "-q", "--fidelity", "slow", "-b", "x"},
          "-b is 'x'; give bytes, such as 512, 4K, 1M or 2G (powers of 1024)\n"
          "kernbench: error: --fidelity is 'slow', entry 1: unknown grade 'slow'\n  hint: grades: accurate, fast\n"
          "kernbench: error: --iters is '0'\n  hint: give an integer of at least 1\n"
          "kernbench: error: --jobs is '0'\n  hint: give an integer of at least 1\n");
  refused({"--jobs", "-1"}, "--jobs is '-1'\n  hint: give an integer of at least 1");
  refused({"--ops", "all_reduce", "-b", "1"}, "no algorithm could be measured for all_reduce");
  const Outcome outcome = tool(tune({"-o", "missing/tuned.yaml"}));
  EXPECT_EQ(outcome.code, 7);
}

/// But for ccl.yaml, whose times it replaces.
TEST(Tune, WritesOverNoFileOfTheMachineAndNoModule) {
  const Tool tool;
  const std::string machine = "extends: minimal\nsystem: {sips: {count: 2}}\n";
  write(tool.file("m.yaml"), machine);
  write(tool.file("ccl.yaml"), "algorithms:\n  a: { module: a.xml }\n");
  write(tool.file("a.xml"), "<algo/>\n");
  for (const std::string file : {"m.yaml", "a.xml"}) {
    const std::string before = read(tool.file(file));
    const Outcome outcome = tool({"tune", "--topology", "m.yaml", "--ccl", "ccl.yaml", "-o", file});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err,
              "kernbench: error: an input and --output are both '" + file + "'\n  hint: give each a file of its own\n");
    EXPECT_EQ(read(tool.file(file)), before);
  }
}

/// It ends the command: a table without an algorithm's times would keep `auto` from ever taking it.
TEST(Tune, AShortageOfThisComputerSaysNothingOfAnAlgorithm) {
  const Tool tool;
  write(tool.file("ccl.yaml"), "algorithms:\n  broken: { module: '" KERNBENCH_BROKEN_ALGORITHM "', mode: 0 }\n");
  std::vector<std::string> arguments = tune({"--ops", "all_reduce", "-b", "1K", "-e", "1K"});
  arguments.insert(arguments.end(), {"--ccl", "ccl.yaml", "-o", "tuned.yaml"});
  EXPECT_EQ(tool(arguments).code, 0) << "nothing else is wrong with it";
  std::filesystem::remove(tool.file("tuned.yaml"));
  setenv("KERNBENCH_NO_MEMORY", "1", 1);
  const Outcome outcome = tool(arguments);
  unsetenv("KERNBENCH_NO_MEMORY");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("this computer has not enough memory"));
  EXPECT_FALSE(std::filesystem::exists(tool.file("tuned.yaml")));
}

}  // namespace
}  // namespace kernbench
