#include "sc_main/process/figures.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "sc_main/process/pool.h"
#include "tlm/config/problems.h"

namespace kernbench::process {
namespace {
using Run = std::function<std::vector<double>()>;

constexpr int kPollMs = 200;
constexpr int kNoMemoryCode = 7;  ///< of a process that found no memory to say so: docs/cli.md

/// First byte of an answer; then figures or a text.
enum class Answer : char { figures = 'f', refused = 'r', failed = 'e', no_memory = 'm' };

std::string answer(Answer kind, const std::string& rest) { return static_cast<char>(kind) + rest; }

std::string answer_of(const Run& run) {
  try {
    const std::vector<double> figures = run();
    std::string bytes(figures.size() * sizeof(double), '\0');
    if (!figures.empty()) std::memcpy(bytes.data(), figures.data(), bytes.size());
    return answer(Answer::figures, bytes);
  } catch (const ConfigError& error) {
    return answer(Answer::refused, error.what());
  } catch (const std::invalid_argument& error) {
    return answer(Answer::refused, error.what());
  } catch (const std::bad_alloc&) {
    return answer(Answer::no_memory, "");
  } catch (const std::system_error&) {  // neither a thread nor memory for one
    return answer(Answer::no_memory, "");
  } catch (const std::exception& error) {
    return answer(Answer::failed, error.what());
  } catch (...) {
    return answer(Answer::failed, "unknown exception");
  }
}

std::vector<double> figures_of(const Ending& ending) {
  if (!ending.errors.empty()) fmt::print(stderr, "{}\n", ending.errors);
  if (WIFSIGNALED(ending.status))
    throw std::runtime_error(fmt::format("a run ended by signal {}", WTERMSIG(ending.status)));
  if (WEXITSTATUS(ending.status) == kNoMemoryCode) throw std::bad_alloc();
  if (ending.answer.empty() || WEXITSTATUS(ending.status) != 0)
    throw std::runtime_error("a run ended without a result");
  const std::string rest = ending.answer.substr(1);
  switch (static_cast<Answer>(ending.answer.front())) {
    case Answer::refused:
      throw std::invalid_argument(rest);
    case Answer::failed:
      throw std::runtime_error(rest);
    case Answer::no_memory:
      throw std::bad_alloc();
    case Answer::figures:
      break;
  }
  std::vector<double> figures(rest.size() / sizeof(double));
  if (!figures.empty()) std::memcpy(figures.data(), rest.data(), rest.size());
  return figures;
}
}  // namespace

std::vector<std::vector<double>> run_forked(const std::vector<Run>& runs, unsigned jobs, const std::atomic<bool>& stop,
                                            const std::function<void(std::size_t)>& done) {
  std::vector<std::vector<double>> results(runs.size());
  std::vector<bool> ended(runs.size());
  Pool pool(jobs, {});
  for (std::size_t next = 0, finished = 0; finished < runs.size();) {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{std::move(results), std::move(ended)};
    for (; next < runs.size() && !pool.full(); ++next) {
      pool.start(next, [&run = runs[next]] { return answer_of(run); });
    }
    pool.wait(kPollMs, [&](std::size_t index, const Ending& ending) {
      if (stop.load(std::memory_order_relaxed)) return;  // the signal may have been the end of it, too
      results[index] = figures_of(ending);
      ended[index] = true;
      ++finished;
      if (done) done(finished);
    });
  }
  return results;
}

}  // namespace kernbench::process
