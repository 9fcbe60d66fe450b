#include "ccl/run/pe_to_pe.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "ccl/contract/error.h"
#include "ccl/contract/legal.h"
#include "ccl/run/call_program.h"

namespace kernbench::ccl {
namespace {

const RegionMap& region(const std::vector<RegionMap>& regions, int number) {
  return regions[regions.size() == 1 ? 0 : static_cast<std::size_t>(number)];
}

/// The queues' own numbers end here: Direction::global(k) of a PE of any rank.
constexpr std::int64_t kMostPeers = 0xC000;

}  // namespace

PeMessages::PeMessages(const MachineMap& map, const Group& group, const BoundCall& bound)
    : maps_(bound.maps),
      facts_(facts_of(bound.tensors.call.op)),
      ranks_(static_cast<int>(group.sips.size())),
      root_(bound.tensors.call.root),
      pes_(map.pes_per_cube),
      rank_pes_(static_cast<int>(map.pes_per_sip())),
      item_(static_cast<std::int64_t>(size_of(bound.tensors.call.dtype))),
      most_(std::max<std::int64_t>(group.queue.slot_bytes / item_, 1)) {
  if (group.ranks_are_pes()) throw Error("is for ranks that are SIPs");
  if (maps_->level != NodeLevel::rank) throw Error("is for data that cubes or PEs of a rank need not combine");
  if (bound.in_place && facts_.exchanges()) throw Error("does not exchange blocks in place");
  if (ranks_ * (1 + map.cubes_per_sip() + std::int64_t{map.pes_per_sip()}) > kMostPeers) {
    throw Error(fmt::format("is for machines whose PEs can have {} partners", kMostPeers));
  }
  for (int a = 0; a < ranks_; ++a) {
    for (int b = 0; b < ranks_; ++b) {
      const std::pair<int, int> key{in_region(a, b), out_region(a, b)};
      if ((a != b && !sends(a, b)) || messages_.count(key) > 0) continue;
      messages_[key] = cut(region(maps_->in[0], key.first), region(maps_->out[0], key.second));
    }
  }
}

bool PeMessages::sends(int from, int to) const {
  if (from == to || maps_->elements == 0) return false;
  return !facts_.rooted() || (facts_.parties == Parties::to_root ? to : from) == root_;
}

int PeMessages::in_region(int from, int to) const {
  return maps_->in[0].size() == 1 ? 0 : facts_.longer_out() ? from : to;
}

int PeMessages::out_region(int from, int to) const {
  return maps_->out[0].size() == 1 ? 0 : facts_.longer_in() ? to : from;
}

const std::vector<PeMessage>& PeMessages::between(int from, int to) const {
  return messages_.at({in_region(from, to), out_region(from, to)});
}

const std::vector<std::pair<std::int32_t, std::int32_t>>& PeMessages::links() const {
  if (links_) return *links_;
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (int a = 0; a < ranks_; ++a) {
    for (int b = 0; b < ranks_; ++b) {
      if (!sends(a, b)) continue;
      for (const PeMessage& m : between(a, b)) pairs.insert(std::minmax(a * rank_pes_ + m.from, b * rank_pes_ + m.to));
    }
  }
  return links_.emplace(pairs.begin(), pairs.end());
}

/// As long as the elements follow each other in one memory of the sender, and all go to one PE.
std::vector<PeMessage> PeMessages::cut(const RegionMap& in, const RegionMap& out) const {
  const auto place_of = [&](const Run& run) -> const Place& {
    if (run.places.size() != 1) throw Error("is for data without copies");
    return run.places.front();
  };
  const auto number = [&](const Place& place) { return place.cube * pes_ + place.pe; };
  std::vector<PeMessage> messages;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> rounds;
  for (std::int64_t at = 0; at < maps_->elements;) {
    const Run &from = run_at(in, at), &to = run_at(out, at);
    const std::uint64_t source = place_of(from).offset + static_cast<std::uint64_t>((at - from.begin) * item_);
    const std::uint64_t target = place_of(to).offset + static_cast<std::uint64_t>((at - to.begin) * item_);
    const std::pair<std::int32_t, std::int32_t> ends{number(place_of(from)), number(place_of(to))};
    const auto goes_on = [&](const PeMessage& m) {
      return m.from == ends.first && m.to == ends.second && m.count < most_ &&
             m.offset + static_cast<std::uint64_t>(m.count * item_) == source;
    };
    if (messages.empty() || !goes_on(messages.back())) {
      messages.push_back({ends.first, ends.second, rounds[ends]++, 0, source, {}});
    }
    PeMessage& message = messages.back();
    const std::int64_t count = std::min({from.end() - at, to.end() - at, maps_->elements - at, most_ - message.count});
    std::vector<PeMessage::Part>& parts = message.parts;
    if (!parts.empty() && parts.back().offset + static_cast<std::uint64_t>(parts.back().count * item_) == target) {
      parts.back().count += count;
    } else {
      parts.push_back({message.count, count, target});
    }
    message.count += count;
    at += count;
  }
  return messages;
}

void PeToPeCall::run(Tl& tl) const {
  const auto found = steps.find({static_cast<int>(tl.program_id(1)), static_cast<int>(tl.program_id(0))});
  sc_assert(found != steps.end());
  Verbs verbs(tl, messages->contributions());
  std::map<std::pair<std::uint64_t, std::int64_t>, Tile> loaded;  // in this round: what goes to several ranks
  const auto load = [&](const PeMessage& message) -> const Tile& {
    Tile& tile = loaded[{message.offset, message.count}];
    if (!tile) tile = verbs.load(verbs.in() + message.offset, message.count);
    return tile;
  };
  const auto store = [&](const PeMessage& message, const Tile& tile) {
    for (const PeMessage::Part& part : message.parts) {
      const bool whole = part.count == message.count;
      verbs.store(verbs.out() + part.offset, whole ? tile : verbs.slice(tile, part.begin, part.count));
    }
  };
  std::int32_t round = 0;
  for (const PeStep& step : found->second) {
    const PeMessage& message = *step.message;
    if (message.round != round) loaded.clear();
    round = message.round;
    switch (step.kind) {
      case PeStep::Kind::send:
        verbs.send(step.directions.front(), load(message));
        break;
      case PeStep::Kind::keep:
        store(message, load(message));
        break;
      case PeStep::Kind::take:
        store(message, verbs.receive(step.directions.front(), message.count));
        break;
      case PeStep::Kind::sum: {
        Tile sum = load(message);
        for (const Direction from : step.directions) sum = verbs.combine(sum, verbs.receive(from, message.count));
        store(message, verbs.finish(sum));
        break;
      }
    }
  }
}

/// 16 B for a step (kind, count, place in `in`), 16 B for each part of `out` that it writes, 2 B for each queue.
std::uint64_t PeToPeCall::bytes(int cube, int pe) const {
  constexpr std::uint64_t kStep = 16, kPart = 16, kQueue = 2;
  std::uint64_t bytes = kProgramHeaderBytes;
  for (const PeStep& step : steps.at({cube, pe})) {
    bytes += kStep + kQueue * step.directions.size();
    if (step.kind != PeStep::Kind::send) bytes += kPart * step.message->parts.size();
  }
  return bytes;
}

const std::shared_ptr<const PeMessages>& pe_messages(const MachineMap& map, const Group& group, BoundCall& call) {
  if (!call.refusal.empty()) throw Error(call.refusal);
  if (!call.messages) call.messages = std::make_shared<PeMessages>(map, group, call);
  return call.messages;
}

Ps PeToPeBinder::way(int rank_a, std::int32_t a, int rank_b, std::int32_t b) const {
  const MachineMap& map = queues_.map();
  if (!map.packet_latency) return 0;
  const auto pe = [&](int rank, std::int32_t place) {
    return map.pe({queues_.group().sips[static_cast<std::size_t>(rank)],
                   static_cast<std::uint16_t>(place / map.pes_per_cube),
                   static_cast<std::uint16_t>(place % map.pes_per_cube)});
  };
  return map.packet_latency(pe(rank_a, a), pe(rank_b, b), MachineMap::kLeastPacket);
}

namespace {

/// Steps in the order in which a PE does them: round by round, which needs one slot of a queue, first what it sends,
/// what has the longest way before the rest, then what stays, then what it receives, the nearest first. Of ways alike
/// every rank begins with the next one.
struct Ordered {
  std::int32_t round = 0, kind = 0;
  Ps way = 0;
  int distance = 0;
  std::size_t number = 0;
  PeStep step;
  auto key() const { return std::tuple(round, kind, way, distance, number); }
};

}  // namespace

PeToPeCall PeToPeBinder::bind(const CallTensors& tensors, BoundCall& bound) const {
  PeToPeCall call{pe_messages(queues_.map(), queues_.group(), bound), {}};
  const int rank = tensors.rank;
  const int ranks = static_cast<int>(queues_.group().sips.size());
  const auto pes = static_cast<std::int32_t>(queues_.map().pes_per_sip());
  const bool sums = reduces(tensors.call.op);
  std::map<std::int32_t, std::vector<Ordered>> found;
  const auto add = [&](std::int32_t pe, PeStep::Kind kind, const PeMessage& m, Ps way, int distance,
                       std::vector<Direction> directions) {
    std::vector<Ordered>& steps = found[pe];
    steps.push_back(
        {m.round, static_cast<std::int32_t>(kind), way, distance, steps.size(), {kind, &m, std::move(directions)}});
  };
  const auto direction = [&](std::int32_t pe, int other, std::int32_t peer) {
    return queues_.direction(NodeLevel::pe, pes, rank * pes + pe, other * pes + peer);
  };
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (rank + distance) % ranks, from = (rank + ranks - distance) % ranks;
    if (call.messages->sends(rank, to)) {
      for (const PeMessage& m : call.messages->between(rank, to))
        add(m.from, PeStep::Kind::send, m, -way(rank, m.from, to, m.to), distance, {direction(m.from, to, m.to)});
    }
    if (sums || !call.messages->sends(from, rank)) continue;
    for (const PeMessage& m : call.messages->between(from, rank))
      add(m.to, PeStep::Kind::take, m, way(from, m.from, rank, m.to), distance, {direction(m.to, from, m.from)});
  }
  if (sums) {
    for (const PeMessage& m : call.messages->between(rank, rank)) {
      std::vector<std::tuple<Ps, int, Direction>> others;
      for (int distance = 1; distance < ranks; ++distance) {
        const int from = (rank + ranks - distance) % ranks;
        others.emplace_back(way(from, m.from, rank, m.to), distance, direction(m.to, from, m.from));
      }
      std::sort(others.begin(), others.end());
      std::vector<Direction> directions;
      for (const auto& [way, distance, other] : others) directions.push_back(other);
      add(m.to, PeStep::Kind::sum, m, 0, 0, std::move(directions));
    }
  } else if (!rooted(tensors.call.op) || rank == tensors.call.root) {
    const bool in_place = tensors.in_place;
    for (const PeMessage& m : call.messages->between(rank, rank)) {
      const bool lies = in_place && m.parts.size() == 1 && m.parts.front().offset == m.offset;
      if (!lies) add(m.from, PeStep::Kind::keep, m, 0, 0, {});
    }
  }
  for (auto& [pe, steps] : found) {
    std::sort(steps.begin(), steps.end(), [](const Ordered& x, const Ordered& y) { return x.key() < y.key(); });
    auto& list = call.steps[{pe / queues_.map().pes_per_cube, pe % queues_.map().pes_per_cube}];
    for (Ordered& ordered : steps) list.push_back(std::move(ordered.step));
  }
  return call;
}

}  // namespace kernbench::ccl
