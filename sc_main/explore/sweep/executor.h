#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "sc_main/explore/sweep/task.h"

namespace kernbench::sweep {

/// The user asked to end.
struct Interrupted {};

/// Where points run.
class Executor {
 public:
  /// Hands out tasks until there are none left; a call takes some milliseconds.
  using Next = std::function<std::unique_ptr<Task>()>;
  /// A task has ended, well or not; not called for an attempt that is lost and made again.
  using Done = std::function<void(const Task&, const Record&)>;
  /// Called often, with the number of points under way.
  using Tick = std::function<void(std::size_t running)>;

  virtual ~Executor() = default;
  /// Runs every task once to an end of its own; one that is ended from outside is made again, at most kAttempts times.
  /// Throws Interrupted when `stop` is set, with nothing left running; OutputError.
  virtual void run(const Next& next, const Done& done, const Tick& tick, const std::atomic<bool>& stop) = 0;

  static constexpr int kAttempts = 3;
};

/// Processes of this machine.
class LocalExecutor final : public Executor {
 public:
  /// What is done with a task in its process; makes the answer.
  using Work = std::function<std::string(Task&)>;
  /// `jobs` 0: one per core that this process may use.
  LocalExecutor(unsigned jobs, const Limits& limits, Work work = run_task);
  void run(const Next& next, const Done& done, const Tick& tick, const std::atomic<bool>& stop) override;

 private:
  unsigned jobs_;
  Limits limits_;
  Work work_;
};

/// Cores that this process may use.
unsigned usable_cores();

}  // namespace kernbench::sweep
