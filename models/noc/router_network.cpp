#include "models/noc/router_network.h"

#include <algorithm>

#include "models/noc/router_ports.h"

namespace kernbench {

RouterNetwork::RouterNetwork(const NocConfig& config, const NetworkRoutes& routes, EventQueue& queue, Grade grade)
    : queue_(queue),
      clock_(config.clock_hz),
      flits_of_(config.flit_bytes),
      hop_(Cycle{config.routing_delay} + config.vc_alloc_delay + config.sw_alloc_delay + config.switch_delay +
           config.link_delay),
      period_(kPsPerSecond % config.clock_hz == 0 ? kPsPerSecond / config.clock_hz : 0),
      hop_time_(hop_ * period_),
      config_(config),
      routes_(routes),
      grade_(grade) {
  check(config_);
  engine_ =
      grade == Grade::fast ? make_hop_commit_engine(config_, routes, *this) : make_flit_engine(config_, routes, *this);
}

RouterNetwork::~RouterNetwork() = default;

unsigned RouterNetwork::add(RouterPorts& router, RouterInput* inputs, RouterOutput* outputs, unsigned ports) {
  engine_->add_router(ports);
  routers_.push_back(&router);
  inputs_.push_back(inputs);
  outputs_.push_back(outputs);
  return static_cast<unsigned>(routers_.size()) - 1;
}

unsigned RouterNetwork::debug(unsigned router, BackDoor& access) const {
  const std::uint8_t port = routes_.next_port(static_cast<std::uint16_t>(router), access.exit);
  return outputs_[router][port].peer->debug(access);
}

void RouterNetwork::soon(unsigned router, unsigned output, unsigned channel) {
  const RouterOutput& to = outputs_[router][output];
  __builtin_prefetch(to.peer);
  if (to.usage == nullptr) return;
  __builtin_prefetch(to.usage, 1);
  __builtin_prefetch(&to.vcs[channel], 1);
  __builtin_prefetch(&to.vcs[channel + config_.vcs_per_set / 2], 1);
}

// Both run once a hop: what only some runs want (RouterOutput::reached) is a call away.

// Returns when a packet's head reaches what an output is bound to. What of a hop is not waiting is charged at the ends:
// the packet's entry (RouterInput::offer) has taken that time from `mesh`, its exit adds its own.
[[gnu::always_inline]] inline Ps RouterNetwork::reach(const RouterOutput& to, Packet& packet, Cycle head) {
  const Ps time = this->time(head), least = period_ != 0 ? hop_time_ : time - clock_.at(head - hop_);
  const Ps waited = time - packet.head - least;
  if (waited != 0) {
    packet.charge(Delay::contention, waited);
    packet.charge(Delay::mesh, -waited);
  }
  if (to.usage != nullptr) to.reached(packet, time, waited, busy_of(packet));
  if (to.leaves) packet.charge(Delay::mesh, time);
  return packet.head = time;
}

// Statistics and tracks of a packet whose passage is final.
[[gnu::always_inline]] inline void RouterNetwork::leave(RouterOutput& to, unsigned router, unsigned input,
                                                        Packet& packet, Cycle head, Cycle tail) {
  packet.tail = clock_.at(tail);
  to.stats.packets += grade_ == Grade::fast ? packet.packets() : 1;  // only the fast grade has trains
  to.stats.bytes += packet.bytes;
  const Ps busy = busy_of(packet);
  to.stats.busy += busy;
  if (to.usage != nullptr) {
    to.usage->busy(packet.tail - busy, packet.tail, packet.bytes, packet.packets());
    if (grade_ != Grade::fast) --inputs_[router][input].here;
  }
  if (to.observed) routers_[router]->publish(input, to, packet, head, tail);
}

void RouterNetwork::head(unsigned router, unsigned, unsigned output, Packet& packet, Cycle head) {
  const RouterOutput& to = outputs_[router][output];
  to.peer->head(packet, reach(to, packet, head));
}

void RouterNetwork::tail(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) {
  RouterOutput& to = outputs_[router][output];
  leave(to, router, input, packet, head, tail);
  to.peer->tail(packet, clock_.at(head), packet.tail);
}

void RouterNetwork::pass(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) {
  RouterOutput& to = outputs_[router][output];
  leave(to, router, input, packet, head, tail);
  to.peer->pass(packet, reach(to, packet, head), packet.tail);
}

// Who waits behind a packet that is held up from outside is held up by the same: its chain of causes is that one's from
// then on. What has ended before it came here has not hindered it.
void RouterNetwork::freed(unsigned router, unsigned output, Packet& packet, const Packet* by) {
  if (queue_.causes() == nullptr || by == &packet || (by != nullptr && !by->held)) return;
  const Cause& cause = by != nullptr ? by->cause : outputs_[router][output].room;
  const Ps until = CauseLog::end_of(cause);
  if (until <= std::max(packet.head, CauseLog::end_of(packet.cause))) return;
  packet.cause = cause;
  packet.held = true;
  packet.contended = packet.spent[static_cast<std::size_t>(Delay::contention)] + (until - packet.head);
}

void RouterNetwork::injected(unsigned router, unsigned input, Packet& packet, Cycle head, Cycle tail) {
  routers_[router]->input(input).peer->injected(packet, clock_.at(head), clock_.at(tail));
}

void RouterNetwork::wake(Cycle at) {
  queue_.at(clock_.at(at), [this, at] {
    step_time_ = queue_.now();
    step_cycle_ = at;
    engine_->step(at);
  });
}

}  // namespace kernbench
