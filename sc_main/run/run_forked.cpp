#include "sc_main/run/run_forked.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "sc_main/process/pool.h"
#include "sc_main/run/errors.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/terminal.h"

namespace kernbench {
namespace {
using Measured = std::function<std::vector<double>()>;

constexpr int kPollMs = 200;

/// An answer: its exit code in one byte; then figures, or what went wrong.
std::string answer(ExitCode code, const std::string& rest) { return static_cast<char>(code) + rest; }

std::string answer_of(const Measured& run) {
  try {
    const std::vector<double> figures = run();
    std::string bytes(figures.size() * sizeof(double), '\0');
    if (!figures.empty()) std::memcpy(bytes.data(), figures.data(), bytes.size());
    return answer(ExitCode::success, bytes);
  } catch (...) {
    std::string text;
    const ExitCode code = classify(std::current_exception(), text);
    return answer(code, text);
  }
}

std::vector<double> figures_of(const process::Ending& ending) {
  if (!ending.errors.empty()) say(ending.errors + "\n");
  if (WIFSIGNALED(ending.status))
    throw std::runtime_error(fmt::format("a run ended by signal {}", WTERMSIG(ending.status)));
  if (WEXITSTATUS(ending.status) == static_cast<int>(ExitCode::environment))
    throw std::bad_alloc();  // could not say so
  if (ending.answer.empty() || WEXITSTATUS(ending.status) != 0)
    throw std::runtime_error("a run ended without a result");
  const std::string rest = ending.answer.substr(1);
  const auto code = static_cast<ExitCode>(ending.answer.front());
  if (code == ExitCode::bad_input) throw std::invalid_argument(rest);
  if (code != ExitCode::success) throw RunEnded(code, rest);
  std::vector<double> figures(rest.size() / sizeof(double));
  if (!figures.empty()) std::memcpy(figures.data(), rest.data(), rest.size());
  return figures;
}
}  // namespace

std::vector<std::vector<double>> run_forked(const std::vector<Measured>& runs, unsigned jobs,
                                            const std::atomic<bool>& stop,
                                            const std::function<void(std::size_t)>& done) {
  std::vector<std::vector<double>> results(runs.size());
  std::vector<bool> ended(runs.size());
  process::Pool pool(jobs, {});
  for (std::size_t next = 0, finished = 0; finished < runs.size();) {
    if (stop.load(std::memory_order_relaxed)) throw RunsUnfinished{std::move(results), std::move(ended)};
    for (; next < runs.size() && !pool.full(); ++next) {
      pool.start(next, [&run = runs[next]] { return answer_of(run); });
    }
    pool.wait(kPollMs, [&](std::size_t index, const process::Ending& ending) {
      if (stop.load(std::memory_order_relaxed)) return;  // the signal may have been the end of it, too
      results[index] = figures_of(ending);
      ended[index] = true;
      ++finished;
      if (done) done(finished);
    });
  }
  return results;
}

}  // namespace kernbench
