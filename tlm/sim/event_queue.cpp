#include "tlm/sim/event_queue.h"

#include <cassert>
#include <stdexcept>
#include <string>

namespace kernbench {

void EventQueue::push(Ps time, std::uint32_t source, std::uint64_t sequence, const Callback& callback) {
  assert(time >= now_);
  if (source != sip_ && time < window_end_) throw_past(time);  // others may have relied on that
  std::uint32_t slot;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(callback);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = callback;
  }
  const Record record{time, (std::uint64_t{source} << 48) | sequence, slot};
  const bool earlier = heap_.empty() || time < heap_.front().time;
  heap_.push_back(record);
  std::size_t i = heap_.size() - 1;
  while (i > 0) {
    const std::size_t parent = (i - 1) / 4;
    if (!record.before(heap_[parent])) break;
    heap_[i] = heap_[parent];
    i = parent;
  }
  heap_[i] = record;
  if (earlier && wake_) wake_();
}

EventQueue::Record EventQueue::pop() {
  const Record top = heap_.front();
  const Record last = heap_.back();
  heap_.pop_back();
  const std::size_t n = heap_.size();
  if (n == 0) return top;
  std::size_t i = 0;
  for (;;) {
    const std::size_t first = 4 * i + 1;
    if (first >= n) break;
    std::size_t best = first;
    const std::size_t end = first + 4 < n ? first + 4 : n;
    for (std::size_t c = first + 1; c < end; ++c) {
      if (heap_[c].before(heap_[best])) best = c;
    }
    if (!heap_[best].before(last)) break;
    heap_[i] = heap_[best];
    i = best;
  }
  heap_[i] = last;
  return top;
}

// An event waits for memory more than for anything else: what the next one needs is fetched while this one runs, and
// of those that may follow it the call-backs.
void EventQueue::fetch_next() const {
  if (heap_.empty()) return;
  slots_[heap_.front().slot].fetch();
  const std::size_t end = std::min<std::size_t>(heap_.size(), 5);
  for (std::size_t i = 1; i < end; ++i) __builtin_prefetch(&slots_[heap_[i].slot]);
}

void EventQueue::run_instant(Ps time) {
  now_ = host_now_ = time;
  while (!heap_.empty() && heap_.front().time == time) {
    const Record record = pop();
    Callback callback = slots_[record.slot];
    free_slots_.push_back(record.slot);
    ++executed_;
    fetch_next();
    callback();
  }
}

void EventQueue::push_host(const HostEvent& event) {
  host_events_.push_back(event);
  std::push_heap(host_events_.begin(), host_events_.end(), later);
  if (wake_) wake_();
}

void EventQueue::run_host(Ps time) {
  advance_to(time);
  while (next_host() == time) {
    std::pop_heap(host_events_.begin(), host_events_.end(), later);
    Callback callback = host_events_.back().callback;
    host_events_.pop_back();
    ++executed_;
    callback();
  }
}

void EventQueue::delay_host(Ps time) {
  if (next_host() >= time) return;
  const auto sooner = [](const HostEvent& a, const HostEvent& b) { return later(b, a); };
  std::sort(host_events_.begin(), host_events_.end(), sooner);  // which is a heap, too
  for (HostEvent& event : host_events_) {
    if (event.time > time) break;
    event = {time, sequence_++, event.callback};
  }
}

Ps EventQueue::run_until(Ps end) {
  window_end_ = end;
  while (!heap_.empty() && heap_.front().time < end) run_instant(heap_.front().time);
  return now_;
}

void EventQueue::throw_past(Ps time) const {
  throw std::logic_error("an event for SIP " + std::to_string(sip_) + " at " + std::to_string(time) +
                         " ps, which has been run to " + std::to_string(std::max(now_, window_end_)) + " ps");
}

void EventQueue::run_all() {
  while (!heap_.empty() || !host_events_.empty()) {
    const Ps time = next_time(), host = next_host();
    if (host < time) {
      run_host(host);
    } else {
      run_instant(time);
    }
  }
}

}  // namespace kernbench
