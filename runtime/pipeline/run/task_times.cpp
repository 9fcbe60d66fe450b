#include "runtime/pipeline/run/task_times.h"

#include <algorithm>

namespace kernbench::pipeline {

void TaskTimes::begin() {
  ended_.clear();
  last_ = Handle();
  begin_ = context_.now();
}

void TaskTimes::launched(const Handle& launch) {
  launches_.handles.push_back(launch);
  last_ = launch;
}

void TaskTimes::wait() {
  launches_.wait(context_);
  last_ = Handle();
}

void TaskTimes::ends(const SuperTask& task) {
  ended_.push_back({&task, last_, context_.now()});
  last_ = Handle();
}

std::vector<TaskTime> TaskTimes::finish(Ps start) {
  launches_.wait(context_);
  std::vector<TaskTime> times;
  Ps begin = begin_;
  for (const Ended& task : ended_) {
    const Ps end = std::max(begin, task.last ? task.last.completed() : task.now);
    times.push_back({task.task, begin - start, end - start});
    begin = end;
  }
  return times;
}

}  // namespace kernbench::pipeline
