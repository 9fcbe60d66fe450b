#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/replay.h"
#include "runtime/replay_call.h"
#include "runtime/runtime_impl.h"

namespace kernbench {

Replay::Call& Replay::call_of(const Handle::State& state) {
  CallPtr& call = calls_[{state.order, state.call}];
  if (call != nullptr) return *call;
  call = std::make_shared<Call>();
  call->parts.resize(state.order->ranks().size());
  key_.clear();
  add_call_key(state);
  std::unique_ptr<Base>& base = bases_[key_];
  if (base == nullptr) {
    base = std::make_unique<Base>();
    base->number = intern("collective" + key_);
  }
  call->base = base.get();
  meet_others(*call, *state.order);
  for (std::size_t sip = 0; sip < sips_.size(); ++sip) {
    const std::vector<CallPtr>& on_links = sips_[sip].on_links;
    if (!on_links.empty() && !on_links.front()->going_on() && links_serve(sip, *state.order)) next_on_links(sip);
  }
  return *call;
}

void Replay::disturb(Call& call) {
  if (call.disturbed) return;
  call.disturbed = true;
  if (!call.repeats) return;
  call.expected->kind->refuse();
  ++report_.disturbed;
}

/// A member has ended its part of an earlier collective in which others are still at work, as the root of a broadcast:
/// the two are in the machine at once, and each takes as long as the other lets it.
void Replay::meet_others(Call& call, const CallOrder& order) {
  for (const Sip& sip : sips_) {
    if (sip.call == nullptr || !sip.call->going_on() ||
        std::count(order.ranks().begin(), order.ranks().end(), sip.user) == 0)
      continue;
    disturb(*sip.call);
    call.disturbed = true;
  }
}

/// Members whose batches took one time come at once, where each would have taken a time of its own: the collective
/// begins when the last of them would have come.
Ps Replay::wait_for_last(const Sip& sip, std::size_t members) const {
  if (sip.ended == nullptr || sip.ended->refused() || sip.ended_at != runtime_.dispatcher.now()) return 0;
  const std::uint64_t count = std::min<std::uint64_t>(members, sip.ended->width());
  return static_cast<Ps>(std::llround(last_of(count) * scatter_.share() * sip.ended->mean_time()));
}

/// A member has submitted its part and waits for it. The first decides whether all are held; those that are held when
/// another one does not come as expected go to the machine then.
void Replay::collective(const StatePtr& state) {
  Call& call = call_of(*state);
  Sip& sip = sip_of(*state);
  const Ps now = runtime_.dispatcher.now();
  Call::Part& part = call.enter(state, now);
  const Ps wait = part.wait = wait_for_last(sip, call.parts.size());
  key_.clear();
  add_key(*state);
  part.sip_state = intern(key_);
  if (call.here == 1) {
    call.before = sip.last;
    call.expected = call.base->expected(call.before);
    const Pattern* expected = call.expected;
    if (expected != nullptr && !call.disturbed && expected->kind->known() && says_enough(*expected->kind) &&
        !watched(*expected->kind, now, expected->last() + expected->tolerance() + wait)) {
      call.sample = sampled(*call.expected->kind);
      call.held = !call.sample;
    }
  }
  sip.call = calls_.at({state->order, state->call});
  sip.last = call.base->number;
  ++sip.busy;
  if (!call.held) {
    if (call.here == 1) links_begin(sip.call, *state->order);
    links_take(sip.call, static_cast<std::size_t>(state->sip));
    part.done = begin(batch_of({state}));
    if (wait == 0) return runtime_.port.transmit(state);
    runtime_.dispatcher.queue(static_cast<unsigned>(state->sip)).host_at(now + wait, [this, id = state->message->id] {
      const auto found = runtime_.messages.pending().find(id);
      if (found != runtime_.messages.pending().end()) runtime_.port.transmit(found->second);
    });
    return;
  }
  if (call.here == call.parts.size()) return all_here(call);
  if (call.here > 1) return;
  const Ps limit = now + call.expected->last() + call.expected->tolerance() + 1;
  runtime_.dispatcher.queue(static_cast<unsigned>(state->sip))
      .host_at(limit, [this, order = state->order, number = state->call] { too_late(order, number); });
}

/// That of a member, or one that no rank uses.
bool Replay::links_serve(std::size_t sip, const CallOrder& order) const {
  const int user = sips_[sip].user;
  return user < 0 || std::count(order.ranks().begin(), order.ranks().end(), user) > 0;
}

/// From when the first member comes, what passes over these links is the collective's, also what is on its way to
/// others, and credits that are still under way when the last member has ended: until the next one begins. Of several
/// at once it is that one's that came first, but for links_take().
void Replay::links_begin(const CallPtr& call, const CallOrder& order) {
  call->links.resize(sips_.size());
  for (std::size_t sip = 0; sip < sips_.size(); ++sip) {
    if (!links_serve(sip, order)) continue;
    std::vector<CallPtr>& on_links = sips_[sip].on_links;
    on_links.push_back(call);
    if (on_links.size() == 1) call->links[sip] = begin(links_of(sip));
  }
}

/// Its member on `sip` has come: links that are those of a call which still waits for its own member there, as a `recv`
/// of the next stage does while all_reduces of this one pass, are this call's until it ends.
void Replay::links_take(const CallPtr& call, std::size_t sip) {
  std::vector<CallPtr>& on_links = sips_[sip].on_links;
  const auto own = std::find(on_links.begin(), on_links.end(), call);
  if (own == on_links.end() || own == on_links.begin() || on_links.front()->has_come(static_cast<int>(sip))) return;
  call->links[sip] = std::move(on_links.front()->links[sip]);
  std::rotate(on_links.begin(), own, own + 1);
}

void Replay::links_end(const CallPtr& call) {
  for (std::size_t sip = 0; sip < call->links.size(); ++sip) {
    std::vector<CallPtr>& on_links = sips_[sip].on_links;
    const auto found = std::find(on_links.begin(), on_links.end(), call);
    if (found == on_links.end()) continue;
    if (found != on_links.begin())
      on_links.erase(found);
    else if (on_links.size() > 1 || call->kind == nullptr)
      next_on_links(sip);
  }
}

void Replay::next_on_links(std::size_t sip) {
  std::vector<CallPtr>& on_links = sips_[sip].on_links;
  const CallPtr call = on_links.front();
  end(static_cast<int>(sip), call->links[sip]);
  if (call->kind != nullptr)
    simulated(*call->kind, call->parts.size() + sip, call->links[sip], call->first, call->afresh);
  on_links.erase(on_links.begin());
  if (!on_links.empty()) on_links.front()->links[sip] = begin(links_of(sip));
}

void Replay::too_late(const CallOrder* order, std::size_t number) {
  const auto call = calls_.find({order, number});
  if (call != calls_.end() && call->second->held) release(*call->second);
}

namespace {
struct Coming {
  std::vector<Ps> skews;
  std::vector<std::uint64_t> states;
};
/// How much later the last begins, behind its wait, than the last of the pattern comes.
template <class Call>
std::int64_t lateness(const Call& call, Ps last) {
  Ps begins = 0;
  for (const auto& part : call.parts) begins = std::max(begins, part.start + part.wait - call.first);
  return static_cast<std::int64_t>(begins) - static_cast<std::int64_t>(last);
}
template <class Call>
Coming coming_of(const Call& call) {
  Coming coming;
  for (const auto& part : call.parts) {
    coming.skews.push_back(part.start - call.first);
    coming.states.push_back(part.sip_state);
  }
  return coming;
}
}  // namespace

void Replay::all_here(Call& call) {
  const Coming coming = coming_of(call);
  if (!call.expected->matches(coming.skews, coming.states)) return release(call);
  call.held = false;
  call.repeats = true;
  ReplayKind& kind = *call.expected->kind;
  takes_mean(kind, call.parts.size());
  const std::vector<ReplayTimes> times = kind.mean();
  const std::int64_t later = lateness(call, call.expected->last());
  Ps end = call.first;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Call::Part& part = call.parts[i];
    const ReplayTimes takes = shifted(times[i], later);
    waits(part.state);
    repeat(part.state, call.first, takes, {&kind, i});
    repeated(kind, i, batch_of({part.state}), part.start, call.first + takes.completed);
    end = std::max(end, call.first + takes.completed);
  }
  for (std::size_t sip = 0; sip < sips_.size(); ++sip) {
    if (links_serve(sip, *call.parts.front().state->order))
      repeated(kind, times.size() + sip, links_of(sip), call.first, end);
  }
}

/// Members came otherwise than expected: what was held goes to the machine, late by what it was held.
void Replay::release(Call& call) {
  call.held = false;
  call.disturbed = true;
  call.base->after[call.before] = nullptr;
  ++report_.disturbed;
  for (const Call::Part& part : call.parts) {
    if (part.state == nullptr || part.state->sent) continue;
    if (runtime_.messages.pending().count(part.state->message->id) != 0) runtime_.port.transmit(part.state);
  }
}

void Replay::part_ended(const StatePtr& state) {
  const auto found = calls_.find({state->order, state->call});
  if (found == calls_.end()) return;
  const CallPtr call = found->second;
  Call::Part& part = call->parts[call->place_of(*state)];
  part.ended = true;
  --call->left;
  if (!state->message->faults.empty()) call->disturbed = true;
  if (!call->repeats && !call->disturbed) {
    const auto& launch = std::get<LaunchMessage>(state->message->body);
    part.times = {launch.first_start - call->first, launch.last_end - call->first, state->completed - call->first};
    end(state->sip, part.done);
  }
  if (call->left > 0 || !state->order->complete(state->call)) return;
  calls_.erase(found);
  if (call->here == call->parts.size() && !call->repeats && !call->disturbed) learn(*call);
  links_end(call);
}

void Replay::learn(Call& call) {
  const Coming coming = coming_of(call);
  auto& patterns = call.base->patterns;
  const auto same = std::find_if(patterns.begin(), patterns.end(), [&](const std::unique_ptr<Pattern>& pattern) {
    return pattern->matches(coming.skews, coming.states);
  });
  Pattern* pattern = same == patterns.end() ? nullptr : same->get();
  if (pattern == nullptr) {
    ReplayKind& kind = make_kind(call.parts.front().state->name, ++numbered_, nullptr);
    pattern = patterns.emplace_back(std::make_unique<Pattern>(Pattern{coming.skews, coming.states, &kind})).get();
  }
  std::vector<ReplayTimes> times;
  Ps all = 0;
  const std::int64_t later = lateness(call, pattern->last());
  for (const Call::Part& part : call.parts) {
    times.push_back(shifted(part.times, -later));
    all = std::max(all, times.back().completed);
  }
  if (call.sample && pattern == call.expected) pattern->kind->check(static_cast<double>(all));
  const Ps last = pattern->last();
  const bool afresh = pattern->kind->add(times, last);
  Ps from = call.first;
  for (const Call::Part& part : call.parts) from = std::max(from, part.start);
  for (std::size_t i = 0; i < call.parts.size(); ++i) simulated(*pattern->kind, i, call.parts[i].done, from, afresh);
  call.kind = pattern->kind;
  call.afresh = afresh;
  learned(*pattern->kind, call.parts.size());
  call.base->after[call.before] = pattern;
  // One whose part ends before the last has come could not be held until then.
  if (std::any_of(times.begin(), times.end(), [&](const ReplayTimes& one) { return one.completed <= last; })) {
    pattern->kind->refuse();
  }
}

}  // namespace kernbench
