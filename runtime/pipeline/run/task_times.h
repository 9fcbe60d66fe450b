#pragma once
#include <vector>

#include "runtime/pipeline/run/run.h"
#include "runtime/tp/pass.h"

namespace kernbench::pipeline {

/// What a slot launches, and when its tasks begin and end. Launches go to the slot's stream one behind the other; a
/// task begins when the one before has ended, and ends with its last launch, or with what the slot has waited for
/// behind that.
class TaskTimes {
 public:
  explicit TaskTimes(Context& context) : context_(context) {}

  void begin();  ///< the tasks of a request
  void launched(const Handle& launch);
  void wait();                       ///< for all launches: before what is none of the slot's stream
  void ends(const SuperTask& task);  ///< it has submitted all that it launches
  /// Waits for all; times of the tasks from `start` on.
  std::vector<TaskTime> finish(Ps start);

 private:
  struct Ended {
    const SuperTask* task;
    Handle last;  ///< an empty handle: what came behind launches was waited for
    Ps now;
  };
  Context& context_;
  tp::LaunchesUnderWay launches_;
  std::vector<Ended> ended_;
  Handle last_;  ///< of the task
  Ps begin_ = 0;
};

}  // namespace kernbench::pipeline
