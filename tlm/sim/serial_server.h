#pragma once
#include <deque>
#include <functional>
#include <utility>

#include "tlm/sim/event_queue.h"

namespace kernbench {

/// A resource that serves one job at a time: a job takes `cost`, then runs. Urgent jobs go before the others; a job in
/// service is not interrupted. For management CPUs: some commands per launch, not for hot paths.
class SerialServer {
 public:
  using Job = std::function<void()>;
  explicit SerialServer(EventQueue& queue) : queue_(queue) {}
  SerialServer(const SerialServer&) = delete;
  SerialServer& operator=(const SerialServer&) = delete;

  void add(Ps cost, Job job, bool urgent = false) {
    (urgent ? urgent_ : normal_).push_back({cost, std::move(job)});
    if (!busy_) serve();
  }
  bool busy() const { return busy_; }

  /// Called with (begin, end) of every service; for waves.
  void set_observer(std::function<void(Ps, Ps)> observer) { observer_ = std::move(observer); }

 private:
  struct Entry {
    Ps cost = 0;
    Job job;
  };
  void serve() {
    std::deque<Entry>& source = urgent_.empty() ? normal_ : urgent_;
    if (source.empty()) return;
    busy_ = true;
    current_ = std::move(source.front());
    source.pop_front();
    const Ps end = queue_.now() + current_.cost;
    if (observer_) observer_(queue_.now(), end);
    queue_.at(end, [this] {
      busy_ = false;
      const Job job = std::move(current_.job);
      job();
      if (!busy_) serve();
    });
  }

  EventQueue& queue_;
  bool busy_ = false;
  Entry current_;
  std::deque<Entry> urgent_, normal_;
  std::function<void(Ps, Ps)> observer_;
};

}  // namespace kernbench
