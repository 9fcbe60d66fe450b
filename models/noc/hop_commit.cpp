#include "models/noc/hop_commit.h"

#include <algorithm>

namespace kernbench {

HopCommitEngine::HopCommitEngine(const NocConfig& config, const NetworkRoutes& routes, Actions& actions)
    : config_(config),
      routes_(routes),
      actions_(actions),
      flits_(config.flit_bytes),
      split_(config.vcs_per_set),
      any_(config.vc_choice == VcChoice::any),
      picks_(config.switch_policy == SwitchPolicy::interleave),
      late_(picks_ && config.vcs_per_set > 1),
      hop_(Cycle{config.sw_alloc_delay} + config.switch_delay + config.link_delay),
      injection_(Cycle{1} + config.link_delay),
      reuse_(Cycle{config.credit_delay} + config.sw_alloc_delay),
      source_reuse_(config.credit_delay),
      head_wait_(config.routing_delay + std::max<Cycle>(config.vc_alloc_delay, 1) - 1),
      allocated_(std::min<Cycle>(config.vc_alloc_delay, 1)),
      first_port_{0} {}

HopCommitEngine::~HopCommitEngine() = default;

void HopCommitEngine::add_router(unsigned ports) {
  first_port_.push_back(first_port_.back() + ports);
  to_.resize(first_port_.back());
  fed_.resize(first_port_.back());
  announced_.resize(first_port_.back());
  ports_.resize(first_port_.back());
}

void HopCommitEngine::connect(unsigned from, unsigned output, unsigned to, unsigned input) {
  to_[first_port_[from] + output] = {to, input};
  fed_[first_port_[to] + input] = true;
}

void HopCommitEngine::announce(unsigned router, unsigned output, unsigned flits) {
  announced_[first_port_[router] + output] = flits;
}

// State, made on first use.

HopCommitEngine::Port& HopCommitEngine::port(unsigned router, unsigned number) {
  auto& port = ports_[first_port_[router] + number];
  if (!port) {
    port = std::make_unique<Port>();
    port->router = router;
    port->number = number;
    port->in.port = port.get();
    port->in.depth = config_.vc_depth_flits;
  }
  return *port;
}

HopCommitEngine::Link& HopCommitEngine::out_link(unsigned router, unsigned output) {
  Port& from = port(router, output);
  if (from.out != nullptr) return *from.out;
  const End to = to_[first_port_[router] + output];
  if (to.router != ~0U) {
    from.out = &port(to.router, to.port).in;
  } else {
    from.border = std::make_unique<Link>();
    from.border->depth = announced_[first_port_[router] + output];
    from.out = from.border.get();
  }
  return *from.out;
}

HopCommitEngine::Network& HopCommitEngine::network(Link& link, unsigned number) {
  auto& network = link.networks[number];
  if (network) return *network;
  network = std::make_unique<Network>();
  const unsigned vcs = config_.vcs_per_set;
  network->vcs = std::make_unique<Queue[]>(vcs);
  std::size_t places = 0;
  if (link.depth != kUnlimited) {
    for (places = 1; places < link.depth;) places *= 2;
  }
  for (unsigned k = 0; k < vcs; ++k) {
    network->vcs[k].port = link.port;
    network->vcs[k].number = static_cast<std::uint8_t>(config_.first_vc(static_cast<int>(number)) + k);
    network->vcs[k].reusable.resize(places);
  }
  return *network;
}

// With channels by flow, each has a line of its own at the source: one that is blocked does not block others.
HopCommitEngine::Queue& HopCommitEngine::source_line(Port& port, const Packet& packet) {
  const auto number = static_cast<unsigned>(packet.virtual_network());
  auto& sources = port.sources[number];
  const unsigned lines = any_ ? 1 : config_.vcs_per_set;
  if (!sources) {
    sources = std::make_unique<Queue[]>(lines);
    for (unsigned k = 0; k < lines; ++k) {
      sources[k].port = &port;
      sources[k].source = true;
      sources[k].number = static_cast<std::uint8_t>(config_.first_vc(static_cast<int>(number)) + k);
    }
  }
  return sources[any_ ? 0 : split_.channel(virtual_channel(packet, config_))];
}

// Time.

void HopCommitEngine::push(Queue& queue, Packet* packet, Cycle at) {
  const std::size_t slot = std::min(at, now_ + kSlots - 1) % kSlots;
  wheel_[slot].push_back({&queue, packet, at});
  pending_[slot / 64] |= std::uint64_t{1} << slot % 64;
  if (!stepping_) arm();
}

void HopCommitEngine::wake(Queue& queue, Cycle at) {
  if (queue.wake == at) return;
  queue.wake = at;
  push(queue, nullptr, at);
}

Cycle HopCommitEngine::next_work() const {
  const std::size_t start = now_ % kSlots;
  for (std::size_t word = 0; word <= pending_.size(); ++word) {
    const std::size_t w = (start / 64 + word) % pending_.size();
    std::uint64_t bits = pending_[w];
    if (word == 0) bits &= ~std::uint64_t{0} << start % 64;
    if (word == pending_.size()) bits &= ~(~std::uint64_t{0} << start % 64);
    if (bits == 0) continue;
    const std::size_t slot = w * 64 + static_cast<std::size_t>(__builtin_ctzll(bits));
    return now_ + (slot + kSlots - start) % kSlots;
  }
  return kNoCycle;
}

void HopCommitEngine::arm() {
  const Cycle next = next_work();
  if (next >= armed_) return;
  armed_ = next;
  actions_.wake(next);
}

void HopCommitEngine::step(Cycle now) {
  if (now != armed_) return;
  armed_ = kNoCycle;
  now_ = now;
  stepping_ = true;
  const std::size_t slot = now % kSlots;
  std::vector<Entry>& entries = wheel_[slot];
  for (std::size_t i = 0; i < entries.size(); ++i) {  // it grows
    const Entry entry = entries[i];
    if (entry.at > now) {
      push(*entry.queue, entry.packet, entry.at);
    } else if (entry.packet != nullptr) {
      append(*entry.queue, *entry.packet);
    } else if (entry.queue->wake == now) {
      entry.queue->wake = kNoCycle;
      evaluate(*entry.queue);
    }
  }
  entries.clear();
  pending_[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
  stepping_ = false;
  arm();
}

// Calls.

void HopCommitEngine::offer(unsigned router, unsigned input, Packet& packet, Cycle first, Cycle last, Cycle now) {
  now_ = now;
  packet.first_cycle = first;
  packet.last_cycle = last;
  packet.waited = 0;
  Queue& line = source_line(port(router, input), packet);
  const bool alone = line.first == nullptr && line.trailing_packet == nullptr;
  packet.next = nullptr;
  (line.first == nullptr ? line.first : line.last->next) = &packet;
  line.last = &packet;
  if (!alone) return;
  const Cycle at = std::max(first, line.gone);
  if (at <= now + 1) {
    inject(line);
  } else {
    wake(line, at);
  }
}

void HopCommitEngine::arrive([[maybe_unused]] unsigned router, [[maybe_unused]] unsigned input, Packet& packet,
                             Cycle head, Cycle now) {
  now_ = now;
  sc_assert(sent_to_ != nullptr && sent_to_->port->router == router && sent_to_->port->number == input);
  push(*sent_to_, &packet, head);
}

void HopCommitEngine::credit(unsigned router, unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now) {
  now_ = now;
  Link& link = out_link(router, output);
  if (link.depth == kUnlimited) return;
  Queue& buffer = network(link, split_.network(vc)).vcs[split_.channel(vc)];
  const std::size_t mask = buffer.reusable.size() - 1;
  for (unsigned i = 0; i < flits; ++i) {
    buffer.reusable[buffer.departed++ & mask] = when + i + config_.sw_alloc_delay;
  }
  if (buffer.sender == nullptr) return;
  Queue& sender = *buffer.sender;
  buffer.sender = nullptr;
  wake(sender, now);
}

// Packets.

void HopCommitEngine::append(Queue& queue, Packet& packet) {
  packet.next = nullptr;
  if (queue.first != nullptr || queue.trailing_packet != nullptr) {
    (queue.first == nullptr ? queue.first : queue.last->next) = &packet;
    queue.last = &packet;
    return;
  }
  queue.first = queue.last = &packet;
  const Cycle at = std::max(now_, queue.gone) + head_wait_;
  if (at > now_) {
    wake(queue, at);
  } else {
    evaluate(queue);
  }
}

void HopCommitEngine::evaluate(Queue& queue) {
  if (queue.first == nullptr || queue.trailing_packet != nullptr) return;  // woken for nothing
  if (queue.source) {
    inject(queue);
  } else {
    forward(queue);
  }
}

/// Whether the places of the first `flits` flits, or of as many as the buffer holds, are decided.
bool HopCommitEngine::decided(const Queue& buffer, unsigned flits, std::uint32_t depth) {
  if (depth == kUnlimited) return true;
  return static_cast<std::int32_t>(buffer.assigned + in_flight(flits, depth) - depth - buffer.departed) <= 0;
}

/// From when on the place of flit `flit` of the next packet may be used. REQUIRES: it is decided.
Cycle HopCommitEngine::usable(const Queue& buffer, unsigned flit, std::uint32_t depth) {
  if (depth == kUnlimited) return 0;
  return buffer.reusable[(buffer.assigned + flit - depth) & (buffer.reusable.size() - 1)];
}

// A source takes a channel with a place for the first flit; else the one that gets one first.
void HopCommitEngine::inject(Queue& line) {
  Packet& packet = *line.first;
  Link& link = line.port->in;
  Network& net = network(link, split_.network(line.number));
  const unsigned flits = flits_(packet), vcs = config_.vcs_per_set;
  const Cycle earliest = std::max({now_, packet.first_cycle, line.gone});
  const Cycle sooner = reuse_ - source_reuse_;
  unsigned best = kNoVc;
  Cycle best_at = kNoCycle;
  for (unsigned i = 0; i < vcs && best_at > earliest; ++i) {
    unsigned k = net.next + i;
    if (k >= vcs) k -= vcs;
    if (!any_ && k != own_channel(line)) continue;
    if (net.free[k] == kNoCycle || !decided(net.vcs[k], flits, link.depth)) continue;
    const Cycle place = usable(net.vcs[k], 0, link.depth);
    const Cycle at = std::max({earliest, net.free[k], place < sooner ? 0 : place - sooner});
    if (at >= best_at) continue;
    best = k;
    best_at = at;
  }
  if (best == kNoVc) {
    for (unsigned k = 0; k < vcs; ++k) {
      if (any_ || k == own_channel(line)) net.vcs[k].sender = &line;
    }
    return;
  }
  commit(line, link, net, best, 0, best_at);
}

/// The channel that a packet of `queue` can be given first; kNoVc while none is decided.
unsigned HopCommitEngine::free_channel(const Queue& queue, const Network& network) const {
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

void HopCommitEngine::forward(Queue& queue) {
  Packet& packet = *queue.first;
  const Port& at = *queue.port;
  const unsigned output =
      routes_.next_port(static_cast<std::uint16_t>(at.router), {packet.exit_router, packet.exit_port});
  Link& link = out_link(at.router, output);
  Network& net = network(link, split_.network(queue.number));
  const unsigned flits = flits_(packet);
  unsigned vc = queue.owned;
  if (vc == kNoVc) {
    vc = free_channel(queue, net);
    if (vc == kNoVc) {
      queue.next_waiting = nullptr;
      (net.waiting == nullptr ? net.waiting : net.last_waiting->next_waiting) = &queue;
      net.last_waiting = &queue;
      return;
    }
    queue.va = std::max(now_, net.free[vc]);
  }
  Queue& behind = net.vcs[vc];
  if (!decided(behind, flits, link.depth)) {
    queue.owned = static_cast<std::uint8_t>(vc);
    net.free[vc] = kNoCycle;
    behind.sender = &queue;
    return;
  }
  commit(queue, link, net, vc, output, std::max({now_, queue.va + allocated_, usable(behind, 0, link.depth)}));
}

Passage HopCommitEngine::reserve_slots(Queue& queue, Link& link, Cycle earliest, unsigned flits) {
  SlotMap& output = link.slots;
  output.advance(now_);
  SlotMap& input = queue.source ? output : queue.port->slots;
  input.advance(now_);
  if (!has_priority(static_cast<int>(split_.network(queue.number))))
    return reserve(output, input, earliest, flits, picks_);
  link.urgent.advance(now_);
  SlotMap& urgent = queue.source ? link.urgent : queue.port->urgent;
  urgent.advance(now_);
  const Passage passage = reserve(link.urgent, urgent, earliest, flits, false);
  if (passage.first == kNoCycle) return passage;
  for (unsigned i = 0; i < flits; ++i) {
    displace(output, passage.first + i);
    if (!queue.source) displace(input, passage.first + i);
  }
  return passage;
}

// The packet's way over one link is decided.
void HopCommitEngine::commit(Queue& queue, Link& link, Network& net, unsigned vc, unsigned output, Cycle earliest) {
  constexpr Cycle kLater = 16;
  if (earliest > now_ + kReserveReach) {
    wake(queue, earliest - kReserveReach);
    return;
  }
  Packet& packet = *queue.first;
  const unsigned flits = flits_(packet);
  Passage passage = reserve_slots(queue, link, earliest, flits);
  if (passage.first == kNoCycle) {
    wake(queue, now_ + kLater);
    return;
  }
  packet.waited += static_cast<std::uint32_t>(passage.last - earliest - (flits - 1));
  if (!queue.source) follow(queue, packet, passage.first, flits);
  passage.last = std::max(passage.last, packet.last_cycle);
  Queue& behind = net.vcs[vc];
  const bool whole = flits <= link.depth;
  if (whole) {
    Cycle place = usable(behind, flits - 1, link.depth);
    if (queue.source) place -= std::min(place, reuse_ - source_reuse_);
    passage.last = std::max(passage.last, place);
  }
  behind.assigned += flits;
  net.next = static_cast<std::uint8_t>(vc + 1 == config_.vcs_per_set ? 0 : vc + 1);
  queue.first = packet.next;
  packet.next = nullptr;
  queue.owned = static_cast<std::uint8_t>(vc);
  queue.output = static_cast<std::uint8_t>(output);
  packet.vc = static_cast<std::uint8_t>(config_.first_vc(static_cast<int>(split_.network(queue.number))) + vc);
  const Passage arrival{passage.first + (queue.source ? injection_ : hop_),
                        passage.last + (queue.source ? injection_ : hop_)};
  packet.last_cycle = arrival.last;
  if (!whole) {
    sc_assert(link.port != nullptr);  // outside the network there is room for whole packets
    net.free[vc] = kNoCycle;
    behind.trailing = &queue;
    queue.trailing_packet = &packet;
    queue.passage = passage;
  }
  if (queue.source) {
    push(behind, &packet, arrival.first);
  } else {
    sent_to_ = &behind;
    actions_.head(queue.port->router, queue.port->number, output, packet, arrival.first);
    sent_to_ = nullptr;
  }
  if (whole) finish(queue, packet, link, net, passage);
}

// A packet that is longer than the buffer `buffer` goes on from there: the way of its tail to it is now known.
void HopCommitEngine::follow(Queue& buffer, Packet& packet, Cycle first, unsigned flits) {
  if (buffer.trailing == nullptr) return;
  Queue& sender = *buffer.trailing;
  if (sender.trailing_packet != &packet) return;
  buffer.trailing = nullptr;
  sender.trailing_packet = nullptr;
  Link& link = buffer.port->in;
  const Cycle reuse = sender.source ? source_reuse_ : reuse_;
  sender.passage.last = std::max(sender.passage.last, first + (flits - 1 - link.depth) + reuse);
  packet.last_cycle = sender.passage.last + (sender.source ? injection_ : hop_);
  finish(sender, packet, link, network(link, split_.network(buffer.number)), sender.passage);
}

void HopCommitEngine::finish(Queue& queue, Packet& packet, Link& link, Network& net, const Passage& passage) {
  const unsigned vc = queue.owned;
  queue.owned = kNoVc;
  net.free[vc] = passage.last + 1;
  queue.gone = passage.last + 1;
  if (!queue.source) depart(queue, flits_(packet), passage);
  if (queue.first != nullptr) {
    const Cycle ready = queue.source ? std::max(queue.first->first_cycle, queue.gone) : queue.gone + head_wait_;
    wake(queue, std::max(now_, ready));
  }
  if (net.waiting != nullptr) serve_waiting(net);
  leave(queue, packet, link, net.vcs[vc], passage);
}

// Writes down when the places of the packet's flits may be used again.
void HopCommitEngine::depart(Queue& queue, unsigned flits, const Passage& passage) {
  const std::size_t mask = queue.reusable.size() - 1;
  const Cycle first = passage.first + reuse_;
  const Cycle gaps = passage.last - passage.first - (flits - 1);
  if (gaps == 0) {
    for (unsigned i = 0; i < flits; ++i) queue.reusable[queue.departed++ & mask] = first + i;
  } else {
    for (unsigned i = 0; i < flits; ++i) queue.reusable[queue.departed++ & mask] = first + i + gaps * i / (flits - 1);
  }
  if (queue.sender == nullptr) return;
  Queue& sender = *queue.sender;
  queue.sender = nullptr;
  wake(sender, now_);
}

// Tells the modules of a packet whose passage is final.
void HopCommitEngine::leave(Queue& queue, Packet& packet, Link& link, Queue& behind, const Passage& passage) {
  const Port& from = *queue.port;
  if (queue.source) {
    actions_.injected(from.router, from.number, packet, passage.first + injection_, passage.last + injection_);
    return;
  }
  Cycle tail = passage.last + hop_;
  if (link.port == nullptr) {
    if (late_) tail += packet.waited * kLateTenths / 10;
    tail = std::max(tail, behind.gone);  // in the order of departure
    behind.gone = tail + 1;
  }
  actions_.tail(from.router, from.number, queue.output, packet, passage.first + hop_, tail);
}

// A channel of `net` is decided: one of those that wait for it may have it.
void HopCommitEngine::serve_waiting(Network& net) {
  Queue* before = nullptr;
  for (Queue* at = net.waiting; at != nullptr; before = at, at = at->next_waiting) {
    if (free_channel(*at, net) == kNoVc) continue;
    (before == nullptr ? net.waiting : before->next_waiting) = at->next_waiting;
    if (net.last_waiting == at) net.last_waiting = before;
    wake(*at, now_);
    return;
  }
}

std::unique_ptr<MeshEngine> make_hop_commit_engine(const NocConfig& config, const NetworkRoutes& routes,
                                                   MeshEngine::Actions& actions) {
  return std::make_unique<HopCommitEngine>(config, routes, actions);
}

}  // namespace kernbench
