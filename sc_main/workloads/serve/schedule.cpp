#include "sc_main/workloads/serve/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace kernbench::serve {

namespace {
/// A sequence that runs.
struct Running {
  std::size_t request;
  std::int64_t positions;  ///< in its cache
  std::int64_t left;       ///< tokens to come
};
}  // namespace

void check_room(const std::vector<Request>& requests, const Limits& limits) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::int64_t need = requests[i].prompt + requests[i].output;
    if (need <= limits.positions) continue;
    throw std::invalid_argument(
        fmt::format("request {} needs {} positions of KV caches; there is room for {}", i + 1, need, limits.positions));
  }
}

Schedule serve(const std::vector<Request>& requests, const Limits& limits,
               const std::function<Cost(const Step&)>& cost_of) {
  Schedule schedule;
  schedule.served.resize(requests.size());
  std::vector<Running> running;
  std::int64_t held = 0;  // positions, of all that run
  std::size_t next = 0, arrived = 0;
  Ps now = 0;
  const auto take = [&](const Step& step) {
    const Cost cost = cost_of(step);
    Taken taken{step, now, now + static_cast<Ps>(std::llround(cost.time)), 0, cost};
    taken.waiting = static_cast<std::int64_t>(arrived - next) - (step.prefill ? 1 : 0);
    schedule.steps.push_back(taken);
    now = taken.end;
  };
  const auto gives_token = [&](std::size_t request, std::int64_t left) {
    if (left == requests[request].output - 1) schedule.served[request].first = now;
    if (left > 0) return false;
    schedule.served[request].last = now;
    held -= requests[request].prompt + requests[request].output;
    return true;
  };
  while (next < requests.size() || !running.empty()) {
    if (running.empty()) now = std::max(now, requests[next].arrival);
    while (arrived < requests.size() && requests[arrived].arrival <= now) ++arrived;
    const bool place = next < arrived && static_cast<std::int64_t>(running.size()) < limits.batch;
    if (place && held + requests[next].prompt + requests[next].output <= limits.positions) {
      const Request& request = requests[next];
      held += request.prompt + request.output;
      take({true, 1, static_cast<double>(request.prompt)});
      if (!gives_token(next, request.output - 1)) running.push_back({next, request.prompt, request.output - 1});
      ++next;
      continue;
    }
    double positions = 0;
    for (const Running& one : running) positions += static_cast<double>(one.positions);
    take({false, static_cast<std::int64_t>(running.size()), positions / static_cast<double>(running.size())});
    for (Running& one : running) {
      ++one.positions;
      --one.left;
    }
    running.erase(std::remove_if(running.begin(), running.end(),
                                 [&](const Running& one) { return gives_token(one.request, one.left); }),
                  running.end());
  }
  schedule.end = now;
  return schedule;
}

}  // namespace kernbench::serve
