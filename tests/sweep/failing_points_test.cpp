#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/tool_runner.h"
#include "tests/sweep/store_content.h"
#include "tests/sweep/sweep_texts.h"

namespace kernbench::sweep {
namespace {

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

nlohmann::json exported(const Tool& tool, const std::string& store) {
  const Outcome outcome = tool({"sweep", "--export", store, "--json", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

TEST(Sweep, AFailingPointIsRecordedAndStopsNoOther) {
  const Tool tool;
  std::filesystem::create_symlink(KERNBENCH_MISBEHAVING, tool.file("own.so"));  // long paths are shortened
  write(tool.file("s.yaml"),
        "workload: misbehaving\nplugins: [own.so]\ntopology: minimal\nlimits: {time: 8 s, memory: 400 MiB}\n"
        "axes:\n  how: [ok, wrong, throw, crash, exit, hang, eat]\n");
  const Outcome outcome = tool({"sweep", "s.yaml"});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_NE(outcome.out.find("7 points, 1 ok, 6 failed, 0 lost"), std::string::npos) << outcome.out;
  const nlohmann::json all = exported(tool, "s.sqlite");
  struct Expected {
    const char* status;
    int code;
    const char* error;
  };
  const Expected expected[] = {{"ok", 0, nullptr},
                               {"failed", 1, "the workload's own check failed"},
                               {"failed", 8, "plug-in 'own.so': run() threw: thrown by the workload"},
                               {"failed", 134, "ended by signal 6 (Aborted)"},
                               {"failed", 9, "the last words"},
                               {"failed", 4, "the point's time limit of 8 s was reached"},
                               {"failed", 7, "the point's memory limit of 400 MiB was reached"}};
  ASSERT_EQ(all["points"].size(), 7U);
  for (std::size_t i = 0; i < 7; ++i) {
    const nlohmann::json& point = all["points"][i];
    EXPECT_EQ(point["status"], expected[i].status) << i;
    EXPECT_EQ(point["exit_code"], expected[i].code) << i;
    EXPECT_EQ(point["error"], expected[i].error == nullptr ? nlohmann::json() : nlohmann::json(expected[i].error)) << i;
  }
  // The command reproduces the end.
  const std::string command = all["points"][2]["command"];
  const Outcome again = tool.shell(std::string("'") + KERNBENCH_BINARY + "'" + command.substr(command.find(' ')));
  EXPECT_EQ(again.code, 8);
  EXPECT_EQ(again.err, "kernbench: error: plug-in 'own.so': run() threw: thrown by the workload\n");
}

/// How a point of a sweep ended, and how its command ends.
struct Ended {
  int code = 0, code_again = 0;
  std::string status, error, error_again;
};
Ended ended(const Tool& tool, const nlohmann::json& point) {
  const std::string command = point["command"];
  const Outcome again = tool.shell(std::string("'") + KERNBENCH_BINARY + "'" + command.substr(command.find(' ')));
  return {point["exit_code"], again.code, point["status"], point["error"].is_null() ? "" : point["error"], again.err};
}

TEST(Sweep, ADeadlockIsRecordedWithItsReportAndTheOtherPointsGoOn) {
  const Tool tool;
  const struct {
    const char* name;
    int mode, code;  // mode of tests/cli/broken_algorithm.cpp; exit code on two ranks
  } cases[] = {{"deadlock", 1, 3}, {"fault", 2, 8}, {"missing_send", 3, 3}, {"wrong", 0, 1}};
  std::string files;
  for (const auto& one : cases) {
    const std::string file = std::string(one.name) + ".yaml";
    write(tool.file(file), std::string("algorithms: {broken: {module: '") + KERNBENCH_BROKEN_ALGORITHM +
                               "', mode: " + std::to_string(one.mode) + "}}\n");
    files += (files.empty() ? "" : ", ") + file;
  }
  write(tool.file("s.yaml"),
        "workload: all_reduce\ntopology: minimal\noptions: {algorithm: broken, minbytes: 1K, fidelity: fast}\n"
        "axes:\n  ccl: [" +
            files + "]\n  system.sips.count: [2, 1]\n");
  const Outcome outcome = tool({"sweep", "s.yaml", "--jobs", "1"});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_NE(outcome.out.find("8 points, 1 ok, 7 failed, 0 lost"), std::string::npos) << outcome.out;
  const nlohmann::json all = exported(tool, "s.sqlite");
  ASSERT_EQ(all["points"].size(), 8U);
  for (std::size_t i = 0; i < 4; ++i) {
    const Ended point = ended(tool, all["points"][2 * i]);
    EXPECT_EQ(point.status, "failed") << cases[i].name;
    EXPECT_EQ(point.code, cases[i].code) << cases[i].name;
    EXPECT_EQ(point.code_again, cases[i].code) << cases[i].name;
    if (cases[i].code == 1) continue;  // a run prints a table instead
    EXPECT_NE(point.error_again.find(point.error), std::string::npos) << point.error;
  }
  const std::string deadlock = all["points"][0]["error"];
  EXPECT_NE(deadlock.find("wait cycle of 2 PEs:\n  sip0.cube0.pe0 waits for data"), std::string::npos) << deadlock;
  EXPECT_EQ(all["points"][7]["status"], "ok") << "one rank alone is right whatever it does, and ran after all others";
}

TEST(Sweep, HostCodeThatNeverEndsIsALimitThatOnlyItsPointReaches) {
  const Tool tool;
  write(tool.file("s.yaml"), std::string("workload: runaway\nplugins: ['") + KERNBENCH_RUNAWAY_WORKLOAD +
                                 "']\ntopology: minimal\nlimits: {time: 2 s}\naxes:\n  mode: [loop, none, barrier]\n");
  EXPECT_EQ(tool({"sweep", "s.yaml"}).code, 6);
  const nlohmann::json all = exported(tool, "s.sqlite");
  ASSERT_EQ(all["points"].size(), 3U);
  EXPECT_EQ(all["points"][1]["status"], "ok");
  for (const std::size_t hung : {0, 2}) {
    EXPECT_EQ(all["points"][hung]["status"], "failed");
    EXPECT_EQ(all["points"][hung]["exit_code"], 4);
  }
  EXPECT_EQ(all["points"][0]["error"], "the point's time limit of 2 s was reached");
}

TEST(Sweep, APointBeyondItsSimulatedTimeFailsWithTheLimitsCode) {
  const Tool tool;
  write(tool.file("s.yaml"),
        "workload: gemm_single_pe\ntopology: minimal\noptions: {fidelity: fast}\nlimits: {sim_time: 10 us}\n"
        "axes: {m: [16, 1024]}\n");
  EXPECT_EQ(tool({"sweep", "s.yaml"}).code, 6);
  const nlohmann::json all = exported(tool, "s.sqlite");
  EXPECT_EQ(all["points"][0]["status"], "ok");
  const Ended point = ended(tool, all["points"][1]);
  EXPECT_EQ(point.code, 4);
  EXPECT_EQ(point.code_again, 4);
}

TEST(Sweep, APointThatCannotStartDoesNotCountAsRun) {
  const Tool tool;
  write(tool.file("s.yaml"), "workload: gemm_single_pe\ntopology: minimal\naxes: {m: [16, 0]}\n");
  const Outcome outcome = tool({"sweep", "s.yaml"});
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_NE(outcome.out.find("1 ok, 1 failed, 0 lost, 0 refused; 1 ran now, 0 were in the store"), std::string::npos)
      << outcome.out;
}

TEST(Sweep, APointThatIsEndedFromOutsideRunsAgain) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(3, 0, "killed_once"));
  const Outcome outcome = tool({"sweep", "s.yaml"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count_of(tool.file("s.sqlite"), "SELECT count(*) FROM points WHERE status = 'ok' AND attempt = 2"), 3);
}

TEST(Sweep, APointThatIsAlwaysEndedFromOutsideIsLostAndRunsAgainNextTime) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(1, 0, "killed"));
  EXPECT_EQ(tool({"sweep", "s.yaml"}).code, 7);
  EXPECT_EQ(count_of(tool.file("s.sqlite"), "SELECT count(*) FROM points WHERE status = 'lost' AND attempt = 3"), 1);
  const Outcome again = tool({"sweep", "s.yaml"});
  EXPECT_NE(again.out.find("1 ran now"), std::string::npos) << again.out;
}

/// Its rank throws std::bad_alloc.
TEST(Sweep, APointThatThisComputerHasNoMemoryForStaysOpen) {
  const Tool tool;
  write(tool.file("s.yaml"), std::string("workload: runaway\nplugins: ['") + KERNBENCH_RUNAWAY_WORKLOAD +
                                 "']\ntopology: minimal\naxes:\n  mode: [none, memory]\n");
  const Outcome outcome = tool({"sweep", "s.yaml"});
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_EQ(count_of(tool.file("s.sqlite"), "SELECT count(*) FROM points WHERE status = 'lost' AND exit_code = 7"), 1);
  const Outcome again = tool({"sweep", "s.yaml"});
  EXPECT_NE(again.out.find("1 ran now"), std::string::npos) << again.out;
}

TEST(Sweep, LostPointsEndWithSevenUnlessAPointFails) {
  const Tool tool;
  const auto code = [&](const std::string& ways) {
    write(tool.file("s.yaml"), std::string("workload: misbehaving\nplugins: ['") + KERNBENCH_MISBEHAVING +
                                   "']\ntopology: minimal\naxes:\n  how: [" + ways + "]\n");
    return tool({"sweep", "s.yaml", "--store", ways.front() == 'o' ? "o.sqlite" : "t.sqlite"}).code;
  };
  EXPECT_EQ(code("ok, killed"), 7);
  EXPECT_EQ(code("throw, ok, killed"), 6);
}

TEST(Search, LostPointsEndWithSevenUnlessAPointFails) {
  const Tool tool;
  const auto code = [&](const std::string& how) {
    write(tool.file("s.yaml"), plain_sweep(8, 0, how) + "  - {name: points, goal: minimize, value: n}\n");
    return tool({"search", "s.yaml", "--store", how + ".sqlite", "--quiet", "--points", "2"}).code;
  };
  EXPECT_EQ(code("killed"), 7);
  EXPECT_EQ(code("throw"), 6);
}

TEST(Sweep, TwoThatAreStartedAtOnceOnOneStoreBothEndWell) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(20, 3));
  const std::string sweep = quoted(KERNBENCH_BINARY) + " sweep s.yaml --quiet --no-progress >/dev/null";
  const Outcome both = tool.shell(sweep + " & first=$!; " + sweep + "; second=$?; wait $first && exit $second");
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(count_of(tool.file("s.sqlite"), "SELECT count(*) FROM points WHERE status = 'ok'"), 20);
}

TEST(Sweep, AStoreWithBrokenJsonEndsEveryReaderWithSevenAndThePoint) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(2));
  ASSERT_EQ(tool({"sweep", "s.yaml"}).code, 0);
  SQLite::Database(tool.file("s.sqlite"), SQLite::OPEN_READWRITE)
      .exec("UPDATE points SET result = '{broken' WHERE key = (SELECT min(key) FROM points)");
  const std::vector<std::vector<std::string>> readers{
      {"sweep", "s.yaml"}, {"sweep", "--export", "s.sqlite", "--json", "-"}, {"report", "s.sqlite"}};
  for (const auto& reader : readers) {
    const Outcome outcome = tool(reader);
    EXPECT_EQ(outcome.code, 7) << reader.front() << outcome.err;
    EXPECT_NE(outcome.err.find("is no JSON (byte 2)"), std::string::npos) << reader.front() << outcome.err;
  }
}

TEST(Sweep, AResultThatIsNoneIsTheStoresFaultAndNamesThePoint) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(1));
  ASSERT_EQ(tool({"sweep", "s.yaml"}).code, 0);
  SQLite::Database(tool.file("s.sqlite"), SQLite::OPEN_READWRITE).exec("UPDATE points SET result = '5'");
  const Outcome outcome = tool({"sweep", "s.yaml"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_NE(outcome.err.find("cannot read 's.sqlite': what it has of point "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(" is not what kernbench writes"), std::string::npos) << outcome.err;
}

/// Neither into what it reads, nor two outputs into one file.
TEST(Sweep, AndSearchWriteIntoNoFileThatIsTaken) {
  const Tool tool;
  write(tool.file("m.yaml"), "extends: minimal\n");
  write(tool.file("p.yaml"), "cube: column_wise\npe: column_wise\n");
  write(tool.file("s.yaml"),
        "workload: all_reduce\ntopology: m.yaml\nset: {system.sips.count: 2}\n"
        "options: {placement: p.yaml, fidelity: fast}\naxes: {minbytes: [1K, 2K]}\n"
        "objectives: [{name: time_ns, goal: minimize}, {name: bytes, goal: maximize}]\n");
  write(tool.file("x"), "of an earlier sweep");
  const Outcome swept = tool({"sweep", "s.yaml"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& two, const std::string& file) {
    const std::string before = read(tool.file(file));
    const Outcome outcome = tool(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err,
              "kernbench: error: " + two + " are both '" + file + "'\n  hint: give each a file of its own\n");
    EXPECT_EQ(read(tool.file(file)), before);
  };
  refused({"sweep", "s.yaml", "--csv", "s.sqlite"}, "the store and --csv", "s.sqlite");
  refused({"sweep", "s.yaml", "--csv", "x", "--json", "x"}, "--csv and --json", "x");
  refused({"sweep", "s.yaml", "--csv", "s.yaml"}, "an input and --csv", "s.yaml");
  refused({"sweep", "s.yaml", "--json", "m.yaml"}, "an input and --json", "m.yaml");
  refused({"sweep", "s.yaml", "--json", "p.yaml"}, "an input and --json", "p.yaml");
  refused({"sweep", "s.yaml", "--store", "s.yaml"}, "an input and the store", "s.yaml");
  refused({"sweep", "--export", "s.sqlite", "--csv", "s.sqlite"}, "the store and --csv", "s.sqlite");
  refused({"sweep", "--export", "s.sqlite", "--json", "./s.sqlite"}, "the store and --json", "./s.sqlite");
  refused({"search", "s.yaml", "--json", "s.yaml"}, "an input and --json", "s.yaml");
  refused({"search", "s.yaml", "--json", "s.sqlite"}, "the store and --json", "s.sqlite");
}

TEST(Sweep, RunAgainDoesNothingAndSaysTheSame) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(5));
  const Outcome once = tool({"sweep", "s.yaml"});
  EXPECT_EQ(once.code, 0) << once.err;
  const std::string content = content_of(tool.file("s.sqlite"));
  const Outcome again = tool({"sweep", "s.yaml", "--resume"});
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.out.find("0 ran now, 5 were in the store"), std::string::npos) << again.out;
  EXPECT_EQ(content_of(tool.file("s.sqlite")), content);
}

TEST(Sweep, PointsOfAScheduleThatHasChangedRunAgain) {
  const Tool tool;
  const auto schedule = [&](const std::string& more) {
    write(tool.file("ring.xml"), read(KERNBENCH_SOURCE_DIR "/docs/examples/schedules/ring4_all_reduce.xml") + more);
  };
  schedule("");
  write(tool.file("s.yaml"),
        "workload: all_reduce\ntopology: minimal\nset: {system.sips.count: 4}\n"
        "options: {schedule: ring.xml, fidelity: fast}\naxes: {minbytes: [1K, 4K]}\n"
        "objectives: [{name: time_ns, goal: minimize}]\n");
  const Outcome first = tool({"sweep", "s.yaml"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(tool({"sweep", "s.yaml", "--resume"}).out.find("0 ran now"), std::string::npos);
  schedule("<!-- of today -->\n");
  EXPECT_NE(tool({"sweep", "s.yaml", "--resume"}).out.find("2 ran now"), std::string::npos);
}

TEST(Sweep, FailedPointsRunAgainOnlyOnRequest) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(2, 0, "throw"));
  EXPECT_EQ(tool({"sweep", "s.yaml"}).code, 6);
  EXPECT_NE(tool({"sweep", "s.yaml"}).out.find("0 ran now"), std::string::npos);
  EXPECT_NE(tool({"sweep", "s.yaml", "--retry-failed"}).out.find("2 ran now"), std::string::npos);
}

TEST(Sweep, ResumeWantsAStore) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(1));
  const Outcome outcome = tool({"sweep", "s.yaml", "--resume"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "kernbench: error: --resume: there is no store 's.sqlite'\n"
            "  hint: leave --resume out to start, or give --store\n");
}

TEST(Sweep, StoresTheResultAndTheResolvedConfigurationOfAPoint) {
  const Tool tool;
  write(tool.file("s.yaml"),
        "workload: gemm_single_pe\ntopology: minimal\noptions: {fidelity: fast}\n"
        "axes: {cube.noc.rows: [2, 3]}\nobjectives: [{name: time_ns, goal: minimize}]\n");
  ASSERT_EQ(tool({"sweep", "s.yaml"}).code, 0);
  const nlohmann::json all = exported(tool, "s.sqlite");
  const nlohmann::json& point = all["points"][1];
  EXPECT_EQ(all["configs"][point["config_hash"].get<std::string>()]["cube"]["noc"]["rows"], 3);
  // The same figures as a run of its own.
  const Outcome run = tool({"run", "gemm_single_pe", "--topology", "minimal", "--set", "cube.noc.rows=3", "--fidelity",
                            "fast", "--json", "-"});
  const nlohmann::json alone = nlohmann::json::parse(run.out);
  EXPECT_EQ(point["result"]["results"], alone["results"]);
  EXPECT_EQ(point["config_hash"], alone["config_hash"]);
  EXPECT_EQ(point["objectives"]["time_ns"], alone["results"].back()["time_ns"]);
  const Outcome csv = tool({"sweep", "--export", "s.sqlite", "--csv", "-"});
  EXPECT_EQ(csv.out.substr(0, 37), "position,status,cube.noc.rows,time_ns");
}

TEST(Sweep, AnObjectiveThatNoPointHasIsBadInput) {
  const Tool tool;
  write(tool.file("s.yaml"),
        "workload: gemm_single_pe\ntopology: minimal\noptions: {fidelity: fast}\naxes: {m: [16]}\n"
        "objectives:\n  - {name: tiem_ns, goal: minimize}\n");
  const Outcome outcome = tool({"sweep", "s.yaml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(
      outcome.err.find("s.yaml:6:5: error: objective 'tiem_ns': no point has a metric 'tiem_ns'\n  hint: did you mean "
                       "'time_ns'?"),
      std::string::npos)
      << outcome.err;
}

TEST(Sweep, AStoreThatCannotBeWrittenIsAnErrorOfTheEnvironment) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(2));
  std::filesystem::create_directory(tool.file("closed"));
  std::filesystem::permissions(tool.file("closed"), std::filesystem::perms(0555));
  // A superuser may write everywhere.
  const std::string user = ::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  const Outcome outcome = tool.shell(user + "'" + KERNBENCH_BINARY + "' sweep s.yaml --store closed/s.sqlite");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_NE(outcome.err.find("kernbench: error: cannot write 'closed/s.sqlite': unable to open database file"),
            std::string::npos)
      << outcome.err;
}

TEST(Sweep, AFullDiskEndsItWithAWholeStore) {
  const Tool tool;
  write(tool.file("s.yaml"), plain_sweep(40));
  ASSERT_EQ(tool({"sweep", "s.yaml", "--store", "undisturbed.sqlite"}).code, 0);
  // 200 blocks of 512 B: what the log of some points takes.
  const Outcome full = tool.shell(std::string("ulimit -f 200; '") + KERNBENCH_BINARY + "' sweep s.yaml");
  EXPECT_EQ(full.code, 7);
  EXPECT_NE(full.err.find("kernbench: error: cannot write 's.sqlite': disk I/O error (is the disk full, or a limit of "
                          "file sizes reached?)"),
            std::string::npos)
      << full.err;
  EXPECT_EQ(tool({"sweep", "s.yaml"}).code, 0);
  EXPECT_EQ(content_of(tool.file("s.sqlite")), content_of(tool.file("undisturbed.sqlite")));
}

}  // namespace
}  // namespace kernbench::sweep
