#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "ccl/choice.h"
#include "tests/runtime/machine_run.h"
#include "tests/support/test_folder.h"

/// Copies of the process in which `auto` tries algorithms out.
namespace kernbench::testing {
namespace {

constexpr int kRanks = 4;
constexpr Ps kLater = 1'000'000'000;  ///< than the other ranks' calls

RunOptions trials(bool on) {
  RunOptions options;
  options.trials = on;
  return options;
}

/// A reduce_scatter, for which several algorithms are as good.
Handle call(Context& ctx, std::int64_t elements = 512) {
  const Tensor in = ctx.full(1, {1, elements}, DType::f16, spread(), "in");
  const Tensor out = ctx.empty({1, elements / kRanks}, DType::f16, spread(), "out");
  return ctx.reduce_scatter(in, out);
}

/// How many algorithms were tried out for a call.
std::ptrdiff_t tried(const Handle& handle) {
  const auto& candidates = handle.choice()->candidates;
  return std::count_if(candidates.begin(), candidates.end(), [](const ccl::Candidate& c) { return c.tried; });
}

std::ptrdiff_t tried(const RunOptions& options) {
  MachineRun run(machine_of(kRanks, 1, 1), options);
  std::ptrdiff_t count = -1;
  run.runtime.program(
      [&](Context& ctx) {
        ctx.init_process_group();
        count = tried(call(ctx));
      },
      kRanks);
  run.runtime.run();
  run.runtime.check();
  return count;
}

TEST(Trial, AProgramsOwnHostCodeRunsOnceUnlessItSaysOtherwise) { EXPECT_EQ(tried(RunOptions()), 0); }

TEST(Trial, SeveralAreTriedWhereTheyAreAllowed) { EXPECT_GE(tried(trials(true)), 2); }

/// The call that is prepared is the one that is tried: what is chosen then is what the call would have chosen.
TEST(Trial, APreparationTriesAsItsCallWould) {
  std::vector<std::string> chosen;
  std::vector<std::ptrdiff_t> counts;
  MachineRun run(machine_of(kRanks, 1, 1), trials(true));
  run.runtime.program(
      [&](Context& ctx) {
        ctx.init_process_group();
        const Tensor t = ctx.full(1, {1, 512}, DType::f16, spread(), "t");
        ctx.prepare_all_reduce(t, t);
        EXPECT_EQ(t.at(0, 511), 1) << "in the copy alone";
        const Handle handle = ctx.all_reduce(t);
        EXPECT_EQ(t.at(0, 511), kRanks);
        if (ctx.rank() != 0) return;
        chosen.push_back(handle.name());
        counts.push_back(tried(handle));
      },
      kRanks);
  run.runtime.run();
  run.runtime.check();
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_GE(counts[0], 2) << chosen[0];
}

/// Open files share their positions with a copy's: it must not have them.
TEST(Trial, FilesThatAreOpenAreReadAndWrittenOnce) {
  const TestFolder folder;
  const std::string path = folder.file("read");
  std::ofstream(path) << "first\n" + std::string(100'000, '-') + "\nlast\n";
  MachineRun run(machine_of(kRanks, 1, 1), trials(true));
  std::ofstream written(folder.file("written"));
  std::ifstream reading(path);
  std::vector<std::string> lines;
  run.runtime.program(
      [&](Context& ctx) {
        ctx.init_process_group();
        for (int i = 0; i < 3; ++i) {
          call(ctx);
          written << ctx.rank() << std::endl;
          if (ctx.rank() != 0) continue;
          std::string line;
          std::getline(reading, line);
          lines.push_back(line.substr(0, 5));
        }
      },
      kRanks);
  run.runtime.run();
  run.runtime.check();
  EXPECT_EQ(lines, (std::vector<std::string>{"first", "-----", "last"}));
  EXPECT_EQ(read(folder.file("written")).size(), 3U * kRanks * 2);
}

/// In the copies, too, the call never ends.
TEST(Trial, ACallThatOneRankDoesNotMakeIsReportedAsWithoutTrials) {
  MachineRun run(machine_of(kRanks, 1, 1), trials(true));
  run.runtime.program(
      [&](Context& ctx) {
        ctx.init_process_group();
        if (ctx.rank() == 1) ctx.wait(ctx.promise("nobody keeps it"));
        call(ctx);
      },
      kRanks);
  run.runtime.run();
  EXPECT_EQ(run.runtime.outcome().unfinished, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_THROW(run.runtime.check(), Deadlock);
}

/// What counts is the call that is tried, not one before it that is still under way.
TEST(Trial, ACallBehindOthersIsTheOneThatIsMeasured) {
  MachineRun run(machine_of(kRanks, 1, 1), trials(true));
  double alone = 0, behind = 0;
  const auto expected = [](const Handle& handle) { return handle.choice()->candidates.front().ns; };
  run.runtime.program(
      [&](Context& ctx) {
        ctx.init_process_group();
        alone = expected(call(ctx));
        const Tensor large = ctx.full(1, {1, 64 << 10}, DType::f16, spread(), "large");
        const Handle before = ctx.all_reduce_async(large);
        behind = expected(call(ctx, 520));
        ctx.wait(before);
      },
      kRanks);
  run.runtime.run();
  run.runtime.check();
  EXPECT_GT(alone, 0);
  EXPECT_LT(behind, 2 * alone);
}

/// Without it the choice would be another one.
TEST(Trial, ACopyThatIsKilledEndsTheRun) {
  MachineRun run(machine_of(kRanks, 1, 1), trials(true));
  const pid_t original = ::getpid();
  run.runtime.program(
      [&](Context& ctx) {
        ctx.init_process_group();
        if (ctx.rank() == 1) ctx.wait(ctx.timer(kLater, "later"));
        if (::getpid() != original) ::raise(SIGKILL);
        call(ctx);
      },
      kRanks);
  run.runtime.run();
  const auto outcome = run.runtime.outcome();
  ASSERT_EQ(outcome.failures.count(0), 1U);
  try {
    std::rethrow_exception(outcome.failures.at(0));
  } catch (const std::system_error& error) {
    EXPECT_STREQ(error.what(),
                 "auto: a copy of the process, made to try an algorithm, was ended by signal 9: Operation canceled");
  }
}

/// In a copy, too, a rank may throw; the original says what it does there.
TEST(Trial, ARankThatThrowsInACopyIsHeardOfOnce) {
  MachineRun run(machine_of(kRanks, 1, 1), trials(true));
  const pid_t original = ::getpid();
  std::ptrdiff_t count = -1;
  run.runtime.program(
      [&](Context& ctx) {
        ctx.init_process_group();
        if (ctx.rank() == 1) ctx.wait(ctx.timer(kLater, "later"));
        if (::getpid() != original) throw std::runtime_error("only in a copy");
        count = tried(call(ctx));
      },
      kRanks);
  run.runtime.run();
  run.runtime.check();
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace kernbench::testing
