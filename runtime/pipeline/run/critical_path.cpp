#include <algorithm>
#include <map>

#include "runtime/pipeline/run/run.h"

namespace kernbench::pipeline {

std::vector<TaskTime> critical_path(const Checked& checked, const RunOutcome& outcome) {
  std::map<const SuperTask*, TaskTime> times;
  std::map<const SuperTask*, const SuperTask*> before;  // on the same slot
  const TaskTime* last = nullptr;
  for (const auto& slot : outcome.slots) {
    for (std::size_t i = 0; i < slot.size(); ++i) {
      times[slot[i].task] = slot[i];
      before[slot[i].task] = i == 0 ? nullptr : slot[i - 1].task;
      if (last == nullptr || slot[i].end > last->end) last = &slot[i];
    }
  }
  std::vector<TaskTime> path;
  const SuperTask* at = last == nullptr ? nullptr : last->task;
  while (at != nullptr) {
    // An exchange begins with its last member, and lasts until the path goes on.
    const SuperTask* latest = at;
    if (at->group.given) {
      for (const SuperTask* member : checked.groups.at(at->group.value)) {
        if (times.count(member) > 0 && times[member].begin > times[latest].begin) latest = member;
      }
    }
    path.push_back({latest, times[latest].begin, times[at].end});
    at = before[latest];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace kernbench::pipeline
