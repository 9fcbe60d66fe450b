#include <algorithm>

#include "models/noc/flit_engine.h"

// Injection: packets wait outside the first router and enter it flit by flit.
namespace kernbench {

void flit::Lane::push(const Offer& offer) {
  if (size == queue.size()) {
    std::rotate(queue.begin(), queue.begin() + front, queue.end());
    front = 0;
    queue.resize(std::max<std::size_t>(4, 2 * queue.size()));
  }
  const std::size_t at = front + size;
  queue[at < queue.size() ? at : at - queue.size()] = offer;
  ++size;
}

flit::Source& FlitEngine::source(Router& router, unsigned input) {
  auto& source = router.inputs[input].source;
  if (!source) {
    sc_assert(!port(router.index, input).connected_input);
    source = std::make_unique<Source>();
    source->router = &router;
    source->input = static_cast<std::uint16_t>(input);
  }
  return *source;
}

flit::Lane& FlitEngine::lane(Source& source, const Packet& packet) {
  const auto network = static_cast<unsigned>(packet.virtual_network());
  auto& lanes = source.lanes[network];
  if (!lanes) {
    lanes = std::make_unique<Lane[]>(any_ ? 1 : split_.vcs_per_set());
    for (unsigned k = 0; k < (any_ ? 1 : split_.vcs_per_set()); ++k) {
      lanes[k].network = static_cast<std::uint8_t>(network);
      lanes[k].channel = static_cast<std::uint8_t>(k);
      if (!any_)
        lanes[k].target = &buffer(*source.router, source.input, config_.first_vc(static_cast<int>(network)) + k);
    }
  }
  return lanes[any_ ? 0 : split_.channel(virtual_channel(packet, config_))];
}

void FlitEngine::offer(unsigned at, unsigned input, Packet& packet, Cycle first, Cycle last, Cycle now) {
  now_ = now;
  Source& source = this->source(router(at), input);
  Lane& lane = this->lane(source, packet);
  lane.push({&packet, first, last});
  if (lane.size == 1) source.waiting.push_back(&lane);
  pump(source, now);
  if (!stepping_) arm();
}

// Injects what can go now; else sees to it that it is asked again.
void FlitEngine::pump(Source& source, Cycle now) {
  while (!source.waiting.empty()) {
    if (source.free > now) {
      schedule(source, source.free);
      return;
    }
    Lane* best = nullptr;
    unsigned best_rank = 0;
    Cycle next = kNoCycle;
    for (Lane* lane : source.waiting) {
      const Cycle can = can_inject(source, *lane, now);
      if (can > now) {
        next = std::min(next, can);
        continue;
      }
      const unsigned r = rank(source, *lane);
      if (best == nullptr || r < best_rank) {
        best = lane;
        best_rank = r;
      }
    }
    if (best == nullptr) {
      if (next != kNoCycle) schedule(source, next);
      return;
    }
    inject(source, *best, now);
  }
}

// The lowest goes first: commands, then credits, the packet that is under way, round robin over the virtual networks,
// then over their channels.
unsigned FlitEngine::rank(const Source& source, const Lane& lane) const {
  const unsigned level = priority_level(lane.network), middle = &lane == source.middle ? 0 : 1;
  const unsigned turn = (lane.network + kVirtualNetworks - source.next_network) % kVirtualNetworks;
  const unsigned next = source.next_channel[lane.network];
  const unsigned channel = lane.channel >= next ? lane.channel - next : lane.channel + split_.vcs_per_set() - next;
  return level << 24 | middle << 20 | turn << 8 | channel;
}

// Cycle, `at` or later, in which the lane's next flit can go; kNoCycle: not known, the source is woken by a credit.
Cycle FlitEngine::can_inject(Source& source, Lane& lane, Cycle at) {
  if (lane.sent == 0) lane.flits = static_cast<std::uint16_t>(flits_(*lane.offer().packet));
  const flit::Offer& offer = lane.offer();
  Cycle here = offer.first;
  if (lane.sent != 0 && offer.last > at) here += (offer.last - offer.first) * lane.sent / (lane.flits - 1U);
  const Cycle from = std::max(here, at);
  if (lane.target == nullptr) return from > at ? from : pick_vc(source, lane, at);
  const Cycle usable = lane.target->place(from);
  if (usable == kNoCycle) lane.target->sender_blocked = true;
  return usable;
}

// Any channel with a place, round robin; the source sends one packet at a time, so that all are free.
Cycle FlitEngine::pick_vc(Source& source, Lane& lane, Cycle at) {
  const unsigned first = config_.first_vc(lane.network), all = split_.vcs_per_set();
  unsigned channel = source.next_channel[lane.network];
  Cycle next = kNoCycle;
  for (unsigned i = 0; i < all; ++i) {
    Buffer& buffer = this->buffer(*source.router, source.input, first + channel);
    const Cycle usable = buffer.place(at);
    if (usable == at) {
      lane.target = &buffer;
      lane.channel = static_cast<std::uint8_t>(channel);
      return at;
    }
    if (usable == kNoCycle) buffer.sender_blocked = true;
    next = std::min(next, usable);
    channel = channel + 1 == all ? 0 : channel + 1;
  }
  return next;
}

// A place of `buffer`, for which its source waits, is given back.
void FlitEngine::freed_source(const Buffer& buffer, const Packet& by) {
  for (const Lane* lane : buffer.from->source->waiting) {
    if (lane->target == &buffer || (lane->target == nullptr && lane->network == buffer.network))
      actions_.freed(buffer.router->index, buffer.output, *lane->offer().packet, &by);
  }
}

// Sends flits of the lane's front packet from `now` on, one per cycle, while it is known that they can go.
void FlitEngine::inject(Source& source, Lane& lane, Cycle now) {
  Buffer& target = *lane.target;
  Packet& packet = *lane.offer().packet;
  if (lane.sent == 0) {
    lane.head = now + injection_;
    packet.vc = target.vc;
    enqueue(target, packet, lane.head);
  }
  Cycle at = now;
  do {
    target.arrived.add(at + injection_);
    ++lane.sent;
    ++at;
  } while (lane.sent < lane.flits && at - now < kRun && can_inject(source, lane, at) == at);
  if (target.starved) {
    target.starved = false;
    schedule(target, now + injection_);
  }
  source.free = at;
  source.middle = &lane;
  if (lane.sent < lane.flits) return;
  source.middle = nullptr;
  source.next_network = static_cast<std::uint8_t>((lane.network + 1) % kVirtualNetworks);
  source.next_channel[lane.network] =
      static_cast<std::uint8_t>(lane.channel + 1U == split_.vcs_per_set() ? 0 : lane.channel + 1U);
  const Cycle head = lane.head;
  lane.sent = 0;
  lane.pop();
  if (lane.size != 0) actions_.freed(source.router->index, source.input, *lane.offer().packet, &packet);
  if (any_) lane.target = nullptr;
  if (lane.size == 0) {
    for (Lane*& listed : source.waiting) {
      if (listed != &lane) continue;
      listed = source.waiting.back();
      source.waiting.pop_back();
      break;
    }
  }
  actions_.injected(source.router->index, source.input, packet, head, at - 1 + injection_);
}

}  // namespace kernbench
