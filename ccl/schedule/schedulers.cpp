#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <random>
#include <set>
#include <tuple>

#include <systemc>
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

/// Followers of every task and how many must come before it.
struct Dependencies {
  std::vector<std::int32_t> first, after;  ///< followers of task i: after[first[i] .. first[i + 1])
  std::vector<std::int32_t> waits;

  explicit Dependencies(const TaskGraph& graph)
      : first(graph.tasks().size() + 1, 0), after(graph.edges().size()), waits(graph.tasks().size(), 0) {
    for (const auto& edge : graph.edges()) {
      ++first[index(edge.first) + 1];
      ++waits[index(edge.second)];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int32_t> fill(first.begin(), first.end() - 1);
    for (const auto& edge : graph.edges()) after[index(fill[index(edge.first)]++)] = edge.second;
  }
  template <class F>
  void followers(std::int32_t task, F&& f) const {
    for (std::int32_t i = first[index(task)]; i < first[index(task) + 1]; ++i) f(after[index(i)]);
  }
};

/// Directed resources that a task holds while it is sent.
struct Resources {
  std::int32_t count = 0;
  std::vector<std::int32_t> first, second;  ///< by task; second -1: none; local tasks: both -1

  Resources(const TaskGraph& graph, bool ports) {
    const Fabric& fabric = graph.fabric();
    count = ports ? 2 * fabric.nodes() : 2 * fabric.resources();
    for (const Task& task : graph.tasks()) {
      if (task.arc < 0) {
        first.push_back(-1);
        second.push_back(-1);
      } else if (ports) {
        first.push_back(task.from);
        second.push_back(fabric.nodes() + task.to);
      } else {
        first.push_back(2 * fabric.link(task.arc).resource + task.arc % 2);
        second.push_back(-1);
      }
    }
  }
};

std::int64_t latency(const TaskGraph& graph, std::int32_t task) {
  const std::int32_t arc = graph.tasks()[index(task)].arc;
  return arc < 0 ? 0 : graph.ticks(task) + graph.fabric().link(arc).lambda;
}

/// Longest time from the start of a task to the end of what depends on it.
std::vector<std::int64_t> remaining(const TaskGraph& graph, const Dependencies& deps) {
  std::vector<std::int32_t> order, waits = deps.waits;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i] == 0) order.push_back(static_cast<std::int32_t>(i));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    deps.followers(order[i], [&](std::int32_t next) {
      if (--waits[index(next)] == 0) order.push_back(next);
    });
  }
  std::vector<std::int64_t> left(waits.size(), 0);
  for (auto task = order.rbegin(); task != order.rend(); ++task) {
    std::int64_t longest = 0;
    deps.followers(*task, [&](std::int32_t next) { longest = std::max(longest, left[index(next)]); });
    left[index(*task)] = longest + latency(graph, *task);
  }
  return left;
}

/// The event loop of list_schedule.
class ListScheduler {
 public:
  ListScheduler(const TaskGraph& graph, bool ports)
      : graph_(graph),
        deps_(graph),
        resources_(graph, ports),
        waiting_(index(resources_.count)),
        free_at_(index(resources_.count), 0),
        waits_(deps_.waits) {
    times_.start.assign(graph.tasks().size(), 0);
  }

  Times run() {
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i] != 0) continue;
      const auto task = static_cast<std::int32_t>(i);
      if (const std::int64_t release = graph_.tasks()[i].release; release > 0) {
        events_.emplace(release, task, Event::released);
      } else {
        ready(task, 0);
      }
    }
    start_what_can(0);
    while (!events_.empty()) {
      const std::int64_t now = std::get<0>(events_.top());
      while (!events_.empty() && std::get<0>(events_.top()) == now) {
        const std::int32_t task = std::get<1>(events_.top());
        const Event event = std::get<2>(events_.top());
        events_.pop();
        if (event == Event::released) {
          ready(task, now);
        } else if (event == Event::arrives) {
          arrived(task, now);
        } else {
          touch(resources_.first[index(task)]);
          if (resources_.second[index(task)] >= 0) blocked_.push_back(task);
        }
      }
      start_what_can(now);
    }
    return times_;
  }

 private:
  using Entry = std::pair<std::int64_t, std::int32_t>;  // priority, task
  enum class Event : std::uint8_t { frees_its_resources, arrives, released };
  using TimedEvent = std::tuple<std::int64_t, std::int32_t, Event>;  // time, task
  void touch(std::int32_t resource) { touched_.push_back(resource); }

  void ready(std::int32_t task, std::int64_t now) {
    const std::int32_t resource = resources_.first[index(task)];
    if (resource < 0) {
      times_.start[index(task)] = now;
      arrived(task, now);
      return;
    }
    waiting_[index(resource)].emplace(graph_.tasks()[index(task)].priority, task);
    touch(resource);
  }

  void arrived(std::int32_t task, std::int64_t now) {
    times_.length = std::max(times_.length, now);
    deps_.followers(task, [&](std::int32_t next) {
      if (--waits_[index(next)] == 0) ready(next, now);
    });
  }

  void start(std::int32_t task, std::int64_t now) {
    const std::int64_t until = now + graph_.ticks(task);
    times_.start[index(task)] = now;
    free_at_[index(resources_.first[index(task)])] = until;
    if (resources_.second[index(task)] >= 0) free_at_[index(resources_.second[index(task)])] = until;
    events_.emplace(until, task, Event::frees_its_resources);
    events_.emplace(now + latency(graph_, task), task, Event::arrives);
  }

  void start_what_can(std::int64_t now) {
    // A port of a receiver that became free may be what any sender waits for.
    if (!blocked_.empty()) {
      blocked_.clear();
      for (std::int32_t r = 0; r < resources_.count; ++r) touch(r);
    }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::int32_t resource : touched_) {
      auto& queue = waiting_[index(resource)];
      if (free_at_[index(resource)] > now) continue;
      for (auto entry = queue.begin(); entry != queue.end(); ++entry) {
        const std::int32_t other = resources_.second[index(entry->second)];
        if (other >= 0 && free_at_[index(other)] > now) continue;
        start(entry->second, now);
        queue.erase(entry);
        break;
      }
    }
    touched_.clear();
  }

  const TaskGraph& graph_;
  const Dependencies deps_;
  const Resources resources_;
  std::vector<std::set<Entry>> waiting_;  ///< ready, by directed resource
  std::vector<std::int64_t> free_at_;
  std::vector<std::int32_t> waits_;
  std::vector<std::int32_t> touched_, blocked_;
  std::priority_queue<TimedEvent, std::vector<TimedEvent>, std::greater<>> events_;
  Times times_;
};

/// Occupied ticks of one directed resource in a period.
class Reservation {
 public:
  explicit Reservation(std::int64_t period) : taken_(static_cast<std::size_t>(period), false) {}
  bool free(std::int64_t start, std::int64_t ticks) const {
    for (std::int64_t t = start; t < start + ticks; ++t) {
      if (taken_[static_cast<std::size_t>(t % static_cast<std::int64_t>(taken_.size()))]) return false;
    }
    return true;
  }
  void take(std::int64_t start, std::int64_t ticks) {
    if (phase < 0) phase = start % ticks;
    for (std::int64_t t = start; t < start + ticks; ++t) {
      taken_[static_cast<std::size_t>(t % static_cast<std::int64_t>(taken_.size()))] = true;
    }
  }
  /// First start used: others keep to its grid, without which a slow link's table fragments.
  std::int64_t phase = -1;

 private:
  std::vector<bool> taken_;
};

/// Smallest period that every resource can keep, and a multiple of every message time.
std::int64_t smallest_period(const TaskGraph& graph, const Resources& resources) {
  std::vector<std::int64_t> load(index(resources.count), 0), each = load;
  std::int64_t multiple = 1;
  for (std::size_t i = 0; i < graph.tasks().size(); ++i) {
    if (resources.first[i] < 0) continue;
    const std::int64_t ticks = graph.ticks(static_cast<std::int32_t>(i));
    std::int64_t& same = each[index(resources.first[i])];
    if (same == 0) same = ticks;
    sc_assert(same == ticks);  // a table of unequal chunks may have no place left for the last one
    load[index(resources.first[i])] += ticks;
    multiple = std::lcm(multiple, ticks);
  }
  const std::int64_t most = load.empty() ? 1 : *std::max_element(load.begin(), load.end());
  return std::max<std::int64_t>((most + multiple - 1) / multiple * multiple, multiple);
}

Times modulo_once(const TaskGraph& graph, const Dependencies& deps, const Resources& resources,
                  const std::vector<std::int64_t>& left, std::int64_t period, std::uint32_t seed) {
  Times times;
  times.period = period;
  times.start.assign(graph.tasks().size(), 0);
  std::mt19937 engine(seed);
  std::vector<Reservation> tables(index(resources.count), Reservation(period));
  std::vector<std::int32_t> waits = deps.waits;
  std::vector<std::int64_t> at(waits.size(), 0);
  using Entry = std::tuple<std::int64_t, std::int64_t, std::uint32_t, std::int32_t>;  // ready, -remaining, tie, task
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto push = [&](std::int32_t task, std::int64_t ready) {
    queue.emplace(ready, -left[index(task)], static_cast<std::uint32_t>(engine()), task);
  };
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i] == 0) push(static_cast<std::int32_t>(i), 0);
  }
  while (!queue.empty()) {
    auto [ready, rest, tie, task] = queue.top();
    queue.pop();
    const std::int32_t resource = resources.first[index(task)];
    if (resource >= 0) {
      const std::int64_t ticks = graph.ticks(task);
      Reservation& table = tables[index(resource)];
      const bool in_phase = ticks == 1 || table.phase < 0 || ready % ticks == table.phase;
      if (!in_phase || !table.free(ready, ticks)) {
        queue.emplace(ready + 1, rest, tie, task);
        continue;
      }
      table.take(ready, ticks);
    }
    times.start[index(task)] = ready;
    const std::int64_t there = ready + latency(graph, task);
    times.length = std::max(times.length, there);
    deps.followers(task, [&](std::int32_t next) {
      at[index(next)] = std::max(at[index(next)], there);
      if (--waits[index(next)] == 0) push(next, at[index(next)]);
    });
  }
  return times;
}

}  // namespace

Times list_schedule(const TaskGraph& graph, bool ports) { return ListScheduler(graph, ports).run(); }

Times modulo_schedule(const TaskGraph& graph, int tries, std::int64_t least_period) {
  const Dependencies deps(graph);
  const Resources resources(graph, false);
  const auto left = remaining(graph, deps);
  const std::int64_t period = std::max(smallest_period(graph, resources), least_period);
  Times best;
  for (int i = 0; i < std::max(tries, 1); ++i) {
    Times times = modulo_once(graph, deps, resources, left, period, static_cast<std::uint32_t>(i + 1));
    if (i == 0 || times.length < best.length) best = std::move(times);
  }
  return best;
}

}  // namespace kernbench::ccl
