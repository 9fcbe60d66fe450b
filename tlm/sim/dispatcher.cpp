#include "tlm/sim/dispatcher.h"

#include <algorithm>

#include "tlm/sim/main_stack.h"

namespace kernbench {

namespace {
Ps kernel_now() { return sc_core::sc_time_stamp().value(); }
}  // namespace

Dispatcher::Dispatcher(const sc_core::sc_module_name& name, unsigned sips) : sc_module(name) {
  for (unsigned sip = 0; sip < sips; ++sip) {
    queues_.emplace_back(sip);
    queues_.back().set_wake([this] { wake(); });
  }
  SC_METHOD(step);
  sensitive << event_;
  dont_initialize();
}

std::uint64_t Dispatcher::executed() const {
  std::uint64_t sum = 0;
  for (const EventQueue& queue : queues_) sum += queue.executed();
  return sum;
}

Ps Dispatcher::latest() const {
  Ps latest = now_;
  for (const EventQueue& queue : queues_) latest = std::max(latest, queue.now());
  return latest;
}

void Dispatcher::notify_host(sc_core::sc_event& event) {
  // Within an activation the models may be ahead of the kernel; the thread resumes at the models' instant.
  event.notify(sc_core::sc_time::from_value(stepping_ ? now_ - kernel_now() : 0));
  host_due_ = true;
}

void Dispatcher::synchronise() {
  const Ps time = kernel_now();
  if (time > now_) now_ = time;
  for (EventQueue& queue : queues_) queue.advance_to(now_);
}

Ps Dispatcher::earliest() const {
  Ps best = kNever;
  for (const EventQueue& queue : queues_) best = std::min(best, queue.next_time());
  return best;
}

Ps Dispatcher::next_host() const {
  Ps best = kNever;
  for (const EventQueue& queue : queues_) best = std::min(best, queue.next_host());
  return best;
}

void Dispatcher::wake() {
  if (!stepping_) schedule(std::min(earliest(), next_host()));
}

void Dispatcher::schedule(Ps time) {
  if (time != kNever) event_.notify(sc_core::sc_time::from_value(time - kernel_now()));
}

/// Up to when the queues may be run one after the other from `time` on; not after it: they must keep step.
Ps Dispatcher::window_end(Ps time, Ps horizon) const {
  if (lookahead_ == 0) return time;
  Ps end = std::min(time + lookahead_, horizon);
  if (limit_ != kNever) end = std::min(end, limit_ + 1);
  const Ps host = next_host();
  return host == kNever ? end : std::min(end, host + from_host_);
}

void Dispatcher::publish(Ps time) {
  published_now_.store(time, std::memory_order_relaxed);
  published_instants_.store(published_instants_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Dispatcher::run_models(Ps time, Ps horizon) {
  const Ps end = window_end(time, horizon);
  if (end > time) {
    for (EventQueue& queue : queues_) {
      if (queue.next_time() < end) now_ = std::max(now_, queue.run_until(end));
    }
    return;
  }
  now_ = time;
  for (EventQueue& queue : queues_) {
    if (queue.next_time() == time) queue.run_instant(time);
  }
}

void Dispatcher::run_host(Ps time) {
  now_ = time;
  for (EventQueue& queue : queues_) {
    if (queue.next_host() == time) queue.run_host(time);
  }
}

void Dispatcher::step() {
  back_on_main_stack();  // methods run there; a call-back may throw
  stepping_ = true;
  host_due_ = false;
  Ps horizon = kNever;  // first instant that belongs to another process
  if (sc_core::sc_pending_activity_at_current_time()) {
    horizon = 0;  // a host thread is due at this very instant: it must not find the models ahead of it
  } else if (sc_core::sc_pending_activity_at_future_time()) {
    horizon = kernel_now() + sc_core::sc_time_to_pending_activity().value();
  }
  for (;;) {
    const Ps models = earliest(), host = next_host(), time = std::min(models, host);
    if (time == kNever) break;
    if (time > limit_) {
      limit_reached_ = true;
      sc_core::sc_pause();
      break;
    }
    if ((time >= horizon && time > kernel_now()) || host_due_) {
      schedule(time);
      break;
    }
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) {
      stopped_ = true;
      sc_core::sc_pause();
      break;
    }
    if (host < models) {
      run_host(host);
    } else {
      run_models(models, horizon);
    }
    publish(now_);
  }
  stepping_ = false;
}

}  // namespace kernbench
