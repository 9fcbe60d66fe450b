#include "models/link/link_port.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "models/link/link_timing.h"
#include "models/noc/queued_port.h"

namespace kernbench {

namespace {

void check_port(const LinkPort::Config& config, const EventQueue& queue, const EventQueue& peer_queue) {
  check(config.noc);
  const LinkConfig& link = config.link;
  const auto require = [](bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(std::string("LinkConfig: ") + what);
  };
  require(link.buffer_packets >= 2, "buffer_packets must be at least 2");
  require(link.payload_parts >= 1 && link.raw_parts >= 1, "payload_parts and raw_parts must be at least 1");
  require(link.rate().bytes_per_second() >= 1, "bytes_per_second is 0");
  require(&queue == &peer_queue || link.latency > 0, "a link between two SIPs needs a latency above 0");
}

}  // namespace

// One connection, both directions. The wire runs in picoseconds, the injection in cycles of the network.
struct LinkPort::Impl {
  struct Connection;

  struct Wire final : PacketForwardIf, PacketBackwardIf, QueuedPort::Actions {
    explicit Wire(Connection& connection) : at(connection), port(1, *this) {}
    void receive(Packet& packet, Ps head, Ps tail) override;
    void credit(unsigned network, unsigned packets, Ps when) override;
    unsigned units(const Packet&) const override { return 1; }
    QueuedPort::Release serve(Packet& packet, Cycle now) override;
    void wake(Cycle time) override;

    Connection& at;
    QueuedPort port;
    PortStats stats;
    TrackId track = kNoTrack;
  };

  struct Injection final : PacketForwardIf, PacketBackwardIf, QueuedPort::Actions {
    explicit Injection(Connection& connection);
    void receive(Packet& packet, Ps head, Ps tail) override;
    void enter(Packet& packet, Cycle now);
    void credit(unsigned vc, unsigned flits, Ps when) override;
    unsigned units(const Packet& packet) const override;
    QueuedPort::Release serve(Packet& packet, Cycle now) override;
    void wake(Cycle cycle) override;

    Connection& at;
    QueuedPort port;
  };

  struct Connection {
    Connection(Impl& impl, unsigned number) : impl(impl), number(number), wire(*this), injection(*this) {}
    Impl& impl;
    unsigned number;
    Wire wire;
    Injection injection;
  };

  Impl(LinkPort& link_port, const Config& config, const NetworkRoutes& routes, EventQueue& queue,
       EventQueue& peer_queue, Observer* observer)
      : link_port(link_port),
        config(config),
        routes(routes),
        queue(queue),
        peer_queue(peer_queue),
        observer(observer),
        clock(config.noc.clock_hz),
        timing(config.link, config.noc),
        flits_of(config.noc.flit_bytes) {}

  LinkPort& link_port;
  const Config config;
  const NetworkRoutes& routes;
  EventQueue& queue;
  EventQueue& peer_queue;
  Observer* observer;
  const Clock clock;
  const LinkTiming timing;
  const FlitCounter flits_of;
  std::vector<std::unique_ptr<Connection>> connections;
};

// Network to wire.

void LinkPort::Impl::Wire::receive(Packet& packet, Ps head, Ps tail) {
  Impl& impl = at.impl;
  const Ps ready = impl.timing.ready(packet.bytes, head, tail);
  impl.queue.at(ready, [this, &packet, ready] {
    packet.charge(Delay::wire, ready - packet.head);
    packet.head = ready;
    port.offer(packet, static_cast<unsigned>(packet.virtual_network()), ready);
  });
}

QueuedPort::Release LinkPort::Impl::Wire::serve(Packet& packet, Cycle now) {
  const Impl& impl = at.impl;
  const NocConfig& noc = impl.config.noc;
  const Ps end = impl.timing.end(packet.bytes, now, packet.tail);
  const Ps latency = impl.config.link.latency;
  packet.charge(Delay::contention, now - packet.head);
  packet.charge(impl.config.delay, latency);
  ++stats.packets;
  stats.bytes += packet.bytes;
  stats.busy += end - now;
  if (track != kNoTrack) impl.observer->interval(track, now, end, 1);

  // Its last flit leaves at `end`, those before it one cycle each earlier at the latest.
  const unsigned flits = impl.flits_of(packet);
  const Cycle last = impl.clock.tick_at_or_after(end) + noc.credit_delay;
  const Cycle first = std::max(last - std::min<Cycle>(last, flits - 1), impl.clock.tick_at_or_after(now));
  impl.link_port.from_network[at.number]->give_credit(packet.vc, flits, impl.clock.at(first));

  packet.vc = static_cast<std::uint8_t>(packet.virtual_network());
  impl.link_port.wire_out[at.number]->send(packet, now + latency, end + latency);
  return {end, end};
}

void LinkPort::Impl::Wire::wake(Cycle time) {
  at.impl.queue.at(time, [this, time] { port.arbitrate(time); });
}

// Called by the far end, on its own queue's time.
void LinkPort::Impl::Wire::credit(unsigned network, unsigned packets, Ps when) {
  if (when == 0) {
    port.announce(network, packets);
    return;
  }
  at.impl.queue.at_from(at.impl.peer_queue, when,
                        [this, network, packets, when] { port.credit(network, packets, when, when); });
}

// Wire to network.

LinkPort::Impl::Injection::Injection(Connection& connection)
    : at(connection), port(connection.impl.config.noc.vcs_per_set, *this) {}

// Called by the far end, on its own queue's time: touches nothing but the clock.
void LinkPort::Impl::Injection::receive(Packet& packet, Ps head, Ps tail) {
  Impl& impl = at.impl;
  const Cycle start = impl.timing.injection(packet.bytes, head, tail);
  impl.queue.at_from(impl.peer_queue, impl.clock.at(start), [this, &packet, start] { enter(packet, start); });
}

void LinkPort::Impl::Injection::enter(Packet& packet, Cycle now) {
  const Impl& impl = at.impl;
  const Config& config = impl.config;
  const Ps time = impl.clock.at(now);
  const Ps first_flit = std::min(packet.tail - packet.head, impl.timing.first_flit(packet.bytes));
  packet.charge(Delay::wire, first_flit);
  packet.charge(Delay::mesh, time - packet.head - first_flit);  // to the next edge
  packet.head = time;
  packet.input = packet.vc;  // the wire's virtual network, to which the credit belongs
  const RouteDecision route =
      impl.routes.enter(packet.destination, config.routers[at.number], config.from_io, packet.dateline);
  packet.exit_router = route.exit.router;
  packet.exit_port = route.exit.port;
  packet.vc_set = route.vc_set;
  packet.dateline = route.dateline;
  packet.vc = virtual_channel(packet, config.noc);
  port.offer(packet, packet.vc, now);
}

unsigned LinkPort::Impl::Injection::units(const Packet& packet) const { return at.impl.flits_of(packet); }

QueuedPort::Release LinkPort::Impl::Injection::serve(Packet& packet, Cycle now) {
  const Impl& impl = at.impl;
  const NocConfig& noc = impl.config.noc;
  const Cycle delay = 1 + Cycle{noc.link_delay};
  const Cycle last = impl.timing.last_injection(packet.bytes, now, packet.tail);
  const Ps start = impl.clock.at(now), head = impl.clock.at(now + delay);
  packet.charge(Delay::contention, start - packet.head);
  packet.charge(Delay::mesh, head - start);
  const Ps left = impl.clock.at(last + 1);
  impl.link_port.wire_in[at.number]->give_credit(packet.input, 1, left + impl.config.link.latency);
  impl.link_port.to_network[at.number]->send(packet, head, impl.clock.at(last + delay));
  return {now + impl.flits_of(packet), last + 1};
}

void LinkPort::Impl::Injection::wake(Cycle cycle) {
  at.impl.queue.at(at.impl.clock.at(cycle), [this, cycle] { port.arbitrate(cycle); });
}

void LinkPort::Impl::Injection::credit(unsigned vc, unsigned flits, Ps when) {
  const Impl& impl = at.impl;
  if (when == 0) {
    port.announce(vc, flits);
  } else {
    port.credit(vc, flits, impl.clock.tick_at_or_after(when), impl.clock.tick_at_or_after(impl.queue.now()));
  }
}

LinkPort::LinkPort(const sc_core::sc_module_name& name, const Config& config, const NetworkRoutes& routes,
                   EventQueue& queue, EventQueue& peer_queue, Observer* observer)
    : sc_module(name) {
  check_port(config, queue, peer_queue);
  impl_ = std::make_unique<Impl>(*this, config, routes, queue, peer_queue, observer);
  for (unsigned i = 0; i < config.routers.size(); ++i) {
    const std::string number = std::to_string(i);
    impl_->connections.push_back(std::make_unique<Impl::Connection>(*impl_, i));
    Impl::Connection& connection = *impl_->connections.back();
    from_network.push_back(std::make_unique<PacketTargetSocket>(("from_network" + number).c_str()));
    to_network.push_back(std::make_unique<PacketInitiatorSocket>(("to_network" + number).c_str()));
    wire_out.push_back(std::make_unique<PacketInitiatorSocket>(("wire_out" + number).c_str()));
    wire_in.push_back(std::make_unique<PacketTargetSocket>(("wire_in" + number).c_str()));
    from_network[i]->bind(static_cast<PacketForwardIf&>(connection.wire));
    wire_out[i]->bind(static_cast<PacketBackwardIf&>(connection.wire));
    to_network[i]->bind(static_cast<PacketBackwardIf&>(connection.injection));
    wire_in[i]->bind(static_cast<PacketForwardIf&>(connection.injection));
    if (observer != nullptr) {
      connection.wire.track =
          observer->add_track(std::string(this->name()) + ".wire" + number, TrackKind::state, {"idle", "busy"});
    }
  }
}

LinkPort::~LinkPort() = default;

void LinkPort::end_of_elaboration() {
  const NocConfig& noc = impl_->config.noc;
  for (std::size_t i = 0; i < from_network.size(); ++i) {
    for (unsigned vc = 0; vc < noc.vcs(); ++vc) from_network[i]->give_credit(vc, ejection_depth(noc), 0);
    for (unsigned network = 0; network < kVirtualNetworks; ++network) {
      wire_in[i]->give_credit(network, impl_->config.link.buffer_packets, 0);
    }
  }
}

const PortStats& LinkPort::wire_stats(unsigned i) const { return impl_->connections.at(i)->wire.stats; }

}  // namespace kernbench
