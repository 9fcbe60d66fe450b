#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/runtime_impl.h"

namespace kernbench {

namespace {
constexpr const char* kPromise = "promise";
constexpr Ps kLastInstant = kNever / 2;  ///< 106 days; what is beyond was a negative number, or leads past the end
}  // namespace

Messages::StatePtr Messages::own_handle(int rank, std::string kind, std::string name) {
  runtime_.program.check_open();
  runtime_.dispatcher.synchronise();
  auto state = std::make_shared<Handle::State>();
  state->kind = std::move(kind);
  state->name = std::move(name);
  state->rank = rank;
  state->sip = std::max(runtime_.program.device(rank), 0);
  state->submitted = runtime_.dispatcher.now();
  return state;
}

Messages::StatePtr Messages::start_timer(int rank, Ps time, std::string name) {
  auto state = own_handle(rank, "timer", std::move(name));
  if (time > kLastInstant - std::min(state->submitted, kLastInstant)) {
    throw std::invalid_argument(
        fmt::format("timer '{}': {} ps from {} ps on end beyond the clock's last instant, {} ps", state->name, time,
                    state->submitted, kLastInstant));
  }
  state->sent = true;  // it completes by itself: a drain may wait for it
  const std::uint64_t number = next_timer_++;
  timers_.emplace(number, state);
  runtime_.dispatcher.queue(static_cast<unsigned>(state->sip)).host_at(state->submitted + time, [this, number] {
    const auto found = timers_.find(number);
    const StatePtr due = found->second;
    timers_.erase(found);
    retire(due);
  });
  return state;
}

void Messages::retire(const StatePtr& state) {
  runtime_.dispatcher.activity().completed();
  state->done = true;
  state->completed = runtime_.dispatcher.now();
  runtime_.program.scheduling().completed(state);
  runtime_.program.notify_main(state);
}

std::size_t Messages::await_any(const std::vector<StatePtr>& states) {
  const auto is_done = [](const StatePtr& state) { return state->done; };
  const auto first = [&] { return std::find_if(states.begin(), states.end(), is_done); };
  if (first() == states.end()) {
    runtime_.program.check_open();
    const int rank = runtime_.program.scheduler().current();
    if (rank < 0) throw std::logic_error("wait_any: only a worker can wait for one of several handles");
    std::string text = states.front()->describe();
    if (states.size() > 1) text += fmt::format(", or one of {} more", states.size() - 1);
    for (const auto& state : states) runtime_.program.scheduling().waited_for(state, rank);
    runtime_.program.scheduler().wait(text, [&] { return first() != states.end(); });
  }
  return static_cast<std::size_t>(first() - states.begin());
}

std::size_t Context::wait_any(const std::vector<Handle>& handles) {
  if (handles.empty()) throw std::invalid_argument("wait_any: no handles");
  std::vector<std::shared_ptr<Handle::State>> states;
  for (const Handle& handle : handles) {
    if (!handle) throw std::invalid_argument("wait_any: a handle is empty");
    states.push_back(handle.state_);
  }
  const std::size_t place = runtime_.messages.await_any(states);
  runtime_.messages.throw_fault(*states[place]);
  return place;
}

Handle Context::timer(Ps time, const std::string& name) {
  return Handle(runtime_.messages.start_timer(rank_, time, name));
}

Handle Context::promise(const std::string& name) { return Handle(runtime_.messages.own_handle(rank_, kPromise, name)); }

void Context::fulfil(const Handle& promise) {
  if (!promise || promise.state().kind != kPromise) throw std::invalid_argument("fulfil: the handle is no promise");
  if (promise.done()) throw std::logic_error("fulfil: " + promise.state().describe() + " is complete already");
  runtime_.dispatcher.synchronise();
  runtime_.messages.retire(promise.state_);
}

}  // namespace kernbench
