#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/call_order.h"
#include "runtime/replay.h"
#include "runtime/runtime_impl.h"

namespace kernbench {

/// How the members of a collective come to it: when, after the first of them, and in which state their SIPs are.
struct Replay::Pattern {
  std::vector<Ps> skews;              ///< by place in the call order
  std::vector<std::uint64_t> states;  ///< likewise: of what still goes on, and of the member's own key
  ReplayKind* kind = nullptr;
  Ps last() const { return *std::max_element(skews.begin(), skews.end()); }
  /// Within a tolerance of times: 400 ns, but a tenth of what the collective takes at most and a 400th at least. Nobody
  /// ends before the last has come, so that what all take counts from there and Part::wait; what the others' coming
  /// changes is in the spread of occurrences.
  bool matches(const std::vector<Ps>& others, const std::vector<std::uint64_t>& other_states) const {
    if (other_states != states) return false;
    const Ps tolerance = this->tolerance();
    for (std::size_t i = 0; i < skews.size(); ++i) {
      const Ps low = std::min(skews[i], others[i]), high = std::max(skews[i], others[i]);
      if (high - low > tolerance) return false;
    }
    return true;
  }
  Ps tolerance() const {
    const double takes = kind->mean_time();
    return static_cast<Ps>(std::max({1e3, 0.0025 * takes, std::min(0.1 * takes, kNear)}));
  }
  static constexpr double kNear = 400e3;  ///< ps. measured: ends of equal launches and collectives on equal SIPs
};

/// What `states` are to those who keep what work does.
inline ReplayRecord::Batch batch_of(const std::vector<Replay::StatePtr>& states) {
  ReplayRecord::Batch batch;
  batch.sip = states.front()->sip;
  for (const Replay::StatePtr& state : states) {
    const auto* launch = std::get_if<LaunchMessage>(&state->message->body);
    batch.calls.push_back({state->message->id, launch != nullptr ? launch->kernel : std::string()});
    for (const Tensor& tensor : state->uses) batch.tensors.push_back({tensor.va(), tensor.bytes()});
  }
  return batch;
}

/// What leaves a SIP for others while a collective goes on.
inline ReplayRecord::Batch links_of(std::size_t sip) { return {static_cast<int>(sip), true, {}, {}}; }

/// The same, so much later.
inline ReplayTimes shifted(const ReplayTimes& times, std::int64_t by) {
  const auto at = [by](Ps time) {
    return static_cast<Ps>(std::max<std::int64_t>(static_cast<std::int64_t>(time) + by, 0));
  };
  return {at(times.start), at(times.end), at(times.completed)};
}

/// Collectives of one group, operation and placement: the patterns in which members have come to them.
struct Replay::Base {
  std::uint64_t number = 0;
  std::vector<std::unique_ptr<Pattern>> patterns;
  /// By what ran before on the first member's SIP: the pattern in which members came after that the last time. Null:
  /// they came otherwise than that; the next one is simulated, and says it.
  std::map<std::uint64_t, Pattern*> after;
  /// After what has not been seen yet members are expected as in the pattern that was learned last.
  Pattern* expected(std::uint64_t before) const {
    const auto known = after.find(before);
    return known != after.end() ? known->second : patterns.empty() ? nullptr : patterns.back().get();
  }
};

/// A collective on its way.
struct Replay::Call {
  struct Part {
    StatePtr state;
    Ps start = 0, wait = 0;  ///< it comes; and begins so much later (Replay::wait_for_last)
    std::uint64_t sip_state = 0;
    bool ended = false;
    ReplayDone done;
    ReplayTimes times;  ///< from the first member's start on
  };
  Base* base = nullptr;
  std::vector<Part> parts;           ///< by place in the call order
  std::vector<ReplayDone> links;     ///< by SIP, of those whose links it has (Replay::links_begin)
  const ReplayKind* kind = nullptr;  ///< of which it was an occurrence; null: of none, or not known yet
  bool afresh = false;               ///< of that kind, those before it count no more
  std::size_t here = 0, left = 0;    ///< members that have submitted it; parts under way
  Ps first = 0;
  std::uint64_t before = 0;     ///< Base::after
  Pattern* expected = nullptr;  ///< null: it is simulated whatever comes
  bool held = false;            ///< until all are here
  bool repeats = false, sample = false, disturbed = false;

  bool going_on() const { return here < parts.size() || left > 0; }
  bool under_way(int sip) const {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
      return part.state != nullptr && part.state->sip == sip && !part.ended;
    });
  }
  bool has_come(int sip) const {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const Part& part) { return part.state != nullptr && part.state->sip == sip; });
  }
  std::size_t place_of(const Handle::State& state) const {
    const std::vector<int>& ranks = state.order->ranks();
    return static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), state.rank) - ranks.begin());
  }
  Part& enter(const StatePtr& state, Ps now) {
    Part& part = parts[place_of(*state)];
    part.state = state;
    part.start = now;
    if (here == 0) first = now;
    ++here;
    ++left;
    return part;
  }
};

}  // namespace kernbench
