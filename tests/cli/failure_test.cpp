#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <systemc>

#include "sc_main/run/errors.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs an all_reduce whose algorithm goes wrong in the way of `mode` (broken_algorithm.cpp).
Outcome run_broken(const Tool& tool, int mode, const std::string& more = "") {
  std::ofstream(tool.file("ccl.yaml"))
      << "defaults:\n  algorithm: broken\nalgorithms:\n  broken:\n    module: " KERNBENCH_BROKEN_ALGORITHM
         "\n    mode: "
      << mode << "\n";
  return tool.shell(quoted(KERNBENCH_BINARY) +
                    " run all_reduce -b 1K -e 1K --algorithm broken --ccl ccl.yaml --json result.json " + more);
}

TEST(Failure, WrongNumericsAreShownAndEndWithOne) {
  const Tool tool;
  const Outcome outcome = run_broken(tool, 0);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("FAILED"));
  EXPECT_THAT(read(tool.file("result.json")), HasSubstr("\"check\": \"wrong\""));
}

TEST(Failure, DeadlockNamesWhoWaitsForWhat) {
  const Tool tool;
  const Outcome outcome = run_broken(tool, 1, "--vcd run.vcd");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("deadlock"));
  EXPECT_THAT(outcome.err, HasSubstr("0    collective 'broken' on sip0"));
  EXPECT_THAT(outcome.err, HasSubstr("1    collective 'broken' on sip1"));
  EXPECT_THAT(outcome.err, HasSubstr("sip0.cube0.pe0"));
  EXPECT_THAT(outcome.err, HasSubstr("recv(global_E, 1x8 f16)"));
  EXPECT_THAT(outcome.err, HasSubstr("wait cycle of 2 PEs:\n  sip0.cube0.pe0 waits for data"));
  EXPECT_FALSE(std::filesystem::exists(tool.file("result.json"))) << "a result that looks whole";
  EXPECT_THAT(read(tool.file("run.vcd")), HasSubstr("$enddefinitions")) << "the waves that show what led there";
}

TEST(Failure, MissingSendCanBeReadOff) {
  const Tool tool;
  const Outcome outcome = run_broken(tool, 3);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("0    barrier; not reached by rank 1"));
  EXPECT_THAT(outcome.err, HasSubstr("1    collective 'broken' on sip1"));
  EXPECT_THAT(outcome.err, HasSubstr("recv(global_W, 1x8 f16)"));
  EXPECT_THAT(outcome.err, HasSubstr("no wait cycle; where the chain ends:\n  sip1.cube0.pe0 waits for data"));
  EXPECT_THAT(outcome.err, HasSubstr("sip0.cube0.pe0 is not blocked: its kernel has ended or was never launched"));
}

TEST(Failure, DeviceFaultNamesPeAndKernel) {
  const Tool tool;
  const Outcome outcome = run_broken(tool, 2);
  EXPECT_EQ(outcome.code, 8);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("sip0.cube0.pe0"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("internal error")));
  EXPECT_FALSE(std::filesystem::exists(tool.file("result.json")));
}

TEST(Failure, MessagesThatNobodyReceivesAreAnError) {
  const Tool tool;
  for (const char* grade : {"accurate", "fast"}) {
    const Outcome outcome = run_broken(tool, 5, std::string("--fidelity ") + grade);
    EXPECT_EQ(outcome.code, 8) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("sip0.cube0.pe0.ipcq: IPCQ error in kernel 'broken', op send(global_E), at "));
    EXPECT_THAT(outcome.err, HasSubstr("3 messages to sip1.cube0.pe0 were never received"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("sip1.cube0.pe0.ipcq"))) << "rank 1 sent nothing";
    EXPECT_FALSE(std::filesystem::exists(tool.file("result.json")));
  }
}

/// Names of the files that a run left, beside those of its streams.
std::vector<std::string> left_in(const Tool& tool) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(tool.folder().path())) {
    const std::string name = entry.path().filename().string();
    if (name != ".out" && name != ".err") names.push_back(name);
  }
  return names;
}

/// Runs a workload whose host code goes wrong in the way of `mode` (runaway_workload.cpp).
Outcome run_runaway(const Tool& tool, const std::string& mode) {
  return tool({"run", "--plugin", KERNBENCH_RUNAWAY_WORKLOAD, "runaway", "--topology", "minimal", "--mode", mode,
               "--watchdog", "0.5", "--json", "result.json", "--vcd", "run.vcd"});
}

TEST(Failure, InfiniteHostLoopEndsByTheWatchdogAndIsNamed) {
  const Tool tool;
  const Outcome outcome = run_runaway(tool, "loop");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("kernbench: watchdog: no progress for 0.5 s of wall clock at "));
  EXPECT_THAT(outcome.err, HasSubstr("; running: the host code of rank 1 (process rank1)"));
  EXPECT_THAT(left_in(tool), ::testing::IsEmpty()) << "nothing that looks whole, no temporary files";
}

/// It looks more often than once in its period: not after twice the limit, also where there was work at first.
TEST(Failure, TheWatchdogEndsARunWithinASecondOfItsLimit) {
  const Tool tool;
  for (const char* mode : {"loop", "work_loop"}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = tool({"run", "--plugin", KERNBENCH_RUNAWAY_WORKLOAD, "runaway", "--topology", "minimal",
                                  "--mode", mode, "--watchdog", "3"});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(outcome.code, 4) << mode << outcome.err;
    EXPECT_GE(seconds.count(), 3) << mode;
    EXPECT_LT(seconds.count(), 3 + 1 + 0.7) << mode << ": what comes before the loop takes a moment";
  }
}

/// The host's own checks come when nothing can be stuck any more.
TEST(Failure, WhatFollowsTheSimulationIsNotTheWatchdogsBusiness) {
  const Tool tool;
  const Outcome outcome = run_runaway(tool, "late");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(left_in(tool), ::testing::Contains("result.json"));
}

#ifdef KERNBENCH_SANITIZED
constexpr const char* kShortLimit = "0.3";  // all of it is slower
#else
constexpr const char* kShortLimit = "0.1";
#endif

/// Each does it for longer than the limit while the program runs: to fill, or to check.
TEST(Failure, WhatTheToolDoesWithDataIsNotTheWatchdogsBusiness) {
  const Tool tool;
  for (const char* run : {"all_reduce --set system.sips.count=2 -b 16M -e 16M -w 0 --dtype f8e4m3",
                          "stream --bytes 64M --block 64K", "tp_mlp --in 2048 --hidden 2048 --out 2048"}) {
    std::vector<std::string> arguments{"run"};
    std::istringstream words(run);
    for (std::string word; words >> word;) arguments.push_back(word);
    for (const char* more : {"--topology", "minimal", "--fidelity", "fast", "--watchdog", kShortLimit}) {
      arguments.emplace_back(more);
    }
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 0) << run << "\n" << outcome.err;
  }
}

TEST(Failure, RanksThatSpinAtBarriersDoNotEscapeTheWatchdog) {
  const Tool tool;
  const Outcome outcome = run_runaway(tool, "barrier");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("turns of ranks in which the machine got nothing to do"));
}

TEST(Failure, KernelsThatDoNotComeBackAreNamed) {
  const Tool tool;
  const Outcome endless = run_runaway(tool, "kernel");
  EXPECT_EQ(endless.code, 4) << endless.err;
  EXPECT_THAT(endless.err, HasSubstr("; running: the code of kernel 'endless' on sip0.cube0.pe0"));
  EXPECT_THAT(left_in(tool), ::testing::IsEmpty());
}

/// Frames that are entered page by page, and one that a compiler without stack clash protection enters at its far end.
TEST(Failure, AKernelThatOverflowsItsStackIsNamed) {
  const Tool tool;
  for (const char* mode : {"locals", "recursion"}) {
    const Outcome outcome = run_runaway(tool, mode);
    EXPECT_EQ(outcome.code, 8) << mode << outcome.err;
    EXPECT_EQ(outcome.err, std::string("kernbench: error: kernel '") + mode +
                               "' on sip0.cube0.pe0 overflowed its stack of 128 KiB: keep large arrays in vectors\n");
    EXPECT_THAT(left_in(tool), ::testing::IsEmpty()) << mode;
  }
}

TEST(Failure, ARankThatOverflowsItsStackIsNamed) {
  const Tool tool;
  for (const char* mode : {"rank_locals", "rank_recursion"}) {
    const Outcome outcome = run_runaway(tool, mode);
    EXPECT_EQ(outcome.code, 8) << mode << outcome.err;
    EXPECT_EQ(outcome.err, "kernbench: error: rank 1 overflowed its stack of 512 KiB: keep large arrays in vectors\n");
    EXPECT_THAT(left_in(tool), ::testing::IsEmpty()) << mode;
  }
}

/// Exit code 0 without a result would look as if all were well.
TEST(Failure, ACallOfExitIsTheFaultOfTheKernelOrRankThatMakesIt) {
  const Tool tool;
  const std::map<std::string, std::string> owners{{"exit", "kernel 'exit' on sip0.cube0.pe0"}, {"rank_exit", "rank 1"}};
  for (const auto& [mode, owner] : owners) {
    const Outcome outcome = run_runaway(tool, mode);
    EXPECT_EQ(outcome.code, 8) << mode << outcome.err;
    EXPECT_EQ(outcome.err, "kernbench: error: " + owner + " called exit: return, or throw\n");
    EXPECT_THAT(left_in(tool), ::testing::IsEmpty()) << mode;
  }
}

TEST(Failure, EmptyTilesAreErrorsThatNameTheCall) {
  const Tool tool;
  const Outcome one = run_runaway(tool, "one_tile"), both = run_runaway(tool, "tiles"),
                shape = run_runaway(tool, "shape");
  for (const Outcome& outcome : {one, both, shape}) {
    EXPECT_EQ(outcome.code, 8) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("on sip0.cube0.pe0: ")) << "PE";
  }
  EXPECT_THAT(one.err, HasSubstr("kernel 'one_tile' on sip0.cube0.pe0: add: a tile is empty: it was never made"));
  EXPECT_THAT(both.err, HasSubstr("kernel 'tiles' on sip0.cube0.pe0: mul: both tiles are empty"));
  EXPECT_THAT(shape.err, HasSubstr("kernel 'shape' on sip0.cube0.pe0: Tile::shape: the tile is empty"));
}

#ifdef KERNBENCH_SANITIZED
constexpr const char* kLittleMemory = "";  // the sanitizer's own memory is beyond any limit
#else
constexpr const char* kLittleMemory = "ulimit -v 8000000; ";
#endif

/// The host makes data only for tensors that the device has room for.
TEST(Failure, DataThatTheDeviceHasNoRoomForAreTheDevicesFault) {
  const Tool tool;
  for (const char* size : {"20G", "1T"}) {
    for (const char* more : {"", " -o avg", " --group 0 --group 0"}) {
      const Outcome outcome = tool.shell(kLittleMemory + ("exec " + quoted(KERNBENCH_BINARY)) +
                                         " run all_reduce --topology minimal -b " + size + more);
      EXPECT_EQ(outcome.code, 5) << size << more << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("out of device memory"));
    }
  }
}

/// Of every workload that fills its tensors: the device is asked before the host makes their contents.
TEST(Failure, ContentsAreMadeWhenTheDeviceHasRoomForThem) {
  const Tool tool;
  for (const char* run : {"gemm_single_pe --m 1048576 --k 1048576", "gemm --m 1048576 --n 32 --k 1048576",
                          "stream --bytes 1T", "va_offset_verify --bytes 1T"}) {
    const Outcome outcome =
        tool.shell(kLittleMemory + ("exec " + quoted(KERNBENCH_BINARY)) + " run " + run + " --topology minimal");
    EXPECT_EQ(outcome.code, 5) << run << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("out of device memory")) << run;
  }
}

#ifndef KERNBENCH_SANITIZED
/// Whatever memory the process may have: it is no shortage of that.
TEST(Failure, ANullPointerIsTheFaultOfTheKernelOrRankThatUsesIt) {
  const Tool tool;
  const std::map<std::string, std::string> owners{{"null", "kernel 'null' on sip0.cube0.pe0"}, {"rank_null", "rank 1"}};
  for (const char* limit : {"", kLittleMemory}) {
    for (const auto& [mode, owner] : owners) {
      const Outcome outcome = tool.shell(limit + quoted(KERNBENCH_BINARY) + " run --plugin " +
                                         KERNBENCH_RUNAWAY_WORKLOAD + " runaway --topology minimal --mode " + mode);
      EXPECT_EQ(outcome.code, 8) << limit << mode << outcome.err;
      EXPECT_EQ(outcome.err, "kernbench: error: " + owner + " used a null pointer\n");
    }
  }
}

/// Asked before there is any of it, with both figures and what helps; without data it runs.
TEST(Failure, DataThatThisComputerHasNoRoomForIsTheEnvironmentsFault) {
  const Tool tool;
  const std::string run = "ulimit -v 600000; exec " + quoted(KERNBENCH_BINARY) +
                          " run all_reduce --topology minimal --set system.sips.count=8 -b 32M -e 32M -w 0 -n 1 ";
  const Outcome refused = tool.shell(run);
  EXPECT_EQ(refused.code, 7) << refused.err;
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, ::testing::MatchesRegex("kernbench: error: all_reduce of 33554432 B on 8 ranks: needs 768 "
                                                   "MiB of this computer's memory, [0-9]+ MiB are left .ulimit -v.: "
                                                   "--data off needs none of it, .*\n"));
  EXPECT_EQ(tool.shell(run + "--data off --fidelity fast").code, 0);
  EXPECT_THAT(tool.shell(run + "-c 0").err, HasSubstr("needs 512 MiB")) << "nothing is kept to compare";
}

TEST(Failure, ArraysThatThisComputerHasNoRoomForAreNamed) {
  const Tool tool;
  const Outcome refused =
      tool.shell("ulimit -v 1000000; exec " + quoted(KERNBENCH_BINARY) + " run stream --bytes 512M");
  EXPECT_EQ(refused.code, 7) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("stream with three arrays of 68719476736 B over all PEs: needs 393216 MiB of this "
                                     "computer's memory, "));
  EXPECT_THAT(refused.err, HasSubstr("(ulimit -v): --data off needs none of it, a smaller --bytes less"));
}

/// Whatever there is too little of, and whenever: before main, for a rank's stack, in a child.
TEST(Failure, LittleAddressSpaceIsTheEnvironmentsFaultAtAnyLimit) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml")) << "workload: gemm\ntopology: minimal\noptions: {m: 32, n: 32, k: 32}\n"
                                        "axes: {cube.hbm.channels: [1]}\n"
                                        "objectives: [{name: time_ns, goal: minimize}]\n";
  const std::vector<std::string> commands{
      "run all_reduce -b 1K -e 1K --topology minimal",
      "tune --ops all_reduce -b 1K -e 1K --topology minimal --set system.sips.count=2 --jobs 1 -q",
      "sweep s.yaml -o store.sqlite --jobs 1"};
  for (int limit = 56; limit < 160; limit += 8) {  // MB; with less the dynamic linker ends it
    for (const std::string& command : commands) {
      std::filesystem::remove(tool.file("store.sqlite"));
      const Outcome outcome =
          tool.shell("ulimit -v " + std::to_string(limit) + "000; exec " + quoted(KERNBENCH_BINARY) + " " + command);
      const bool sweep = command == commands[2];
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 7) << limit << " MB, " << command << ": " << outcome.code << "\n"
                                                          << outcome.err;
      EXPECT_THAT(outcome.err, Not(HasSubstr("internal error"))) << limit << command;
      if (!sweep) continue;
      EXPECT_THAT(outcome.err, Not(HasSubstr("failed (exit code"))) << "points stay open: " << limit;
    }
  }
  // Behind the linker's limits, those of libraries, which end a program in ways of their own.
  for (int limit = 40'000; limit < 64'000; limit += 500) {  // kB
    const Outcome outcome =
        tool.shell("ulimit -v " + std::to_string(limit) + "; exec " + quoted(KERNBENCH_BINARY) + " list");
    EXPECT_TRUE(outcome.code == 127 || outcome.code == 0 || outcome.code == 7)
        << limit << " kB: " << outcome.code << "\n"
        << outcome.err;
  }
}
#endif

/// SystemC hands on what a process of its own throws as a report, and has another for a rank's stack.
TEST(Failure, WhatSystemCReportsForLackOfMemoryIsTheEnvironmentsFault) {
  const auto expect_shortage = [](const std::function<void()>& work) {
    try {
      work();
      ADD_FAILURE() << "nothing was thrown";
    } catch (...) {
      std::string text;
      EXPECT_EQ(classify(std::current_exception(), text), ExitCode::environment);
      EXPECT_EQ(text, kNoMemory);
    }
  };
  expect_shortage([] { SC_REPORT_ERROR(sc_core::SC_ID_STACK_SETUP_FAILED_, "mmap"); });
  sc_core::sc_spawn_options method;
  method.spawn_method();
  sc_core::sc_spawn([] { throw std::bad_alloc(); }, "without_memory", &method);
  expect_shortage([] { sc_core::sc_start(sc_core::SC_ZERO_TIME); });
}

TEST(Failure, ARankWithoutHostMemoryIsTheEnvironmentsFault) {
  const Tool tool;
  const Outcome outcome = run_runaway(tool, "memory");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.err,
            "kernbench: error: rank 1 of 2 failed; first reason: this computer has not enough memory "
            "(std::bad_alloc)\n");
}

TEST(Failure, IsRedOnATerminalUnlessColorIsNever) {
  const Tool tool;
  if (tool.shell("command -v script").code != 0) GTEST_SKIP() << "NOT TESTED: 'script' (package bsdutils) is missing";
  for (const char* command : {"validate pci", "run probe --seed x", "sweep"}) {
    const auto shown = [&](const std::string& colors) {
      const std::string line = std::string("env -u NO_COLOR TERM=xterm ") + KERNBENCH_BINARY + " " + command + colors;
      return tool.shell("script -qec " + quoted(line) + " /dev/null").out;
    };
    EXPECT_THAT(shown(""), HasSubstr("kernbench: \033[1;31merror\033[0m: ")) << command;
    EXPECT_THAT(shown(" --color never"), HasSubstr("kernbench: error: ")) << command;
  }
}

}  // namespace
}  // namespace kernbench
