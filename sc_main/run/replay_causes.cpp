#include "sc_main/run/replay_causes.h"

#include <algorithm>
#include <string>

#include "tlm/machine/names.h"

namespace kernbench {

struct ReplayCauses::Chain final : ReplayRecord::Done {
  int sip = 0;
  Ps begin = 0;
  Segments segments;
};

std::unique_ptr<ReplayRecord::Done> ReplayCauses::begin(const Batch& batch) {
  if (batch.links) return nullptr;  // its causes are its members'
  auto chain = std::make_unique<Chain>();
  chain->sip = batch.sip;
  chain->begin = now_();
  return chain;
}

/// The host has just heard of its end.
void ReplayCauses::end(int, Done& done) {
  auto& chain = static_cast<Chain&>(done);
  chain.segments = log_.chain(log_.current, chain.begin);
}

void ReplayCauses::simulated(Work work, const Done& done, Ps from, bool) {
  const auto& chain = static_cast<const Chain&>(done);
  Segments segments;
  for (const CauseLog::Segment& segment : chain.segments) {
    if (segment.end <= from) continue;
    segments.push_back(segment);
    segments.back().begin = std::max(segment.begin, from);
  }
  Known& known = known_[{work.kind, work.part}];
  known = {chain.sip, CauseLog::largest(segments), 0};
  for (const CauseLog::Segment& part : known.parts) known.time += part.end;
}

void ReplayCauses::waits(std::uint64_t message) {
  const std::uint32_t host = log_.place(host_, [] { return std::string("host"); });
  waiting_[message] = log_.step(Spent::host, host, now_(), log_.host);
}

void ReplayCauses::hears(std::uint64_t message, Work work, int sip) {
  const auto waited = waiting_.find(message);
  if (waited == waiting_.end()) return;
  Cause cause = std::move(waited->second);
  waiting_.erase(waited);
  const Ps begin = CauseLog::end_of(cause), end = now_();
  if (const auto found = known_.find({work.kind, work.part}); found != known_.end() && found->second.time > 0) {
    const Known& known = found->second;
    Ps until = 0;
    for (const CauseLog::Segment& part : known.parts) {
      until += part.end;
      const double share = static_cast<double>(until) / static_cast<double>(known.time);
      const Ps at = begin + static_cast<Ps>(share * static_cast<double>(end - begin));
      cause = log_.step(part.spent, place_on(part.place, known.sip, sip), at, cause);
    }
  }
  log_.heard(log_.step(Spent::other, 0, end, cause), nullptr, static_cast<std::uint16_t>(sip), 0, 0);
}

/// The like place of another SIP.
std::uint32_t ReplayCauses::place_on(std::uint32_t place, int from, int to) {
  if (from == to) return place;
  const auto [known, is_new] = places_.emplace(std::tuple(place, from, to), place);
  if (!is_new) return known->second;
  const std::string prefix = names::sip(static_cast<std::uint16_t>(from));
  const std::string name = log_.place_name(place);
  if (name == prefix || name.rfind(prefix + ".", 0) == 0)
    known->second = log_.place(names::sip(static_cast<std::uint16_t>(to)) + name.substr(prefix.size()));
  return known->second;
}

}  // namespace kernbench
