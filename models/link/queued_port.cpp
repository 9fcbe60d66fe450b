#include "models/link/queued_port.h"

namespace kernbench {

QueuedPort::Queue& QueuedPort::queue(unsigned vc) {
  auto& queues = queues_[split_.network(vc)];
  if (!queues) {
    queues = std::make_unique<Queue[]>(split_.vcs_per_set());
    for (unsigned k = 0; k < split_.vcs_per_set(); ++k) queues[k].vc = vc - split_.channel(vc) + k;
  }
  return queues[split_.channel(vc)];
}

Cycle QueuedPort::ready(const Queue& queue) {
  return std::max(free_, credits_.ready(queue.vc, actions_.units(*queue.first)));
}

// The lowest goes first.
unsigned QueuedPort::rank(const Queue& queue) const {
  const unsigned network = split_.network(queue.vc);
  const unsigned channel = split_.channel(queue.vc);
  const unsigned turn = (network + kVirtualNetworks - next_network_) % kVirtualNetworks;
  const unsigned next = next_channel_[network];
  const unsigned inner = channel >= next ? channel - next : channel + split_.vcs_per_set() - next;
  return (has_priority(static_cast<int>(network)) ? 0U : 1U) << 16 | turn << 8 | inner;
}

void QueuedPort::offer(Packet& packet, unsigned vc, Cycle now) {
  packet.next = nullptr;
  if (idle(packet, vc, now)) {
    serve(packet, vc, now);
    return;
  }
  Queue& queue = this->queue(vc);
  if (queue.first != nullptr) {
    queue.last->next = &packet;
    queue.last = &packet;
    return;
  }
  queue.first = queue.last = &packet;
  queue.next = waiting_;
  waiting_ = &queue;
  const Cycle can = ready(queue);
  if (can != kNoCycle) wake(std::max(can, now));
}

void QueuedPort::arbitrate(Cycle now) {
  if (wake_ != now) return;
  wake_ = kNoCycle;
  Queue** best = nullptr;
  unsigned best_rank = 0;
  Cycle next = kNoCycle;
  for (Queue** at = &waiting_; *at != nullptr; at = &(*at)->next) {
    const Cycle can = ready(**at);
    if (can > now) {
      next = std::min(next, can);
      continue;
    }
    const unsigned r = rank(**at);
    if (best == nullptr || r < best_rank) {
      best = at;
      best_rank = r;
    }
  }
  if (best != nullptr) {
    Queue& queue = **best;
    Packet& packet = *queue.first;
    queue.first = packet.next;
    packet.next = nullptr;
    if (queue.first == nullptr) *best = queue.next;
    serve(packet, queue.vc, now);
    next = kNoCycle;
    for (const Queue* other = waiting_; other != nullptr; other = other->next) next = std::min(next, ready(*other));
  }
  if (next != kNoCycle) wake(std::max(next, now));
}

void QueuedPort::serve(Packet& packet, unsigned vc, Cycle now) {
  const unsigned network = split_.network(vc);
  const unsigned channel = split_.channel(vc);
  next_network_ = network + 1 == kVirtualNetworks ? 0 : network + 1;
  next_channel_[network] = static_cast<std::uint8_t>(channel + 1 == split_.vcs_per_set() ? 0 : channel + 1);
  const unsigned units = actions_.units(packet);
  const Release release = actions_.serve(packet, now);
  credits_.take(vc, units, release.channel);
  free_ = release.port;
}

void QueuedPort::credit(unsigned vc, unsigned units, Cycle when, Cycle now) {
  credits_.add(vc, units, when, now);
  if (waiting_ == nullptr) return;
  const Queue& queue = this->queue(vc);
  if (queue.first == nullptr) return;
  const Cycle can = ready(queue);
  if (can != kNoCycle) wake(std::max(can, now));
}

void QueuedPort::wake(Cycle at) {
  if (at >= wake_) return;
  wake_ = at;
  actions_.wake(at);
}

}  // namespace kernbench
