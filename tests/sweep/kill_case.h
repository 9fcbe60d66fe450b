#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/tool_runner.h"
#include "tests/sweep/store_content.h"
#include "tests/sweep/sweep_texts.h"

namespace kernbench::sweep {

/// The tool under way in the background, without output.
inline pid_t start_tool(const std::string& folder, const std::vector<std::string>& arguments) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  if (::chdir(folder.c_str()) != 0) ::_exit(127);
  if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr)
    ::_exit(127);
  std::string tool = KERNBENCH_BINARY;
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv{tool.data()};
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(tool.c_str(), argv.data());
  ::_exit(127);
}

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Kills a sweep at random moments, each time followed by a resume; the store ends as that of an undisturbed sweep.
inline void kill_and_resume(int kills, int points) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml")) << plain_sweep(points, 3);
  double begin = now_s();
  ASSERT_EQ(tool({"sweep", "s.yaml", "--store", "undisturbed.sqlite"}).code, 0);
  const double whole = now_s() - begin;

  std::mt19937 random(17);
  int killed = 0;
  for (int round = 0; killed < kills; ++round) {
    ASSERT_LT(round, 3 * kills) << "the sweep ends before it can be killed";
    if (killed % 10 == 0) std::filesystem::remove(tool.file("s.sqlite"));  // a new one each ten kills
    const pid_t process = start_tool(tool.folder().path().string(), {"sweep", "s.yaml"});
    // Anywhere from its first instruction to a part of the points.
    const double wait = whole * std::uniform_real_distribution<double>(0, 0.5)(random);
    std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    ::kill(process, SIGKILL);
    int status = 0;
    ::waitpid(process, &status, 0);
    if (WIFSIGNALED(status)) ++killed;
    if (killed % 10 != 0 && killed != kills) continue;
    ASSERT_EQ(tool({"sweep", "s.yaml", "--store", "s.sqlite"}).code, 0);
    ASSERT_EQ(content_of(tool.file("s.sqlite")), content_of(tool.file("undisturbed.sqlite"))) << killed;
  }
}

}  // namespace kernbench::sweep
