#include "tlm/sim/dispatcher.h"

#include <numeric>
#include <utility>

#include "tlm/sim/annotation.h"
#include "tlm/sim/main_stack.h"

namespace kernbench {

namespace {
/// In ways from the host: as far as a queue may be ahead of the last one. Signals are looked for between windows, and a
/// promise that is not kept delays what the host hears by up to two ways less (Dispatcher::too_far).
constexpr Ps kLongestWindow = 8;

bool in_a_thread() { return sc_core::sc_get_current_process_handle().proc_kind() == sc_core::SC_THREAD_PROC_; }

Ps after(Ps time, Ps span) { return time == kNever ? kNever : time + span; }

/// Colours queues so that neighbours differ where two colours are enough; by colour, then by number.
std::vector<unsigned> by_turns(const std::vector<std::vector<Dispatcher::Neighbour>>& neighbours) {
  std::vector<int> colour(neighbours.size(), -1);
  for (unsigned first = 0; first < neighbours.size(); ++first) {
    if (colour[first] >= 0) continue;
    colour[first] = 0;
    for (std::deque<unsigned> reached{first}; !reached.empty(); reached.pop_front()) {
      for (const Dispatcher::Neighbour& next : neighbours[reached.front()]) {
        if (colour[next.queue] >= 0) continue;
        colour[next.queue] = 1 - colour[reached.front()];
        reached.push_back(next.queue);
      }
    }
  }
  std::vector<unsigned> turns(neighbours.size());
  std::iota(turns.begin(), turns.end(), 0U);
  std::stable_sort(turns.begin(), turns.end(), [&](unsigned a, unsigned b) { return colour[a] < colour[b]; });
  return turns;
}
}  // namespace

Dispatcher::Dispatcher(const sc_core::sc_module_name& name, unsigned sips) : sc_module(name) {
  for (unsigned sip = 0; sip < sips; ++sip) {
    queues_.emplace_back(sip);
    queues_.back().set_wake([this] { wake(); });
    queues_.back().set_activity(&activity_);
  }
  SC_METHOD(step);
  sensitive << event_;
  dont_initialize();
}

void Dispatcher::set_lookahead(std::vector<std::vector<Neighbour>> neighbours, Ps host) {
  windows_.clear();
  const auto at_once = [](const std::vector<Neighbour>& list) {
    return std::any_of(list.begin(), list.end(), [](const Neighbour& neighbour) { return neighbour.latency == 0; });
  };
  if (host == 0 || std::any_of(neighbours.begin(), neighbours.end(), at_once)) return;
  from_host_ = host;
  turns_ = by_turns(neighbours);
  for (std::vector<Neighbour>& list : neighbours) windows_.push_back({std::move(list)});
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
  if (ahead_ > kernel_now() && !stepping_ && in_a_thread())
    sc_core::wait(sc_core::sc_time::from_value(ahead_ - kernel_now()));
  catch_up();
}

void Dispatcher::catch_up() {
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

/// From when on the host's answers to what it will hear can be felt, and what it may hear so is a window's longest.
Ps Dispatcher::reach_of_host() const {
  Ps heard = kNever, first = kNever;
  for (unsigned i = 0; i < windows_.size(); ++i) {
    const Ps end = windows_[i].end;
    const Ps tells = after(std::max(end, queues_[i].silent_until()), from_host_);
    heard = std::min({heard, queues_[i].next_host(), tells});
    first = std::min(first, end);
  }
  return std::min(after(heard, from_host_), first + kLongestWindow * from_host_);
}

void Dispatcher::publish(Ps time) {
  published_now_.store(time, std::memory_order_relaxed);
  published_instants_.store(published_instants_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Dispatcher::run_instant(Ps time) {
  now_ = time;
  for (EventQueue& queue : queues_) {
    if (queue.next_time() == time) queue.run_instant(time);
  }
}

/// One window of each queue: up to when nothing that another one or the host has still to make can reach it. REQUIRES:
/// time == earliest() < horizon.
void Dispatcher::run_windows(Ps time, Ps horizon) {
  for (Window& window : windows_) window.end = std::max(window.end, time);
  const Ps last = std::min({horizon, after(limit_, 1), reach_of_host()});
  for (const unsigned i : turns_) {
    Window& window = windows_[i];
    Ps end = last;
    for (const Neighbour& neighbour : window.neighbours)
      end = std::min(end, windows_[neighbour.queue].end + neighbour.latency);
    if (end <= window.end) continue;
    window.end = end;
    now_ = std::max(now_, queues_[i].run_until(end));
  }
}

/// The host's answer to what it hears before that would reach a queue in its past: a queue has not kept its promise.
Ps Dispatcher::too_far() const {
  Ps furthest = 0;
  for (const Window& window : windows_) furthest = std::max(furthest, window.end);
  return furthest - std::min(furthest, from_host_);
}

void Dispatcher::run_host(Ps time) {
  if (const Ps later = too_far(); later > time) {
    for (EventQueue& queue : queues_) queue.delay_host(later);
    return;
  }
  now_ = time;
  for (EventQueue& queue : queues_) {
    if (queue.next_host() == time) queue.run_host(time);
  }
}

/// Nothing is left, in the models or elsewhere: whoever goes on, such as the host in the middle of a round, does so
/// behind all of it, as if the queues had kept step.
void Dispatcher::settle() {
  now_ = latest();
  for (Window& window : windows_) window.end = now_;
  for (EventQueue& queue : queues_) queue.end_window();
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
    if (time == kNever) {
      if (horizon == kNever && !host_due_) settle();
      break;
    }
    if (time > limit_) {
      limit_reached_ = true;
      sc_core::sc_pause();
      break;
    }
    if ((time >= horizon && time > kernel_now()) || host_due_) {
      schedule(time);
      break;
    }
    if (stop_wanted()) {
      stopped_ = true;
      sc_core::sc_pause();
      break;
    }
    if (host < models) {
      run_host(host);
    } else if (windows_.empty() || time >= horizon) {
      run_instant(time);
    } else {
      run_windows(time, horizon);
    }
    publish(now_);
  }
  stepping_ = false;
}

}  // namespace kernbench
