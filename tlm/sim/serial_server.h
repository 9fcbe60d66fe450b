#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "tlm/observe/cause.h"
#include "tlm/observe/observer.h"
#include "tlm/observe/usage.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

/// A resource that serves one job at a time: a job takes `cost`, then runs. Urgent jobs go before the others; a job in
/// service is not interrupted. For management CPUs: some commands per launch, not for hot paths.
class SerialServer {
 public:
  using Job = std::function<void()>;
  /// `name`: structural.
  SerialServer(EventQueue& queue, std::string name) : queue_(queue), name_(std::move(name)) {}
  SerialServer(const SerialServer&) = delete;
  SerialServer& operator=(const SerialServer&) = delete;

  void add(Ps cost, Job job, bool urgent = false) {
    (urgent ? urgent_ : normal_)
        .push_back(
            {cost, queue_.now(), std::move(job), queue_.causes() == nullptr ? Cause() : queue_.causes()->current});
    served_.most_waiting = std::max<std::uint64_t>(served_.most_waiting, urgent_.size() + normal_.size());
    if (served_.usage != nullptr) served_.usage->level(urgent_.size() + normal_.size(), queue_.now());
    if (!busy_) serve();
  }
  bool busy() const { return busy_; }

  /// What it has served so far.
  struct Served {
    std::uint64_t jobs = 0;
    Ps busy = 0;
    std::uint64_t most_waiting = 0;
    Usage* usage = nullptr;  ///< over time; null: nobody wants it
  };
  Served& served() { return served_; }

  /// Shows on a track of its own when it is busy.
  void observe(Observer* observer) {
    if (observer != nullptr) track_ = observer->add_track(name_ + ".state", TrackKind::state, {"idle", "busy"});
    observer_ = track_ == kNoTrack ? nullptr : observer;
  }

 private:
  struct Entry {
    Ps cost = 0, since = 0;
    Job job;
    Cause cause;
  };
  void serve() {
    std::deque<Entry>& source = urgent_.empty() ? normal_ : urgent_;
    if (source.empty()) return;
    busy_ = true;
    current_ = std::move(source.front());
    source.pop_front();
    const Ps end = queue_.now() + current_.cost;
    ++served_.jobs;
    served_.busy += current_.cost;
    if (served_.usage != nullptr) {
      if (current_.since < queue_.now()) served_.usage->wait(current_.since, queue_.now());
      served_.usage->busy(queue_.now(), end, 0, 1);
    }
    if (observer_ != nullptr) observer_->interval(track_, queue_.now(), end, 1);
    if (CauseLog* log = queue_.causes()) {
      const std::uint32_t place = log->place(place_, [this] { return name_; });
      current_.cause = log->step(Spent::command_wait, place, queue_.now(), current_.cause);
      current_.cause = log->step(Spent::command, place, end, current_.cause);
    }
    queue_.at(end, [this] {
      busy_ = false;
      const Job job = std::move(current_.job);
      if (CauseLog* log = queue_.causes()) log->current = std::move(current_.cause);
      job();
      if (!busy_) serve();
    });
  }

  EventQueue& queue_;
  bool busy_ = false;
  Entry current_;
  std::deque<Entry> urgent_, normal_;
  Observer* observer_ = nullptr;
  TrackId track_ = kNoTrack;
  Served served_;
  const std::string name_;
  CausePlace place_;
};

}  // namespace kernbench
