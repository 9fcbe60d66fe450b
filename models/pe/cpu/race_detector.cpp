#include "models/pe/cpu/race_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tlm/ext/message.h"
#include "tlm/machine/names.h"

namespace kernbench {

std::string RaceDetector::Race::str() const {
  return fmt::format(
      "{} {} and {} {} race on {} B at {}: the result depends on timing. To order them: a fence() behind the store, "
      "then a send(); on the other PE wait() for what recv() gives, then touch the range",
      names::pe(first), first_op, names::pe(second), second_op, bytes, at.str());
}

namespace {
/// "store(0x10000, 1x32 f16)" without the address.
std::string without_addresses(const std::string& op) {
  std::string text;
  for (std::size_t i = 0; i < op.size(); ++i) {
    text += op[i];
    if (text.size() < 2 || text.compare(text.size() - 2, 2, "0x") != 0) continue;
    text.replace(text.size() - 2, 2, "...");
    while (i + 1 < op.size() && std::isxdigit(static_cast<unsigned char>(op[i + 1])) != 0) ++i;
  }
  return text;
}
}  // namespace

bool RaceDetector::count(const std::string& kernel, const Race& race) {
  const std::string first = without_addresses(race.first_op), second = without_addresses(race.second_op);
  for (RaceKind& kind : *kinds_) {
    if (kind.kernel != kernel || kind.first_op != first || kind.second_op != second) continue;
    ++kind.races;
    return false;
  }
  kinds_->push_back({kernel, first, second, 1});
  return true;
}

RaceDetector::Pe& RaceDetector::pe_of(Launch& launch, PeCoord pe) {
  const auto [found, made] = launch.pes.try_emplace(pe);
  if (made) found->second.known[pe] = {1, 1};
  return found->second;
}

void RaceDetector::join(Clock& into, const Clock& from) {
  for (const auto& [pe, times] : from) {
    Times& mine = into[pe];
    mine.stores = std::max(mine.stores, times.stores);
    mine.reads = std::max(mine.reads, times.reads);
  }
}

void RaceDetector::split(Launch& launch, std::uint64_t at) {
  auto range = launch.ranges.upper_bound(at);
  if (range == launch.ranges.begin()) return;
  --range;
  if (range->first == at || range->second.end <= at) return;
  Range tail = range->second;
  range->second.end = at;
  launch.ranges.emplace(at, std::move(tail));
}

void RaceDetector::access(const Message& message, PeCoord pe, const Text& op, const PhysicalAddress& address,
                          std::uint64_t bytes, bool write, std::vector<Race>& races) {
  if (bytes == 0) return;
  Launch& launch = launches_[message.id];
  const Clock& known = pe_of(launch, pe).known;
  const Times now = known.at(pe);
  const std::uint64_t begin = address.encode(), end = begin + bytes;
  split(launch, begin);
  split(launch, end);
  const auto collide = [&](const Touch& before, std::uint32_t known_epoch, std::uint64_t first, std::uint64_t last) {
    if (before.pe == pe || known_epoch >= before.epoch) return;
    races.push_back({before.pe, pe, *before.op, *op, PhysicalAddress::decode(first), last - first});
  };
  const auto known_of = [&](PeCoord other) {
    const auto found = known.find(other);
    return found == known.end() ? Times{} : found->second;
  };
  for (std::uint64_t at = begin; at < end;) {
    auto range = launch.ranges.lower_bound(at);
    if (range == launch.ranges.end() || range->first != at) {  // not touched yet
      const std::uint64_t next = range == launch.ranges.end() ? end : std::min(end, range->first);
      range = launch.ranges.emplace(at, Range{next, {}, {}}).first;
    }
    Range& here = range->second;
    for (const Touch& before : here.write) collide(before, known_of(before.pe).stores, at, here.end);
    if (write) {
      for (const Touch& before : here.reads) collide(before, known_of(before.pe).reads, at, here.end);
      here.write = {{pe, now.stores, op}};
      here.reads.clear();
    } else {
      const auto own = std::find_if(here.reads.begin(), here.reads.end(), [&](const Touch& t) { return t.pe == pe; });
      (own == here.reads.end() ? *here.reads.insert(own, Touch{}) : *own) = {pe, now.reads, op};
    }
    at = here.end;
  }
}

void RaceDetector::fenced(const Message& message, PeCoord pe) {
  Pe& self = pe_of(launches_[message.id], pe);
  self.released[pe].stores = self.known[pe].stores++;
  Clock others = self.known;
  others.erase(pe);
  join(self.released, others);
}

void RaceDetector::sent(const Message& message, PeCoord pe, PeCoord to, std::uint16_t ring) {
  if (to.sip != pe.sip) return;
  Pe& self = pe_of(launches_[message.id], pe);
  Clock passed = self.released;
  passed[pe].reads = self.known[pe].reads++;
  for (const auto& [other, times] : self.known) {
    if (!(other == pe)) join(passed, {{other, times}});
  }
  on_their_way_[{to, ring}].push_back(std::move(passed));
}

void RaceDetector::received(const Message& message, PeCoord pe, PeCoord from, std::uint16_t ring) {
  Launch& launch = launches_[message.id];
  Pe& self = pe_of(launch, pe);
  if (from.sip != pe.sip) {
    for (const auto& [other, state] : launch.pes) {
      if (!(other == pe)) join(self.known, state.known);
    }
    return;
  }
  auto& ring_messages = on_their_way_[{pe, ring}];
  if (ring_messages.empty()) return;  // sent before a launch that failed
  join(self.known, ring_messages.front());
  ring_messages.pop_front();
}

void RaceDetector::ended(const Message& message, PeCoord) {
  // Also of a PE that ends before another one's first access: the count has to be whole.
  const auto found = launches_.try_emplace(message.id).first;
  if (++found->second.ended == std::get<LaunchMessage>(message.body).targets.size()) launches_.erase(found);
}

}  // namespace kernbench
