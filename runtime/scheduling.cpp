#include "runtime/scheduling.h"

#include <algorithm>

#include "runtime/runtime_impl.h"

namespace kernbench {

namespace {
bool all_done(const std::vector<Scheduling::StatePtr>& states) {
  return std::all_of(states.begin(), states.end(), [](const Scheduling::StatePtr& state) { return state->done; });
}

void add_waiter(Handle::State& state, int rank) {
  if (std::find(state.waiters.begin(), state.waiters.end(), rank) == state.waiters.end()) state.waiters.push_back(rank);
}

void wake_waiters(Scheduler& scheduler, Handle::State& state) {
  for (const int rank : state.waiters) scheduler.make_ready(rank);
  state.waiters.clear();
}
}  // namespace

void ConcurrentScheduling::submitted(const StatePtr& state) {
  const Line line{state->sip, state->message->stream};
  if (held_.count(line) == 0 && (!state->ready || state->ready())) return runtime_.port.send(state);
  held_[line].push_back(state);
}

/// What stands behind it in its stream follows.
void ConcurrentScheduling::readied() {
  for (auto line = held_.begin(); line != held_.end();) {
    std::deque<StatePtr>& behind = line->second;
    while (!behind.empty() && (!behind.front()->ready || behind.front()->ready())) {
      const StatePtr state = behind.front();
      behind.pop_front();
      runtime_.port.send(state);
    }
    line = behind.empty() ? held_.erase(line) : std::next(line);
  }
}

void ConcurrentScheduling::waited_for(const StatePtr& state, int rank) { add_waiter(*state, rank); }
void ConcurrentScheduling::completed(const StatePtr& state) {
  wake_waiters(runtime_.program.scheduler(), *state);
  readied();
}
void ConcurrentScheduling::satisfied(int rank) { runtime_.program.scheduler().make_ready(rank); }
void ConcurrentScheduling::barrier_passed(const std::string& barrier) { runtime_.program.scheduler().line_up(barrier); }

void RoundsScheduling::submitted(const StatePtr& state) {
  const auto line = held_.find({state->sip, state->message->stream});
  if (runtime_.program.single_driver()) {
    if (line == held_.end() && (!state->ready || state->ready())) return runtime_.port.send(state);
    held_[{state->sip, state->message->stream}].push_back(state);  // needs ranks that are not there
    return;
  }
  if (state->order == nullptr && line == held_.end()) return runtime_.port.send(state);
  held_[{state->sip, state->message->stream}].push_back(state);
  if (state->order == nullptr) return;
  const auto known = std::find_if(collectives_.begin(), collectives_.end(), [&](const Collective& collective) {
    return collective.order == state->order && collective.call == state->call;
  });
  if (known != collectives_.end()) {
    known->members.push_back(state);
  } else {
    collectives_.push_back({state->order, state->call, {state}});
  }
}

void RoundsScheduling::waited_for(const StatePtr& state, int rank) {
  if (runtime_.program.single_driver()) return add_waiter(*state, rank);
  announced(state);
}

void RoundsScheduling::announced(const StatePtr& state) {
  if (runtime_.program.single_driver()) return;
  if (state->order != nullptr || state->queued) return;  // a collective is in its own queue since its submission
  state->queued = true;
  waits_.push_back(state);
}

void RoundsScheduling::completed(const StatePtr& state) {
  wake_waiters(runtime_.program.scheduler(), *state);
  if (draining_ && all_done(target_)) runtime_.program.scheduler().poke();
}

/// It resumes with the others.
void RoundsScheduling::barrier_passed(const std::string& barrier) {
  runtime_.program.scheduler().give_up_turn(barrier, [] { return true; });
}

void RoundsScheduling::all_yielded() {
  if (draining_ && !all_done(target_)) return;
  draining_ = true;
  target_.clear();
  if (drain_waits() || drain_collectives()) return;
  draining_ = false;  // nothing drainable is left: the common resume point
  runtime_.program.scheduler().resume_satisfied();
}

/// Waits that are drainable, in order; false if there is none.
bool RoundsScheduling::drain_waits() {
  waits_.erase(std::remove_if(waits_.begin(), waits_.end(), [](const StatePtr& state) { return state->done; }),
               waits_.end());
  const auto first = std::find_if(waits_.begin(), waits_.end(), [](const StatePtr& state) { return state->sent; });
  if (first == waits_.end()) return false;
  target_ = {*first};
  return true;
}

bool RoundsScheduling::drain_collectives() {
  const auto ended = [](const Collective& collective) { return collective.released && all_done(collective.members); };
  collectives_.erase(std::remove_if(collectives_.begin(), collectives_.end(), ended), collectives_.end());
  auto next = std::find_if(collectives_.begin(), collectives_.end(), [](const Collective& c) { return c.released; });
  if (next == collectives_.end()) {
    next = std::find_if(collectives_.begin(), collectives_.end(), [&](const Collective& c) { return drainable(c); });
    if (next == collectives_.end()) return false;
    release(*next);
  }
  target_ = next->members;
  return true;
}

/// Every member of the group has submitted it and has its queues, and nothing that is held stands before it.
bool RoundsScheduling::drainable(const Collective& collective) const {
  if (!collective.order->complete(collective.call)) return false;
  return std::all_of(collective.members.begin(), collective.members.end(), [&](const StatePtr& state) {
    return (!state->ready || state->ready()) && held_.at({state->sip, state->message->stream}).front() == state;
  });
}

void RoundsScheduling::release(Collective& collective) {
  collective.released = true;
  for (const StatePtr& state : collective.members) {
    const auto line = held_.find({state->sip, state->message->stream});
    std::deque<StatePtr>& behind = line->second;
    do {
      runtime_.port.send(behind.front());
      behind.pop_front();
    } while (!behind.empty() && behind.front()->order == nullptr);
    if (behind.empty()) held_.erase(line);
  }
}

bool RoundsScheduling::starved() {
  // What the drain waits for needs another rank's doing, such as a kernel that receives from one that is not launched
  // yet: it was not drainable. Collectives that are go first, as ever; then the round ends without it.
  if (!draining_) return false;
  const auto next = std::find_if(collectives_.begin(), collectives_.end(),
                                 [&](const Collective& c) { return !c.released && drainable(c); });
  if (next != collectives_.end()) {
    release(*next);
    return true;
  }
  if (!runtime_.program.scheduler().any_satisfied()) return false;
  draining_ = false;
  runtime_.program.scheduler().resume_satisfied();
  return true;
}

void RoundsScheduling::clear() {
  waits_.clear();
  collectives_.clear();
  held_.clear();
  target_.clear();
  draining_ = false;
}

}  // namespace kernbench
