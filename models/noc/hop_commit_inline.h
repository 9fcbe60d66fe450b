#pragma once
#include <algorithm>

#include "models/noc/hop_commit.h"

// What every hop takes of HopCommitEngine: private to hop_commit.cpp, whose functions it becomes a part of.
namespace kernbench {

[[gnu::always_inline]] inline void HopCommitEngine::push(const Entry& entry, Cycle at) {
  wheel_.push(entry, at, now_);
  if (!busy_) arm();
}

// Where a packet goes from there.
[[gnu::always_inline]] inline HopCommitEngine::Network& HopCommitEngine::route(const Queue& queue,
                                                                               const Packet& packet) {
  const unsigned output =
      routes_.next_port(static_cast<std::uint16_t>(queue.port->router), {packet.exit_router, packet.exit_port});
  Network* to = queue.onward[output];
  return to != nullptr ? *to : make_onward(queue, output);
}

[[gnu::always_inline]] inline void HopCommitEngine::arrive(Queue& queue, Packet& packet, Cycle at) {
  ++queue.arriving;
  push({&queue, &packet, &route(queue, packet)}, at);
}

/// Whether the places of the first `flits` flits, or of as many as the buffer holds, are decided.
inline bool HopCommitEngine::decided(const Queue& buffer, unsigned flits, std::uint32_t depth) {
  if (depth == kUnlimited) return true;
  return static_cast<std::int32_t>(buffer.assigned + in_flight(flits, depth) - depth - buffer.departed) <= 0;
}

/// From when on the place of flit `flit` of the next packet may be used. REQUIRES: it is decided.
[[gnu::always_inline]] inline Cycle HopCommitEngine::usable(const Queue& buffer, unsigned flit,
                                                            std::uint32_t depth) const {
  if (depth == kUnlimited || buffer.gone + reuse_ <= now_) return 0;
  const std::uint32_t number = buffer.assigned + flit - depth;
  std::uint32_t from = buffer.departed;
  const std::size_t size = buffer.runs.size();
  for (std::size_t back = 0; back < size; ++back) {
    const hop::Run& run = buffer.runs[(buffer.newest + size - back) % size];
    from -= run.flits;
    const auto offset = static_cast<std::int32_t>(number - from);
    if (offset < 0) continue;
    const Cycle gaps = Cycle{run.span} + 1 - run.flits;
    return run.first + static_cast<Cycle>(offset) +
           (gaps == 0 ? 0 : gaps * static_cast<Cycle>(offset) / (run.flits - 1));
  }
  return buffer.runs[(buffer.newest + 1) % size].first;
}

/// The places of the next `flits` flits may be used again, from `first` to `last`.
[[gnu::always_inline]] inline void HopCommitEngine::record(Queue& buffer, unsigned flits, Cycle first, Cycle last) {
  buffer.newest = static_cast<std::uint8_t>((buffer.newest + 1) % buffer.runs.size());
  buffer.runs[buffer.newest] = {first, flits, static_cast<std::uint32_t>(last - first)};
  buffer.departed += flits;
}

/// The channel that a packet of `queue` can be given first; kNoVc while none is decided.
[[gnu::always_inline]] inline unsigned HopCommitEngine::free_channel(const Queue& queue, const Network& network) const {
  if (!any_) return network.free[own_channel(queue)] == kNoCycle ? kNoVc : own_channel(queue);
  const unsigned vcs = config_.vcs_per_set;
  unsigned best = kNoVc;
  Cycle best_at = kNoCycle;
  for (unsigned i = 0, k = network.next; i < vcs; ++i, k = k + 1 == vcs ? 0 : k + 1) {
    if (network.free[k] >= best_at) continue;
    best = k;
    best_at = network.free[k];
    if (best_at <= now_) break;
  }
  return best;
}

[[gnu::always_inline]] inline Passage HopCommitEngine::reserve_slots(Queue& queue, Link& link, Cycle earliest,
                                                                     unsigned flits) {
  hop::Maps& output = link.slots;
  hop::Maps& input = queue.source ? output : queue.port->slots;
  const unsigned level = queue.level;
  if (level == kOrdinary) return reserve(output.ordinary, input.ordinary, earliest, flits, picks_, now_);
  const Passage passage = reserve(output[level], input[level], earliest, flits, false, now_);
  if (passage.first != kNoCycle) push_aside(output, input, level, passage.first, flits);
  return passage;
}

/// When the tail of a packet that leaves the network is there, in the order of departure.
[[gnu::always_inline]] inline Cycle HopCommitEngine::delivery(const Packet& packet, Queue& behind, Cycle tail) const {
  if (late_) tail += packet.waited * kLateTenths / 10;
  tail = std::max(tail, behind.delivered);
  behind.delivered = tail + 1;
  return tail;
}

/// From when on nothing is taken of what the packet at the front of `queue` needs.
inline Cycle HopCommitEngine::free_from(const Queue& queue, const Link& link, Cycle earliest) {
  if (!queue.source) earliest = std::max(earliest, queue.port->slots[queue.level].end());
  return std::max(earliest, link.slots[queue.level].end());
}

}  // namespace kernbench
