#include "runtime/replay.h"

#include <algorithm>
#include <utility>

#include "runtime/replay_call.h"
#include "runtime/runtime_impl.h"
#include "tlm/sim/random.h"

namespace kernbench {

Replay::Replay(RuntimeImpl& runtime, ReplayOptions options)
    : runtime_(runtime), options_(std::move(options)), sips_(runtime.map.sips) {}

Replay::~Replay() = default;

Replay::Sip& Replay::sip_of(const Handle::State& state) { return sips_[static_cast<std::size_t>(state.sip)]; }

namespace {
bool is_mapping(const Handle::State& state) { return std::holds_alternative<MmuMapMessage>(state.message->body); }
}  // namespace

/// A launch, or what maps a new tensor: nobody has used its addresses, so that no TLB has to forget them.
bool Replay::may_repeat(const Handle::State& state) const {
  if (is_mapping(state)) return options_.map && !state.uses.empty();
  return std::holds_alternative<LaunchMessage>(state.message->body);
}

bool Replay::take(const StatePtr& state) {
  Sip& sip = sip_of(*state);
  if (sip.user != state->rank) {
    sip.shared = sip.shared || sip.user >= 0;
    sip.user = state->rank;
  }
  const bool own_turn = runtime_.program.scheduler().current() == state->rank;
  if (own_turn && may_repeat(*state) && !sip.shared && !runtime_.messages.reach_known()) {
    held_.push_back(state);
    return true;
  }
  flush();
  begins(state);
  return false;
}

void Replay::flush() {
  if (held_.empty()) return;
  std::vector<StatePtr> states;
  states.swap(held_);
  for (const StatePtr& state : states) go(state);
}

/// It goes to the machine, and whatever is under way on its SIP meets it.
void Replay::begins(const StatePtr& state) {
  Sip& sip = sip_of(*state);
  for (const FlightPtr& flight : sip.flights) {
    if (flight->disturbed) continue;
    flight->disturbed = true;
    flight->kind->refuse();
    if (!flight->simulated) ++report_.disturbed;
  }
  if (sip.call != nullptr && sip.call->under_way(state->sip)) disturb(*sip.call);
  ++sip.busy;
  sip.last = 0;
  if (state->order == nullptr) return;
  Call& call = call_of(*state);
  if (call.held) release(call);
  call.disturbed = true;
  call.enter(state, runtime_.dispatcher.now());
  sip.call = calls_.at({state->order, state->call});
}

void Replay::go(const StatePtr& state) {
  begins(state);
  runtime_.port.transmit(state);
}

/// What is held is of one SIP and one stream, ends with what is waited for, and needs nobody else.
bool Replay::is_batch(const StatePtr& awaited) const {
  if (held_.back() != awaited) return false;
  const Handle::State& last = *awaited;
  if (sips_[static_cast<std::size_t>(last.sip)].busy != 0) return false;
  if (last.order != nullptr || is_mapping(last)) return held_.size() == 1;
  return std::all_of(held_.begin(), held_.end(), [&](const StatePtr& state) {
    return state->sip == last.sip && state->message->stream == last.message->stream && state->order == nullptr &&
           state->alone;
  });
}

void Replay::awaits(const StatePtr& state) {
  if (held_.empty()) return;
  if (!is_batch(state)) return flush();
  if (state->order == nullptr) return batch();
  held_.clear();
  collective(state);
}

void Replay::batch() {
  const auto flight = std::make_shared<Flight>();
  flight->states.swap(held_);
  flight->times.resize(flight->states.size());
  flight->left = flight->states.size();
  flight->sip = flight->states.front()->sip;
  flight->batch = batch_of(flight->states);
  flight->start = runtime_.dispatcher.now();
  Sip& sip = sip_of(*flight->states.front());
  key_.clear();
  const Handle::State& last = *flight->states.back();
  const bool mapping = is_mapping(last);
  if (mapping) add_mapping(last);
  for (const StatePtr& state : flight->states) {
    if (!mapping) add_key(*state);
  }
  ReplayKind*& kind = batches_[key_];
  if (kind == nullptr) {
    kind = mapping ? &make_kind(last.name, 0, nullptr) : &make_kind(last.name, ++numbered_, family_of(flight->states));
  }
  flight->kind = kind;
  sip.last = kind->number();
  sip.busy += static_cast<unsigned>(flight->states.size());
  sip.flights.push_back(flight);
  for (const StatePtr& state : flight->states) flights_.emplace(state->message->id, flight);

  if (!kind->refused() && !watched(*kind, flight->start)) {
    const auto leader = leaders_.find(kind);
    if (leader != leaders_.end() && !leader->second->disturbed) return follow(leader->second, flight);
    if (kind->known(told_ < ReplayKind::kTold) && says_enough(*kind)) {
      flight->sample = flight->start >= kind->under_way_until() && sampled(*kind);
      if (!flight->sample) {
        takes_mean(*kind, 1);
        const std::vector<ReplayTimes> times = kind->mean();
        repeated(*kind, 0, flight->batch, flight->start, flight->start + times.back().completed);
        kind->under_way(flight->start + times.back().completed);
        waits(flight->states.back());
        for (std::size_t i = 0; i < times.size(); ++i)
          repeat(flight->states[i], flight->start, times[i], last_message(*flight, i));
        return;
      }
    }
  }
  flight->simulated = true;
  leaders_[kind] = flight;
  flight->done = begin(flight->batch);
  for (const StatePtr& state : flight->states) runtime_.port.transmit(state);
}

/// What the leader has done already the other one does, too.
void Replay::follow(const FlightPtr& leader, const FlightPtr& flight) {
  leader->followers.push_back(flight);
  ++report_.shared;
  waits(flight->states.back());
  for (std::size_t i = 0; i < flight->states.size(); ++i) {
    if (leader->states[i]->done) {
      repeat(flight->states[i], flight->start, leader->times[i], last_message(*flight, i));
    } else {
      flight->states[i]->sent = true;  // a drain may wait for it
    }
  }
}

Replay::Last Replay::last_message(const Flight& flight, std::size_t message) {
  return {message + 1 == flight.states.size() ? flight.kind : nullptr, 0};
}

void Replay::repeat(const StatePtr& state, Ps start, const ReplayTimes& times, const Last& of) {
  state->sent = true;
  runtime_.port.count_send();
  const std::uint64_t id = state->message->id;
  const Ps now = runtime_.dispatcher.now(), completed = std::max(start + times.completed, now);
  due_.emplace(id, Due{state, start + times.start, start + times.end, completed, of});
  runtime_.dispatcher.queue(static_cast<unsigned>(state->sip)).host_at(completed, [this, id] { due(id); });
}

void Replay::due(std::uint64_t message) {
  const auto found = due_.find(message);
  const Due due = std::move(found->second);
  due_.erase(found);
  if (const auto* mapping = std::get_if<MmuMapMessage>(&due.state->message->body)) {
    for (const MapEntry& entry : mapping->entries) options_.map(due.state->sip, entry);
    ++report_.repeated_mappings;
  } else {
    auto& launch = std::get<LaunchMessage>(due.state->message->body);
    launch.first_start = due.start;
    launch.last_end = due.end;
  }
  due.state->message->submitted = due.state->submitted;
  due.state->message->completed = due.completed;
  due.state->repeated = true;
  for (ReplayRecord* record : options_.records) {
    if (due.of.kind != nullptr) record->hears(message, {due.of.kind->id(), due.of.part}, due.state->sip);
  }
  runtime_.messages.arrived(due.state);
}

void Replay::came_back(const StatePtr& state) {
  Sip& sip = sip_of(*state);
  --sip.busy;
  if (state->kind == "launch" || state->kind == "collective") count(*state);
  const auto found = flights_.find(state->message->id);
  if (found != flights_.end()) {
    const FlightPtr flight = found->second;
    flights_.erase(found);
    batch_ended(flight, state);
  } else if (state->order != nullptr) {
    part_ended(state);
  }
}

void Replay::batch_ended(const FlightPtr& flight, const StatePtr& state) {
  const auto place =
      static_cast<std::size_t>(std::find(flight->states.begin(), flight->states.end(), state) - flight->states.begin());
  const bool failed = !state->message->faults.empty();
  if (flight->simulated && !failed) {
    ReplayTimes& times = flight->times[place];
    times.completed = state->completed - flight->start;
    if (const auto* launch = std::get_if<LaunchMessage>(&state->message->body)) {
      times.start = launch->first_start - flight->start;
      times.end = launch->last_end - flight->start;
    }
  }
  flight->disturbed = flight->disturbed || failed;
  flight->failed = flight->failed || failed;
  for (const FlightPtr& follower : flight->followers) {
    const StatePtr& same = follower->states[place];
    if (!failed) {
      repeat(same, follower->start, flight->times[place], last_message(*follower, place));
    } else if (!same->done && due_.count(same->message->id) == 0) {
      runtime_.port.transmit(same);  // it fails by itself, and says where
    }
  }
  if (--flight->left > 0) return;
  Sip& sip = sips_[static_cast<std::size_t>(flight->sip)];
  sip.flights.erase(std::find(sip.flights.begin(), sip.flights.end(), flight));
  sip.ended = flight->kind;
  sip.ended_at = runtime_.dispatcher.now();
  if (!flight->simulated) return;
  if (const auto leader = leaders_.find(flight->kind); leader != leaders_.end() && leader->second == flight) {
    leaders_.erase(leader);
  }
  flight->kind->at_once(flight->followers.size() + 1);
  if (!flight->disturbed) learn(*flight);
  const Ps took = flight->times.back().completed;
  if (flight->failed) return;  // its followers were simulated, too
  for (const FlightPtr& follower : flight->followers)
    repeated(*flight->kind, 0, follower->batch, follower->start, follower->start + took);
}

void Replay::learn(const Flight& flight) {
  ReplayKind& kind = *flight.kind;
  if (flight.sample) kind.check(static_cast<double>(flight.times.back().completed));
  if (!kind.is_set_up()) scatter_ += -kind.scatter();
  end(flight.sip, flight.done);
  simulated(kind, 0, flight.done, flight.start, kind.add(flight.times, 0, flight.times.size()));
  if (!kind.is_set_up()) {
    scatter_ += kind.scatter();
    if (kind.is_long() && kind.simulated() == 2) ++told_;
  }
  learned(kind, 1);
}

void Replay::count(const Handle::State& state) {
  Sip& sip = sip_of(state);
  const Ps begin = std::max(state.submitted, sip.counted);  // behind another one a launch has waited for it
  const auto took = static_cast<double>(std::max(state.completed, begin) - begin);
  sip.counted = std::max(sip.counted, state.completed);
  const bool launch = state.order == nullptr;
  ++(launch ? report_.launches : report_.collectives);
  report_.time += took;
  if (!state.repeated) return;
  ++(launch ? report_.repeated_launches : report_.repeated_collectives);
  report_.repeated += took;
}

namespace {
/// Of the run's time: standard error of what repeats have taken. A fifth of a percent is half a percent in one run of
/// eighty.
constexpr double kError = 0.002;
}  // namespace

bool Replay::watched(const ReplayKind& kind, Ps begin, Ps waits) const {
  const double takes = (kind.known() ? 1 : 2) * kind.mean_time();  // of few occurrences, by far
  const Ps end = kind.simulated() > 0 ? begin + waits + static_cast<Ps>(takes) : kNever;
  return std::any_of(options_.watched.begin(), options_.watched.end(),
                     [&](const ReplayWindow& window) { return begin < window.to && end >= window.from; });
}

/// Another occurrence would make the run's time no more certain than it has to be, or others should come first.
bool Replay::says_enough(const ReplayKind& kind) const {
  if (kind.is_set_up()) return true;
  const auto own = variances_.find(&kind);
  const double allowed = kError * report_.time * kError * report_.time;
  // Long work costs seconds, and what runs later may make it a small part of the run. It counts for itself: what it
  // leaves uncertain no number of occurrences of short work would mend.
  if (kind.is_long()) {
    return own == variances_.end() || own->second <= allowed ||
           kind.simulated() >= options_.long_work.least + kind.repeats() / options_.sample;
  }
  if (kind.simulated() >= ReplayKind::kMost || variance_ <= allowed) return true;
  return own == variances_.end() || own->second * static_cast<double>(variances_.size()) < variance_;
}

void Replay::takes_mean(ReplayKind& kind, std::uint64_t parts) {
  kind.repeat(1);
  if (!kind.is_set_up()) weigh(kind, parts);
}

/// Of few occurrences the deviation is as uncertain as the mean: what they say counts from the next repeat on.
void Replay::learned(const ReplayKind& kind, std::uint64_t parts) {
  if (!kind.is_set_up() && kind.simulated() >= ReplayKind::kTelling) weigh(kind, parts);
}

/// What the repeats of a kind leave uncertain, out of what is known of it now.
void Replay::weigh(const ReplayKind& kind, std::uint64_t parts) {
  const double error = kind.error() * static_cast<double>(parts);
  double& known = variances_[&kind];
  if (!kind.is_long()) variance_ += error * error - known;
  known = error * error;
}

ReplayKind& Replay::make_kind(const std::string& name, std::uint64_t number, std::shared_ptr<ReplayFamily> family) {
  kinds_.push_back(std::make_unique<ReplayKind>(name, number, options_.refresh, std::move(family), kinds_.size(),
                                                options_.long_work));
  return *kinds_.back();
}

/// Of batches that differ in numbers alone.
std::shared_ptr<ReplayFamily> Replay::family_of(const std::vector<StatePtr>& states) {
  key_.clear();
  for (const StatePtr& state : states) add_key(*state, false);
  std::shared_ptr<ReplayFamily>& family = families_[key_];
  if (family == nullptr) family = std::make_shared<ReplayFamily>();
  return family;
}

Replay::ReplayDone Replay::begin(const ReplayRecord::Batch& batch) const {
  ReplayDone done;
  for (ReplayRecord* record : options_.records) done.push_back(record->begin(batch));
  return done;
}

void Replay::end(int sip, const ReplayDone& done) const {
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (done[i] != nullptr) options_.records[i]->end(sip, *done[i]);
  }
}

void Replay::simulated(const ReplayKind& kind, std::size_t part, const ReplayDone& done, Ps from, bool afresh) const {
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (done[i] != nullptr) options_.records[i]->simulated({kind.id(), part}, *done[i], from, afresh);
  }
}

void Replay::waits(const StatePtr& state) const {
  for (ReplayRecord* record : options_.records) record->waits(state->message->id);
}

void Replay::repeated(const ReplayKind& kind, std::size_t part, const ReplayRecord::Batch& batch, Ps begin,
                      Ps end) const {
  for (ReplayRecord* record : options_.records) record->repeated({kind.id(), part}, batch, begin, end);
}

/// One of each so many, which the seed chooses. Nothing meets what is mapped, so that equal mappings take the same
/// time, and samples would show nothing.
bool Replay::sampled(ReplayKind& kind) const {
  if (kind.is_set_up()) return false;
  const std::uint64_t every = options_.sample * (kind.family_agrees() ? ReplayKind::kManySamples : 1);
  const std::uint64_t repeat = kind.next_repeat();
  return repeat % every == splitmix64(splitmix64(options_.seed + kind.number()) + repeat / every) % every;
}

ReplayReport Replay::report() const {
  ReplayReport report = report_;
  report.kinds = numbered_;
  double sampled = 0, expected = 0;
  for (const auto& kind : kinds_) {
    report.samples += kind->samples();
    sampled += kind->sampled_time();
    expected += kind->expected_time();
    if (kind->refused() && !kind->is_set_up()) ++report.refused;
    if (kind->difference() <= report.largest) continue;
    report.largest = kind->difference();
    report.largest_of = kind->name();
  }
  if (expected > 0) report.all = sampled / expected - 1;
  return report;
}

}  // namespace kernbench
