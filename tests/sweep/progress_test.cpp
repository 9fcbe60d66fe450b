#include <fstream>

#include "sc_main/explore/sweep/progress_view.h"
#include "tests/cli/tool_runner.h"
#include "tests/sweep/sweep_texts.h"

namespace kernbench::sweep {
namespace {

Progress after(double seconds, std::size_t done) {
  Progress progress;
  progress.total = 10;
  progress.done = progress.ran = done;
  progress.elapsed_s = seconds;
  return progress;
}

TEST(Progress, WithoutATerminalIsAPlainLineEveryTenSeconds) {
  ::testing::internal::CaptureStderr();
  ProgressView view(Terminal(ColorMode::never), true);
  view.show(after(5, 1));
  view.show(after(12, 4));  // 6 more, 3 s each
  view.show(after(15, 5));
  view.show(after(200, 8));
  view.clear();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "kernbench: 4/10 points, ETA 18 s\n"
            "kernbench: 8/10 points, ETA 50 s\n");
}

TEST(Progress, IsSilentOnRequest) {
  ::testing::internal::CaptureStderr();
  ProgressView(Terminal(ColorMode::never), false).show(after(100, 4));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, OnATerminalIsABarThatIsTakenAway) {
  const Tool tool;
  if (tool.shell("command -v script").code != 0) GTEST_SKIP() << "NOT TESTED: 'script' (package bsdutils) is missing";
  std::ofstream(tool.file("s.yaml")) << plain_sweep(8, 400);
  const Outcome outcome =
      tool.shell(std::string("script -qec \"TERM=xterm '") + KERNBENCH_BINARY + "' sweep s.yaml --jobs 2\" /dev/null");
  EXPECT_NE(outcome.out.find("\r\033[K[..............................] 0/8 points"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\r\033[K[###"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("/8 points, ETA "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\r\033[K# sweep s: 8 points, 8 ok"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace kernbench::sweep
