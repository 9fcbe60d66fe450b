#include <cstdio>
#include <filesystem>
#include <iterator>

#include "tests/sweep/kill_case.h"

namespace kernbench::sweep {
namespace {

TEST(SweepKilled, AtTenMomentsEndsAsIfItHadNotBeen) { kill_and_resume(10, 40); }

std::vector<pid_t> children_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

std::ptrdiff_t threads_of(pid_t process) {
  const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(process) + "/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(SweepKilled, SingleWorkersThatAreKilledChangeNothing) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml")) << plain_sweep(60, 20);
  ASSERT_EQ(tool({"sweep", "s.yaml", "--store", "undisturbed.sqlite"}).code, 0);
  const pid_t process = start_tool(tool.folder().path().string(), {"sweep", "s.yaml", "--jobs", "3"});
  int killed = 0, status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const std::vector<pid_t> children = children_of(process);
    if (killed < 20 && !children.empty() && ::kill(children.back(), SIGKILL) == 0) ++killed;
  }
  EXPECT_GT(killed, 2);
  EXPECT_TRUE(WIFEXITED(status));
  ASSERT_EQ(tool({"sweep", "s.yaml", "--store", "s.sqlite"}).code, 0);  // runs again what was killed three times
  EXPECT_GT(count_of(tool.file("s.sqlite"), "SELECT count(*) FROM points WHERE attempt > 1"), 0);
  EXPECT_EQ(content_of(tool.file("s.sqlite")), content_of(tool.file("undisturbed.sqlite")));
}

TEST(SweepKilled, ItsPointsEndWithIt) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml")) << plain_sweep(2, 60'000);
  const pid_t process = start_tool(tool.folder().path().string(), {"sweep", "s.yaml", "--jobs", "2"});
  std::vector<pid_t> children;
  for (int i = 0; i < 500 && children.size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    children = children_of(process);
  }
  ASSERT_EQ(children.size(), 2U);
  EXPECT_EQ(threads_of(process), 1) << "what forks has no threads";
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  for (const pid_t child : children) {
    bool gone = false;
    for (int i = 0; i < 500 && !gone; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      gone = ::kill(child, 0) != 0;
    }
    EXPECT_TRUE(gone) << child;
  }
}

/// Rows of a store that may not be there yet.
int rows_so_far(const std::string& store) {
  try {
    return count_of(store, "SELECT count(*) FROM points");
  } catch (const SQLite::Exception&) {
    return 0;
  }
}

TEST(SweepInterrupted, KeepsWhatItHasAndSaysSo) {
  const Tool tool;
  std::ofstream(tool.file("s.yaml")) << plain_sweep(200, 20);
  const pid_t process = start_tool(tool.folder().path().string(), {"sweep", "s.yaml"});
  for (int i = 0; i < 600 && rows_so_far(tool.file("s.sqlite")) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ::kill(process, SIGINT);
  int status = 0;
  ::waitpid(process, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_GT(count_of(tool.file("s.sqlite"), "SELECT count(*) FROM points"), 0);
}

}  // namespace
}  // namespace kernbench::sweep
