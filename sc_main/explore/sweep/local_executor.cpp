#include <sched.h>

#include <deque>
#include <map>

#include "sc_main/explore/sweep/executor.h"
#include "sc_main/explore/sweep/record.h"

namespace kernbench::sweep {
namespace {
constexpr int kLocalTickMs = 100;
}  // namespace

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

LocalExecutor::LocalExecutor(unsigned jobs, const Limits& limits, Work work)
    : jobs_(jobs == 0 ? usable_cores() : jobs), limits_(limits), work_(std::move(work)) {}

void LocalExecutor::run(const Next& next, const Done& done, const Tick& tick, const std::atomic<bool>& stop) {
  process::Pool pool(jobs_, limits_);
  std::map<std::size_t, std::unique_ptr<Task>> running;
  std::deque<std::unique_ptr<Task>> ready;  // made while the children were busy
  std::size_t started = 0;
  bool more = true;
  const auto fill = [&](std::size_t most) {
    while (more && ready.size() < most) {
      auto task = next();
      more = task != nullptr;
      if (task) ready.push_back(std::move(task));
      if (!pool.full()) return;  // it can start at once
    }
  };
  const auto ended = [&](std::size_t id, const process::Ending& ending) {
    std::unique_ptr<Task> task = std::move(running.at(id));
    running.erase(id);
    Record record = record_of(task->identity.key, ending, limits_);
    record.attempt = task->attempt;
    if (record.status == Status::lost && task->attempt < kAttempts) {
      ready.push_front(std::move(task));
    } else {
      done(*task, record);
    }
  };
  while (true) {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted();
    if (ready.empty()) fill(1);
    while (!pool.full() && !ready.empty()) {
      std::unique_ptr<Task> task = std::move(ready.front());
      ready.pop_front();
      ++task->attempt;
      Task& here = *task;
      running[started] = std::move(task);
      pool.start(started++, [this, &here] { return work_(here); });
      if (ready.empty()) fill(1);
    }
    if (pool.running() == 0 && ready.empty() && !more) return;
    if (pool.wait(0, ended)) continue;
    if (more && ready.size() < jobs_) {
      fill(ready.size() + 1);
    } else {
      pool.wait(kLocalTickMs, ended);
    }
    tick(pool.running());
  }
}

}  // namespace kernbench::sweep
