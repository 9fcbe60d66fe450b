#pragma once
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/executor.h"

namespace kernbench::sweep {

/// What a worker on another machine needs to run some tasks: one JSON object on one line. It holds the resolved
/// machines, so that the worker needs none of the files they were written in.
nlohmann::ordered_json plan_of_tasks(const std::vector<Task*>& tasks, const Limits& limits);

/// All that there are, without runs: the workers make their own.
std::vector<std::unique_ptr<Task>> tasks_for_workers(const Executor::Next& next);

/// Tasks dealt out like cards, so that neighbours, which take about as long, go to different workers.
std::vector<std::vector<Task*>> shards_of(const std::vector<Task*>& tasks, std::size_t shards);

/// What is to come back: takes the lines of result files, in any order and any number of times.
class Merge {
 public:
  Merge(const std::vector<std::unique_ptr<Task>>& tasks, const Executor::Done& done);
  /// One line; anything that is no whole record of an open task is left out, and so is what was lost, but for why.
  void add(const std::string& line);
  bool complete() const { return open_.empty(); }
  std::size_t open() const { return open_.size(); }
  std::vector<Task*> missing() const;  ///< in the order of the tasks
  /// Gives up on the rest: they are recorded as lost.
  void give_up(const std::string& reason);

 private:
  const std::vector<std::unique_ptr<Task>>& tasks_;
  Executor::Done done_;
  std::map<std::string, Task*> open_;  // by key
  std::map<std::string, std::string> why_lost_;
};

/// `kernbench sweep --worker PLAN --results FILE`: runs the tasks of a plan ('-': standard input) and appends a line
/// per task to a file ('-': standard output). Throws Interrupted, UsageError, OutputError.
void run_worker(const std::string& plan, const std::string& results, unsigned jobs, const std::atomic<bool>& stop);

}  // namespace kernbench::sweep
