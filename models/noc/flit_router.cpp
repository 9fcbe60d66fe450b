#include <utility>

#include "models/noc/flit_engine.h"

// A cycle of a router: allocation of virtual channels to heads, of the switch to flits, and what follows for the
// buffers. Each allocator is one iteration of iSLIP.
namespace kernbench {

namespace {
constexpr unsigned kThroughWeight = 2;  // weighted round robin; assumed: through traffic stands for several sources
constexpr std::uint32_t kNone = ~0U;

// Steps from the one whose turn it is.
std::uint32_t distance(std::uint32_t from, std::uint32_t to, std::uint32_t all) {
  return to >= from ? to - from : to + all - from;
}
}  // namespace

// A buffer.

std::uint8_t FlitEngine::next_port(const Buffer& buffer, const Packet& packet) const {
  return routes_.next_port(static_cast<std::uint16_t>(buffer.router->index), {packet.exit_router, packet.exit_port});
}

// Whether the next flit can go at cycle `at`. If not, the buffer will be looked at when it can: at a known time, when
// the hop before sends the flit (starved), or when the next buffer gives a place back (sender_blocked).
bool FlitEngine::can_send(Buffer& buffer, Cycle at) {
  const std::uint32_t here = buffer.missing();
  if (here == 0) {
    buffer.starved = true;
    return false;
  }
  const Cycle arrival = buffer.arrived.nth_last(here, at);
  if (arrival > at) {
    schedule(buffer, arrival);
    return false;
  }
  const Cycle usable = buffer.down->place(at);
  if (usable == kNoCycle) {
    buffer.down->sender_blocked = true;
    return false;
  }
  if (usable > at) {
    schedule(buffer, usable);
    return false;
  }
  return true;
}

void FlitEngine::evaluate(Buffer& buffer, Cycle at) {
  if (!can_send(buffer, at)) return;
  Router& router = *buffer.router;
  buffer.ready_at = static_cast<std::uint32_t>(router.ready.size());
  router.ready.push_back(&buffer);
  list(router);
}

// A flit has won the switch.
void FlitEngine::send(Buffer& buffer, Cycle now) {
  Router& router = *buffer.router;
  Buffer& down = *buffer.down;
  Packet& packet = *buffer.current;
  const Cycle arrival = now + hop_;
  buffer.freed.add(now + buffer.reuse);
  if (buffer.sender_blocked) {
    buffer.sender_blocked = false;
    if (buffer.sender != nullptr) {
      actions_.freed(router.index, buffer.output, *buffer.sender->current, &packet);
      schedule(*buffer.sender, now + buffer.reuse);
    } else {
      freed_source(buffer, packet);
      schedule(*buffer.from->source, now + buffer.reuse);
    }
  }
  down.arrived.add(arrival);
  if (down.starved) {
    down.starved = false;
    schedule(down, arrival);
  }
  if (++buffer.sent == 1) {
    buffer.head = arrival;
    packet.vc = static_cast<std::uint8_t>(buffer.network * split_.vcs_per_set() + buffer.out_vc);
    actions_.head(router.index, buffer.input, buffer.output, packet, arrival);
  }
  const bool last = buffer.sent == buffer.flits;
  if (last || !can_send(buffer, now + 1)) {
    Buffer& moved = *router.ready.back();
    moved.ready_at = buffer.ready_at;
    router.ready[buffer.ready_at] = &moved;
    router.ready.pop_back();
  }
  if (last) finish(buffer, now);
}

// The tail has gone: its virtual channel is free for others from the next cycle on.
void FlitEngine::finish(Buffer& buffer, Cycle now) {
  Router& router = *buffer.router;
  Packet& packet = *buffer.current;
  const unsigned output = buffer.output;
  const Cycle head = buffer.head;
  flit::OutputNetwork& network = *buffer.to->networks[buffer.network];
  if (!chain(buffer, network, now)) {
    network.free |= 1U << buffer.out_vc;
    for (Buffer* parked = std::exchange(network.parked, nullptr); parked != nullptr;) {
      router.waiting.push_back(parked);
      actions_.freed(router.index, output, *parked->current, &packet);
      parked = std::exchange(parked->next, nullptr);
    }
    buffer.state = Buffer::State::idle;
    buffer.current = nullptr;
    if (buffer.first != nullptr) {
      Packet& next = *std::exchange(buffer.first, buffer.first->next);
      next.next = nullptr;
      actions_.freed(router.index, output, next, &packet);
      make_current(buffer, next, buffer.arrived.nth_last(buffer.missing(), now + 1));
    }
  }
  actions_.tail(router.index, buffer.input, output, packet, head, now + hop_);
}

// Lets the next packet of the buffer have the output channel of the one that ends now.
bool FlitEngine::chain(Buffer& buffer, const flit::OutputNetwork& network, Cycle now) {
  if (!chaining_ || buffer.first == nullptr || now < head_wait_) return false;
  const Cycle latest = now - head_wait_;
  if (buffer.arrived.nth_last(buffer.missing(), latest) > latest) return false;
  for (const Buffer* other = network.parked; other != nullptr; other = other->next) {
    if (any_ || split_.channel(other->vc) == buffer.out_vc) return false;
  }
  Packet& next = *buffer.first;
  if (next_port(buffer, next) != buffer.output) return false;
  buffer.first = std::exchange(next.next, nullptr);
  actions_.freed(buffer.router->index, buffer.output, next, buffer.current);
  buffer.current = &next;
  buffer.flits = static_cast<std::uint16_t>(flits_(next));
  buffer.sent = 0;
  evaluate(buffer, now + 1);
  return true;
}

// A router's cycle.

void FlitEngine::run(Router& router, Cycle now) {
  if (!router.waiting.empty()) {
    allocate_vcs(router);
    if (allocated_ == 0) {
      for (Buffer* buffer : granted_) evaluate(*buffer, now);
      granted_.clear();
    }
  }
  if (!router.ready.empty()) allocate_switch(router, now);
  for (Buffer* buffer : granted_) evaluate(*buffer, now + 1);
  granted_.clear();
}

// Virtual channels.

std::uint32_t FlitEngine::index_of(unsigned port, unsigned network, unsigned channel) const {
  return port * vcs_ + network * split_.vcs_per_set() + channel;
}

// Free channels that a head asks for.
std::uint32_t FlitEngine::wanted(const Buffer& buffer, const flit::OutputNetwork& network) const {
  return any_ ? network.free : network.free & 1U << split_.channel(buffer.vc);
}

void FlitEngine::allocate_vcs(Router& router) {
  if (router.waiting.size() == 1) {
    Buffer& only = *router.waiting.front();
    router.waiting.clear();
    allocate_vc(router, only);
    return;
  }
  requests_.clear();
  for (Buffer* buffer : router.waiting) {
    flit::OutputNetwork& network = output_network(router, buffer->output, buffer->network);
    if (wanted(*buffer, network) != 0) {
      requests_.push_back({buffer, &network, 0, kNone, false});
    } else {
      buffer->next = std::exchange(network.parked, buffer);
    }
  }
  router.waiting.clear();
  if (!requests_.empty()) match_vcs(router);
}

// The only head that asks: every free channel would pick it.
void FlitEngine::allocate_vc(Router& router, Buffer& buffer) {
  flit::OutputNetwork& network = output_network(router, buffer.output, buffer.network);
  const std::uint32_t free = wanted(buffer, network);
  if (free == 0) {
    buffer.next = std::exchange(network.parked, &buffer);
    return;
  }
  const std::uint32_t base = index_of(buffer.output, buffer.network, 0), next = buffer.accept_next;
  const unsigned from = next > base && next < base + split_.vcs_per_set() ? next - base : 0;
  const std::uint32_t ahead = free >> from << from;
  grant_vc(router, buffer, network, static_cast<unsigned>(__builtin_ctz(ahead != 0 ? ahead : free)));
}

void FlitEngine::match_vcs(Router& router) {
  const std::uint32_t all = router.ports * vcs_;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i].seen) continue;
    flit::OutputNetwork& network = *requests_[i].network;
    const Buffer& one = *requests_[i].buffer;
    for (std::uint32_t rest = network.free; rest != 0; rest &= rest - 1) {
      const unsigned channel = static_cast<unsigned>(__builtin_ctz(rest));
      VcRequest* best = nullptr;
      std::uint32_t best_turn = kNone;
      for (std::size_t j = i; j < requests_.size(); ++j) {
        VcRequest& request = requests_[j];
        if (request.network != &network) continue;
        request.seen = true;
        const Buffer& buffer = *request.buffer;
        if (!any_ && split_.channel(buffer.vc) != channel) continue;
        const std::uint32_t turn = distance(network.vcs[channel].grant_next, buffer.input * vcs_ + buffer.vc, all);
        if (turn < best_turn) {
          best_turn = turn;
          best = &request;
        }
      }
      if (best == nullptr) continue;
      const std::uint32_t rank = distance(best->buffer->accept_next, index_of(one.output, one.network, channel), all);
      if (rank < best->rank) {
        best->rank = rank;
        best->channel = channel;
      }
    }
  }
  for (const VcRequest& request : requests_) {
    if (request.rank != kNone) {
      grant_vc(router, *request.buffer, *request.network, request.channel);
    } else {
      router.waiting.push_back(request.buffer);
    }
  }
}

void FlitEngine::grant_vc(Router& router, Buffer& buffer, flit::OutputNetwork& network, unsigned channel) {
  const std::uint32_t all = router.ports * vcs_;
  flit::OutputVc& vc = network.vcs[channel];
  network.free &= ~(1U << channel);
  turn(vc.grant_next, vc.streak, buffer.input * vcs_ + buffer.vc, all, buffer.input);
  const std::uint32_t accepted = index_of(buffer.output, buffer.network, channel) + 1;
  buffer.accept_next = accepted == all ? 0 : accepted;
  buffer.out_vc = static_cast<std::uint8_t>(channel);
  buffer.down = &behind(router, buffer.output, buffer.network, channel);
  buffer.down->sender = &buffer;
  buffer.state = Buffer::State::active;
  granted_.push_back(&buffer);
}

// Whose turn is next after `winner`, which came through `input`.
template <class Next>
void FlitEngine::turn(Next& next, std::uint8_t& streak, unsigned winner, unsigned all, unsigned input) const {
  if (weighted_ && input < kFirstLocalPort) {
    streak = static_cast<std::uint8_t>(next == winner ? streak + 1 : 1);
    if (streak < kThroughWeight) {
      next = static_cast<Next>(winner);
      return;
    }
  }
  streak = 0;
  next = static_cast<Next>(winner + 1 == all ? 0 : winner + 1);
}

// The switch.

void FlitEngine::allocate_switch(Router& router, Cycle now) {
  if (hold_) {
    match_switch(router, now, Pass::priority);
    if (router.hold_at == now) serve_holds(router, now);
    match_switch(router, now, Pass::ordinary);
  } else if (!all_win(router, now)) {
    match_switch(router, now, Pass::all);
  }
}

// If no two flits want the same port, all of them go.
bool FlitEngine::all_win(Router& router, Cycle now) {
  std::size_t left = router.ready.size();
  if (left > 1) {
    if (router.ports > 64) return false;
    std::uint64_t inputs = 0, outputs = 0;
    for (const Buffer* buffer : router.ready) {
      const std::uint64_t input = std::uint64_t{1} << buffer->input, output = std::uint64_t{1} << buffer->output;
      if ((inputs & input) != 0 || (outputs & output) != 0) return false;
      inputs |= input;
      outputs |= output;
    }
  }
  // From the back: a flit that was its packet's last leaves its place to one that has been served.
  while (left != 0) win(router, *router.ready[--left], now);
  return true;
}

void FlitEngine::match_switch(Router& router, Cycle now, Pass pass) {
  picked_.clear();
  for (Buffer* buffer : router.ready) {
    flit::Output& output = *buffer->to;
    const flit::Input& input = *buffer->from;
    if (pass != Pass::all) {
      if ((buffer->level == kOrdinary) != (pass == Pass::ordinary) || input.busy == now || output.busy == now) continue;
    }
    const std::uint32_t rank = static_cast<std::uint32_t>(buffer->level) << 30 |
                               distance(output.grant_next, buffer->input, router.ports) << 8 |
                               distance(input.vc_next, buffer->vc, vcs_);
    if (output.best == nullptr) {
      picked_.push_back(&output);
    } else if (rank > output.best_rank) {
      continue;
    }
    output.best = buffer;
    output.best_rank = rank;
  }
  accepted_.clear();
  for (flit::Output* output : picked_) {
    Buffer* buffer = std::exchange(output->best, nullptr);
    flit::Input& input = *buffer->from;
    const std::uint32_t rank =
        static_cast<std::uint32_t>(buffer->level) << 30 | distance(input.accept_next, buffer->output, router.ports);
    if (input.best == nullptr) {
      accepted_.push_back(&input);
    } else if (rank > input.best_rank) {
      continue;
    }
    input.best = buffer;
    input.best_rank = rank;
  }
  for (flit::Input* input : accepted_) win(router, *std::exchange(input->best, nullptr), now);
}

void FlitEngine::win(Router& router, Buffer& buffer, Cycle now) {
  flit::Input& input = *buffer.from;
  flit::Output& output = *buffer.to;
  turn(output.grant_next, output.streak, buffer.input, router.ports, buffer.input);
  input.accept_next = static_cast<std::uint16_t>(buffer.output + 1U == router.ports ? 0 : buffer.output + 1U);
  input.vc_next = static_cast<std::uint16_t>(buffer.vc + 1U == vcs_ ? 0 : buffer.vc + 1U);
  if (hold_) {
    hold(router, buffer, now);
  } else {
    send(buffer, now);
  }
}

// Sends a flit under the policy `hold`: a packet whose next flit is already here owns both ports in the next cycle.
void FlitEngine::hold(Router& router, Buffer& buffer, Cycle now) {
  buffer.from->busy = buffer.to->busy = now;
  const std::uint32_t here = buffer.missing();
  const bool keeps = buffer.sent + 1U < buffer.flits && here > 1 && buffer.arrived.nth_last(here - 1, now) <= now;
  send(buffer, now);
  if (!keeps) return;
  if (router.hold_at != now + 1) router.holds.clear();
  router.hold_at = now + 1;
  router.holds.push_back(&buffer);
}

// A held port without a credit stays blocked for this cycle.
void FlitEngine::serve_holds(Router& router, Cycle now) {
  granted_holds_.swap(router.holds);
  router.hold_at = kNoCycle;
  for (Buffer* buffer : granted_holds_) {
    flit::Input& input = *buffer->from;
    flit::Output& output = *buffer->to;
    if (input.busy == now || output.busy == now) continue;  // priority
    const bool ready = buffer->ready_at < router.ready.size() && router.ready[buffer->ready_at] == buffer;
    if (ready) {
      hold(router, *buffer, now);
    } else {
      input.busy = output.busy = now;
    }
  }
  granted_holds_.clear();
}

}  // namespace kernbench
