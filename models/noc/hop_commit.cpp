#include "models/noc/hop_commit.h"

#include <algorithm>
#include <utility>

#include "models/noc/hop_commit_inline.h"

namespace kernbench {

HopCommitEngine::HopCommitEngine(const NocConfig& config, const NetworkRoutes& routes, Actions& actions)
    : MeshEngine(config, routes, actions),
      picks_(config.switch_policy == SwitchPolicy::interleave),
      late_(picks_ && config.vcs_per_set > 1),
      first_port_{0} {}

// Time.

void HopCommitEngine::wake(Queue& queue, Cycle at) {
  if (queue.wake == at) return;
  queue.wake = at;
  push({&queue, nullptr, nullptr}, at);
}

void HopCommitEngine::arm() {
  const Cycle next = wheel_.next(now_);
  if (next >= armed_) return;
  armed_ = next;
  actions_.wake(next);
}

[[gnu::always_inline]] inline void HopCommitEngine::append(Queue& queue, Packet& packet, Network& to) {
  packet.next = nullptr;
  if (queue.first != nullptr || (queue.watched && queue.trailing_packet != nullptr)) {
    (queue.first == nullptr ? queue.first : queue.last->next) = &packet;
    queue.last = &packet;
    return;
  }
  queue.first = queue.last = &packet;
  Cycle at = now_ + head_wait_;
  if (queue.gone > now_) at = chaining_ ? queue.gone - 1 : queue.gone + head_wait_;
  if (at > now_) {
    wake(queue, at);
  } else {
    forward(queue, to);
  }
}

void HopCommitEngine::step(Cycle now) {
  if (now != armed_) return;
  armed_ = kNoCycle;
  now_ = now;
  busy_ = true;
  wheel_.run(
      now,
      [this, now](const Entry& entry, Cycle at) {
        if (at > now) {
          push(entry, at);
        } else if (entry.packet != nullptr) {
          --entry.queue->arriving;
          append(*entry.queue, *entry.packet, *entry.to);
          run_ahead();
        } else if (entry.queue->wake == now) {
          entry.queue->wake = kNoCycle;
          evaluate(*entry.queue);
          run_ahead();
        }
      },
      &fetch, [this](const Entry& entry) { fetch_next(entry); });
  busy_ = false;
  arm();
  wheel_.begin(armed_, &fetch);
}

// A hop waits for memory more than for anything else: what it needs is fetched while those before it are handled.
void HopCommitEngine::fetch(const Entry& entry) {
  __builtin_prefetch(entry.queue);
  if (entry.packet == nullptr) return;
  __builtin_prefetch(entry.packet);
  __builtin_prefetch(entry.to);
}

void HopCommitEngine::fetch_next(const Entry& entry) const {
  __builtin_prefetch(entry.queue->port);
  if (entry.to == nullptr) return;
  __builtin_prefetch(entry.to->link);
  __builtin_prefetch(entry.to->vcs + entry.to->next);
  actions_.soon(entry.to->router, entry.to->output,
                static_cast<unsigned>(entry.packet->virtual_network()) * config_.vcs_per_set);
}

// Calls.

void HopCommitEngine::offer(unsigned router, unsigned input, Packet& packet, Cycle first, Cycle last, Cycle now) {
  now_ = now;
  packet.first_cycle = first;
  packet.last_cycle = last;
  packet.waited = 0;
  Queue& line = source_line(router, input, packet);
  const bool alone = line.first == nullptr && line.trailing_packet == nullptr;
  packet.next = nullptr;
  (line.first == nullptr ? line.first : line.last->next) = &packet;
  line.last = &packet;
  if (!alone) return;
  const Cycle at = std::max(first, line.gone);
  if (at <= now + 1 && !busy_) {
    busy_ = true;
    inject(line);
    run_ahead();
    busy_ = false;
    arm();
  } else {
    wake(line, at);
  }
}

// Only ever called from within head().
void HopCommitEngine::arrive([[maybe_unused]] unsigned router, [[maybe_unused]] unsigned input, Packet& packet,
                             Cycle head) {
  sc_assert(sent_to_ != nullptr && sent_by_->router == router && sent_by_->number == input);
  go_on(*sent_to_, packet, head);
}

void HopCommitEngine::credit(unsigned router, unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now) {
  now_ = now;
  Network& net = beyond(router, output, split_.network(vc));
  if (net.link->depth == kUnlimited) return;
  Queue& buffer = net.vcs[split_.channel(vc)];
  const Cycle usable = when + config_.sw_alloc_delay;
  record(buffer, flits, usable, usable + flits - 1);
  buffer.gone = std::max(buffer.gone, usable + flits);
  if (buffer.watched) wake_sender(buffer);
}

// Packets.

void HopCommitEngine::evaluate(Queue& queue) {
  if (queue.first == nullptr || (queue.watched && queue.trailing_packet != nullptr)) return;  // woken for nothing
  if (queue.source) {
    inject(queue);
  } else {
    forward(queue, route(queue, *queue.first));
  }
}

// Ahead of the present.

/// The packet's head reaches `queue` at `at`.
void HopCommitEngine::go_on(Queue& queue, Packet& packet, Cycle at) {
  const bool goes_ahead = queue.level != kOrdinary || flits_(packet) >= kShortestAhead;
  if (goes_ahead && ahead_.packet == nullptr && at <= now_ + kFarthestAhead) {
    ahead_ = {&queue, &packet, at};
    __builtin_prefetch(queue.port);
    __builtin_prefetch(queue.onward);
  } else {
    arrive(queue, packet, at);
  }
}

/// Decides on the coming hops of the packet that was sent on last, as long as nothing is in its way.
void HopCommitEngine::run_ahead() {
  while (ahead_.packet != nullptr) {
    const Ahead next = std::exchange(ahead_, Ahead());
    if (!pass_idle(*next.queue, *next.packet, next.at)) arrive(*next.queue, *next.packet, next.at);
  }
}

/// Forwards a packet whose head will be there at `head`, if all that it needs will be free.
bool HopCommitEngine::pass_idle(Queue& queue, Packet& packet, Cycle head) {
  if (queue.first != nullptr || queue.arriving != 0 || queue.gone > head) return false;
  if (queue.watched && queue.trailing_packet != nullptr) return false;
  Network& net = route(queue, packet);
  const Cycle at = head + head_wait_, earliest = at + allocated_;
  const unsigned vc = net.waiting != nullptr ? kNoVc : free_channel(queue, net);
  if (vc == kNoVc || net.free[vc] > at) return false;
  const Queue& behind = net.vcs[vc];
  Link& link = *net.link;
  if (!decided(behind, flits_(packet), link.depth) || usable(behind, 0, link.depth) > earliest) return false;
  if (queue.level == kOrdinary && free_from(queue, link, earliest) > earliest) return false;
  packet.next = nullptr;
  queue.first = queue.last = &packet;
  queue.va = at;
  queue.output = net.output;
  commit(queue, net, vc, earliest);
  return true;
}

// Decisions.

// A decision at `buffer` has been made: its sender, if one waits for it, looks again.
void HopCommitEngine::wake_sender(Queue& buffer) {
  if (buffer.sender == nullptr) return;
  Queue& sender = *std::exchange(buffer.sender, nullptr);
  buffer.watch();
  wake(sender, now_);
}

void HopCommitEngine::await(Queue& buffer, Queue& sender) {
  buffer.sender = &sender;
  buffer.watched = true;
}

// A source takes a channel with a place for the first flit; else the one that gets one first.
void HopCommitEngine::inject(Queue& line) {
  Packet& packet = *line.first;
  Link& link = line.port->in;
  Network& net = **line.onward;
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
      if (any_ || k == own_channel(line)) await(net.vcs[k], line);
    }
    return;
  }
  commit(line, net, best, best_at);
}

void HopCommitEngine::forward(Queue& queue, Network& net) {
  unsigned vc = queue.owned;
  if (vc == kNoVc) {
    if (now_ >= queue.gone) {
      vc = free_channel(queue, net);
      if (vc == kNoVc) {
        queue.next_waiting = nullptr;
        (net.waiting == nullptr ? net.waiting : net.last_waiting->next_waiting) = &queue;
        net.last_waiting = &queue;
        return;
      }
      if (net.free[vc] <= now_ && pass_freely(queue, net, vc)) return;
      queue.va = std::max(now_, net.free[vc]);
    } else if (may_chain(queue, net.output, net)) {
      vc = queue.channel;
      queue.va = queue.gone - allocated_;
    } else {
      wake(queue, queue.gone + head_wait_);
      return;
    }
  }
  queue.output = net.output;
  Queue& behind = net.vcs[vc];
  const std::uint32_t depth = net.link->depth;
  if (!decided(behind, flits_(*queue.first), depth)) {
    queue.owned = static_cast<std::uint8_t>(vc);
    net.free[vc] = kNoCycle;
    await(behind, queue);
    return;
  }
  commit(queue, net, vc, std::max({now_, queue.va + allocated_, usable(behind, 0, depth)}));
}

// The same as commit() and finish() for the commonest case, a hop on which nothing is in the way; false: something is.
[[gnu::always_inline]] inline bool HopCommitEngine::pass_freely(Queue& queue, Network& net, unsigned vc) {
  Packet& packet = *queue.first;
  Link& link = *net.link;
  Queue& behind = net.vcs[vc];
  SlotMap &output = link.slots.ordinary, &input = queue.port->slots.ordinary;
  const unsigned flits = flits_(packet), taken = places(flits, link);
  const Cycle first = now_ + allocated_, last = first + flits - 1;
  const bool alone = packet.next == nullptr && net.waiting == nullptr && !queue.watched && queue.level == kOrdinary;
  const bool room = link.depth == kUnlimited ||
                    (behind.assigned == behind.departed && behind.gone + reuse_ <= now_ && taken <= link.depth);
  if (!alone || !room || !output.free_from(first) || !input.free_from(first) || last > now_ + SlotMap::kReach)
    return false;
  output.take_run(first, last, now_);
  input.take_run(first, last, now_);
  const Cycle tail = std::max(last, packet.last_cycle);
  behind.assigned += taken;
  net.next = static_cast<std::uint8_t>(vc + 1 == split_.vcs_per_set() ? 0 : vc + 1);
  net.free[vc] = queue.gone = tail + 1;
  queue.first = nullptr;
  queue.output = net.output;
  queue.channel = static_cast<std::uint8_t>(vc);
  record(queue, flits, first + reuse_, tail + reuse_);
  packet.vc = behind.number;
  packet.first_cycle = first + hop_;
  packet.last_cycle = tail + hop_;
  sent_to_ = &behind;
  sent_by_ = &link;
  const Cycle there = link.port != nullptr ? packet.last_cycle : delivery(packet, behind, packet.last_cycle);
  actions_.pass(net.router, queue.port->number, net.output, packet, packet.first_cycle, there);
  return true;
}

bool HopCommitEngine::may_chain(const Queue& queue, unsigned output, const Network& net) const {
  return queue.output == output && net.free[queue.channel] == queue.gone && net.waiting == nullptr &&
         queue.first->first_cycle + head_wait_ < queue.gone;
}

// The flits of a packet of level `level` take their cycles from those of the levels behind it.
void HopCommitEngine::push_aside(hop::Maps& output, hop::Maps& input, unsigned level, Cycle first, unsigned flits) {
  for (unsigned behind = level + 1; behind <= kOrdinary; ++behind) {
    displace(output[behind], first, flits, now_);
    if (&input != &output) displace(input[behind], first, flits, now_);
  }
}

// The packet's way over one link is decided.
[[gnu::always_inline]] inline void HopCommitEngine::commit(Queue& queue, Network& net, unsigned vc, Cycle earliest) {
  constexpr Cycle kLater = 16;
  if (earliest > now_ + kReserveReach) {
    wake(queue, earliest - kReserveReach);
    return;
  }
  Link& link = *net.link;
  Packet& packet = *queue.first;
  const unsigned flits = flits_(packet);
  if (flits > kLongestShared) {
    earliest = free_from(queue, link, earliest);
    if (earliest > now_ + kReserveReach) {
      wake(queue, earliest - kReserveReach);
      return;
    }
  }
  Passage passage = reserve_slots(queue, link, earliest, flits);
  if (passage.first == kNoCycle) {
    wake(queue, std::max(now_ + kLater, packet.first_cycle));
    return;
  }
  if (flits <= kLongestShared) packet.waited += static_cast<std::uint32_t>(passage.last - earliest - (flits - 1));
  if (queue.watched && queue.trailing != nullptr) follow(queue, packet, passage.first, flits);
  passage.last = std::max(passage.last, packet.last_cycle);
  Queue& behind = net.vcs[vc];
  const unsigned taken = places(flits, link);
  const bool whole = taken <= link.depth;
  if (whole) {
    Cycle place = usable(behind, taken - 1, link.depth);
    if (queue.source) place -= std::min(place, reuse_ - source_reuse_);
    passage.last = std::max(passage.last, place);
  }
  behind.assigned += taken;
  net.next = static_cast<std::uint8_t>(vc + 1 == config_.vcs_per_set ? 0 : vc + 1);
  queue.first = packet.next;
  queue.owned = static_cast<std::uint8_t>(vc);
  packet.vc = behind.number;
  const Cycle way = queue.source ? injection_ : hop_;
  packet.first_cycle = passage.first + way;
  packet.last_cycle = passage.last + way;
  if (!whole) {
    net.free[vc] = kNoCycle;
    behind.trailing = &queue;
    queue.trailing_packet = &packet;
    queue.passage = passage;
    queue.watched = behind.watched = true;
  }
  sent_to_ = &behind;
  sent_by_ = &link;
  const Port& from = *queue.port;
  if (queue.source) {
    go_on(behind, packet, packet.first_cycle);
    if (whole) finish(queue, packet, flits, net, passage);
  } else if (!whole) {
    actions_.head(from.router, from.number, queue.output, packet, packet.first_cycle);
  } else if (link.port != nullptr) {
    actions_.pass(from.router, from.number, queue.output, packet, packet.first_cycle, packet.last_cycle);
    settle(queue, flits, net, passage);
  } else {
    settle(queue, flits, net, passage);
    const Cycle there = delivery(packet, behind, packet.last_cycle);
    actions_.pass(from.router, from.number, queue.output, packet, packet.first_cycle, there);
  }
}

// A packet that is longer than the buffer `buffer` goes on from there: the way of its tail to it is now known.
void HopCommitEngine::follow(Queue& buffer, Packet& packet, Cycle first, unsigned flits) {
  Queue& sender = *buffer.trailing;
  if (sender.trailing_packet != &packet) return;
  buffer.trailing = nullptr;
  sender.trailing_packet = nullptr;
  buffer.watch();
  sender.watch();
  Link& link = buffer.port->in;
  const Cycle reuse = sender.source ? source_reuse_ : reuse_;
  sender.passage.last = std::max(sender.passage.last, first + (flits - 1 - link.depth) + reuse);
  packet.last_cycle = sender.passage.last + (sender.source ? injection_ : hop_);
  finish(sender, packet, flits, network(link, split_.network(buffer.number)), sender.passage);
}

void HopCommitEngine::finish(Queue& queue, Packet& packet, unsigned flits, Network& net, const Passage& passage) {
  settle(queue, flits, net, passage);
  leave(queue, packet, net, queue.channel, passage);
}

// The passage of the packet that has left `queue` is final.
[[gnu::always_inline]] inline void HopCommitEngine::settle(Queue& queue, unsigned flits, Network& net,
                                                           const Passage& passage) {
  const unsigned vc = queue.owned;
  queue.owned = kNoVc;
  queue.channel = static_cast<std::uint8_t>(vc);
  net.free[vc] = passage.last + 1;
  queue.gone = passage.last + 1;
  if (!queue.source) {
    record(queue, flits, passage.first + reuse_, passage.last + reuse_);
    if (queue.watched) wake_sender(queue);
  }
  if (queue.first != nullptr) {
    const Cycle ready = queue.source ? std::max(queue.first->first_cycle, queue.gone)
                        : chaining_  ? queue.gone - 1
                                     : queue.gone + head_wait_;
    wake(queue, std::max(now_, ready));
  }
  if (net.waiting != nullptr) serve_waiting(net);
}

// Tells the modules of it.
void HopCommitEngine::leave(Queue& queue, Packet& packet, Network& net, unsigned vc, const Passage& passage) {
  const Port& from = *queue.port;
  if (queue.source) {
    actions_.injected(from.router, from.number, packet, passage.first + injection_, passage.last + injection_);
    return;
  }
  Cycle tail = passage.last + hop_;
  if (net.link->port == nullptr) tail = delivery(packet, net.vcs[vc], tail);
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
