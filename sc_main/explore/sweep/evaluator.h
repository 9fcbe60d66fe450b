#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/executor.h"
#include "sc_main/explore/sweep/points.h"
#include "sc_main/explore/sweep/store.h"

namespace kernbench::sweep {

/// What became of a point that was asked for.
struct Evaluated {
  Status status = Status::infeasible;
  std::string key;    ///< empty: infeasible
  std::string error;  ///< why it failed, or the constraint that refuses it
  int exit_code = 0;
  std::vector<double> objectives;  ///< in the order of the file, NaN where a metric is missing; empty unless ok
  bool cached = false;             ///< the store had it
};

/// How far an evaluation is.
struct Progress {
  std::size_t total = 0;  ///< points that may run
  std::size_t done = 0;   ///< of them, those that were in the store among them
  std::size_t cached = 0, failed = 0, lost = 0, refused = 0, running = 0;
  double elapsed_s = 0;
  std::size_t ran = 0;                               ///< runs now: points that are the same share one
  double cpu_s = 0, model_cpu_s = 0, process_s = 0;  ///< of them: CPU time, that of the simulation alone, wall time
};

/// Evaluates points of a sweep file, with the store as cache: what is there does not run again.
class Evaluator {
 public:
  struct Options {
    bool retry_failed = false;  ///< points that failed before run again
    std::string kind = "sweep";
    std::function<void(const Progress&)> progress;  ///< called often; may be empty
    std::function<void(const std::string& command, const Record&)>
        ended;                     ///< a point that did not end well; may be empty
    Executor* executor = nullptr;  ///< where points run; given by all
  };
  /// Notes the sweep in the store. `maker`: of `file`. `stop`: set when the user asks to end. The arguments outlive it.
  Evaluator(const SweepFile& file, PointMaker& maker, Store& store, Options options, const std::atomic<bool>& stop);

  /// Results in the order of `coordinates`. Points are numbered on from call to call; one that was asked for before
  /// keeps its number. Throws Interrupted; OutputError if the store cannot be written. Either leaves a whole store.
  std::vector<Evaluated> evaluate(const std::vector<Coordinates>& coordinates);
  std::vector<Evaluated> evaluate(std::vector<Point> points);

  /// Throws ConfigError, at the objective, if none of the points that ended well had one of its metrics.
  void check_objectives() const;

  const Progress& progress() const { return progress_; }

 private:
  class Batch;
  std::size_t position_of(const Point& point);
  std::vector<double> objectives_of(const Point& point, const std::map<std::string, double>& metrics);
  void report();

  const SweepFile& file_;
  Store& store_;
  Options options_;
  const std::atomic<bool>& stop_;
  PointMaker& maker_;
  Progress progress_;
  std::map<std::string, std::size_t> positions_;  // by coordinates
  double start_s_;
  std::vector<bool> seen_;                     // by objective: some point had its metrics
  std::map<std::string, double> any_metrics_;  // of the last point that ended well
};

}  // namespace kernbench::sweep
