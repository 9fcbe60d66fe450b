#include "models/link/link_port.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "models/link/link_timing.h"
#include "models/link/queued_port.h"
#include "tlm/machine/names.h"
#include "tlm/observe/usage.h"

namespace kernbench {

namespace {

/// Where there are trains: a packet that is ready so soon goes without an event of its own if the wire is idle.
constexpr Ps kAtOnce = 25'000;
constexpr std::uint64_t kBusy = 1, kReplay = 2;  // states of a wire's track

/// Places of the receiver that a packet holds at once: the last packets of a train that is longer than the buffer take
/// the places of its first ones.
std::uint32_t places(std::uint32_t buffer_packets, std::uint32_t bytes) {
  return std::min(packets_of(bytes), buffer_packets);
}

void check_port(const LinkPort::Config& config, const EventQueue& queue, const EventQueue& peer_queue) {
  check(config.noc);
  const LinkConfig& link = config.link;
  const auto require = [](bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(std::string("LinkConfig: ") + what);
  };
  require(link.buffer_packets >= 2, "buffer_packets must be at least 2");
  require(link.payload_parts >= 1 && link.raw_parts >= 1, "payload_parts and raw_parts must be at least 1");
  require(link.rate().bytes_per_second() >= 1, "bytes_per_second is 0");
  require(link.flit_bytes == 0 || (link.check_bytes >= 1 && link.flit_bytes % link.check_bytes == 0),
          "check_bytes must divide flit_bytes");
  require(link.bit_errors == 0 || link.flit_bytes > 0, "bit_errors need flits, which carry the check");
  require(&queue == &peer_queue || link.latency > 0, "a link between two SIPs needs a latency above 0");
}

/// FNV-1a: the errors of a wire depend on its name, not on the order of elaboration.
std::uint64_t hash(const std::string& name) {
  std::uint64_t value = 0xCBF29CE484222325U;
  for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return value;
}

}  // namespace

// One connection, both directions. The wire runs in picoseconds, the injection in cycles of the network.
struct LinkPort::Impl {
  struct Connection;

  struct Sender;
  /// Packets that wait for the wire. Where there are trains, commands and credits wait apart: they go between two
  /// packets of a train.
  struct Lane final : QueuedPort::Actions {
    Lane(Sender& sender, bool first, Ps packet) : sender(sender), first(first), port(1, *this, packet) {}
    unsigned units(const Packet& packet) const override { return places(sender.far_buffer, packet.bytes); }
    QueuedPort::Release serve(Packet& packet, Cycle now) override { return sender.serve(packet, now, first); }
    void wake(Cycle time) override;
    Sender& sender;
    const bool first;
    QueuedPort port;
  };

  struct Sender final : PacketForwardIf, PacketBackwardIf {
    explicit Sender(Connection& connection);
    void head(Packet&, Ps) override {}  // it goes once all of it has won its way
    void pass(Packet& packet, Ps head, Ps tail) override { Sender::tail(packet, head, tail); }
    void tail(Packet& packet, Ps head, Ps tail) override;
    void credit(unsigned network, unsigned packets, Ps when) override;
    unsigned debug(BackDoor& access) override { return (*at.wire_out)->debug(access); }
    void enqueue(Packet& packet, unsigned network, Ps ready);
    void count_pauses(const Packet& packet, Ps head, Ps tail);
    void count_headers(const Packet& packet, Ps start);
    QueuedPort::Release serve(Packet& packet, Cycle now, bool slips_in);
    void crosses(CauseLog& log, Packet& packet, const Wire::Passage& passage, Ps taken);
    Cause freed_by(unsigned network, Ps now);
    QueuedPort& port(unsigned network) {
      return trains && has_priority(static_cast<int>(network)) ? first.port : ordinary.port;
    }

    Connection& at;
    const bool trains;
    Wire wire;
    Lane ordinary, first;
    TrackId track = kNoTrack;
    // While there is a CauseLog.
    CausePlace network_place, wire_place;
    Cause on_wire;  // of the packet that is on the wire longest, until it has left it
    struct Freed {
      Ps when;
      unsigned network;
      Cause cause;
    };
    std::vector<Freed> freed;      // why places of the far end are free no sooner than `when`, of those that were kept
    Usage* usage = nullptr;        // null: nobody wants it
    unsigned queued = 0;           // packets that are ready
    unsigned coming = 0;           // packets that are known, but not ready yet
    std::uint32_t far_buffer = 0;  // places of each virtual network at the far end, which may have more or fewer
  };

  struct Injection final : PacketForwardIf, PacketBackwardIf {
    explicit Injection(Connection& connection) : at(connection) {}
    void head(Packet&, Ps) override {}
    void pass(Packet& packet, Ps head, Ps tail) override { Injection::tail(packet, head, tail); }
    void tail(Packet& packet, Ps head, Ps tail) override;
    void enter(Packet& packet, Cycle first);
    void credit(unsigned, unsigned, Ps) override {}  // the source is the router's
    void injected(Packet& packet, Ps head, Ps tail) override;
    unsigned debug(BackDoor& access) override;
    RouteDecision route(NodeId destination, std::uint8_t dateline) const {
      const Config& config = at.impl.config;
      return at.impl.routes.enter(destination, config.routers[at.number], config.from_io, dateline);
    }

    Connection& at;
    std::uint64_t bytes = 0;  // of payload that have come
  };

  struct Connection {
    Connection(Impl& impl, unsigned number) : impl(impl), number(number), sender(*this), injection(*this) {}
    /// Looks up once what the sockets are bound to.
    void bound();

    Impl& impl;
    unsigned number;
    PacketBackwardIf* from_network = nullptr;  ///< the router that sends to the wire
    PacketForwardIf* router = nullptr;         ///< that to_network is bound to
    PacketBackwardIf* far_end = nullptr;       ///< of wire_in
    PacketInitiatorSocket* wire_out = nullptr;
    Sender sender;
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
        flits_of(config.noc.flit_bytes),
        depth(std::max(ejection_depth(config.noc, config.longest),
                       config.link.send_packets / config.noc.vcs_per_set * flits_of(kMaxPacketBytes))) {}

  LinkPort& link_port;
  const Config config;
  const NetworkRoutes& routes;
  EventQueue& queue;
  EventQueue& peer_queue;
  Observer* observer;
  const Clock clock;
  const LinkTiming timing;
  const FlitCounter flits_of;
  const unsigned depth;  // of the buffers of packets that wait for the wire
  std::vector<std::unique_ptr<Connection>> connections;
};

void LinkPort::Impl::Connection::bound() {
  wire_out = impl.link_port.wire_out[number].get();
  router = impl.link_port.to_network[number]->operator->();
  from_network = impl.link_port.from_network[number]->operator->();
  far_end = impl.link_port.wire_in[number]->operator->();
}

// Network to wire.

LinkPort::Impl::Sender::Sender(Connection& connection)
    : at(connection),
      trains(at.impl.config.longest > kMaxPacketBytes),
      wire(at.impl.config.link,
           at.impl.config.far_flit_bytes == 0 ? at.impl.config.noc.flit_bytes : at.impl.config.far_flit_bytes,
           hash(std::string(at.impl.link_port.name()) + ".wire" + std::to_string(at.number))),
      ordinary(*this, false, wire.held(kMaxPacketBytes)),
      first(*this, true, wire.held(kMaxPacketBytes)) {}

void LinkPort::Impl::Sender::tail(Packet& packet, Ps head, Ps tail) {
  Impl& impl = at.impl;
  const Ps now = impl.queue.now(), ready = std::max(impl.timing.ready(packet.bytes, head, tail), now);
  const auto network = static_cast<unsigned>(packet.virtual_network());
  if (trains) count_pauses(packet, head, tail);
  if (trains && coming == 0 && ready <= now + kAtOnce && port(network).idle(packet, network, ready)) {
    enqueue(packet, network, ready);
    return;
  }
  ++coming;
  impl.queue.at(ready, [this, &packet, ready] {
    --coming;
    enqueue(packet, static_cast<unsigned>(packet.virtual_network()), ready);
  });
}

/// Behind others the packets of a train catch up with each other.
void LinkPort::Impl::Sender::count_pauses(const Packet& packet, Ps head, Ps tail) {
  if (packet.bytes <= kMaxPacketBytes || queued + coming != 0) return;
  const LinkTiming& timing = at.impl.timing;
  const Ps from = std::max(timing.earliest(packet.bytes, head, tail), wire.free());
  const Ps to = timing.complete(packet.bytes, tail);
  if (to > from) wire.count_pauses(packet.bytes, to - from);
}

/// Answers of writes go as the packets of data came, requests of reads at once or as their places come back.
void LinkPort::Impl::Sender::count_headers(const Packet& packet, Ps start) {
  const bool spread = packet.one_by_one || packet.kind == PacketKind::write_ack;
  wire.count_headers(packet.headers, spread ? wire.held(kMaxPacketBytes) : at.impl.clock.at(1), start);
}

void LinkPort::Impl::Sender::enqueue(Packet& packet, unsigned network, Ps ready) {
  packet.charge(Delay::wire, ready - packet.head);
  packet.head = ready;
  ++queued;
  if (usage != nullptr) usage->level(queued, at.impl.queue.now());
  port(network).offer(packet, network, ready);
}

QueuedPort::Release LinkPort::Impl::Sender::serve(Packet& packet, Cycle now, bool slips_in) {
  const Impl& impl = at.impl;
  const NocConfig& noc = impl.config.noc;
  const Ps complete = impl.timing.complete(packet.bytes, packet.tail);
  const Ps free = slips_in ? now : wire.free();
  if (trains && packet.bytes == 0) count_headers(packet, std::max<Ps>(now, wire.free()));
  const Wire::Passage passage = slips_in ? wire.slip_in(packet.bytes, now, complete)
                                         : wire.send(packet.bytes, std::max<Ps>(now, wire.free()), complete);
  packet.charge(Delay::contention, passage.start - packet.head + passage.replayed);
  packet.charge(impl.config.delay, impl.config.link.latency);
  packet.charge(Delay::wire, passage.head - passage.start - impl.config.link.latency - passage.replayed);
  --queued;
  if (CauseLog* log = impl.queue.causes()) crosses(*log, packet, passage, std::clamp(free, packet.head, passage.start));
  if (usage != nullptr) {
    // It waits for the wire as long as others are on it, then for the far end.
    const Ps taken = std::clamp(free, packet.head, passage.start);
    if (taken > packet.head) usage->wait(packet.head, taken, kWire);
    if (passage.start > taken) usage->wait(taken, passage.start, slips_in ? kWire : kCredit);
    usage->busy(passage.start, passage.end, packet.bytes, slips_in ? 1 : packet.packets());
  }
  if (track != kNoTrack) {
    impl.observer->interval(track, passage.start, passage.end, passage.replays == 0 ? kBusy : kReplay);
  }

  // Its last flit leaves at `end`, those before it one cycle each earlier at the latest.
  const unsigned flits = std::min(impl.flits_of(packet), impl.depth);
  const Cycle last = impl.clock.tick_at_or_after(passage.end) + noc.credit_delay;
  const Cycle first = std::max(last - std::min<Cycle>(last, flits - 1), impl.clock.tick_at_or_after(passage.start));
  at.from_network->credit(packet.vc, flits, impl.clock.at(first));

  packet.vc = static_cast<std::uint8_t>(packet.virtual_network());
  at.wire_out->send(packet, passage.head, passage.tail);
  return {passage.end, passage.end};
}

/// What kept the place that was freed last for `network`; forgets those before it.
Cause LinkPort::Impl::Sender::freed_by(unsigned network, Ps now) {
  Cause last;
  const auto past = [&](Freed& one) {
    if (one.network != network || one.when > now) return false;
    last = std::move(one.cause);
    return true;
  };
  freed.erase(std::remove_if(freed.begin(), freed.end(), past), freed.end());
  return last;
}

/// Through the network until it was ready, then behind others on the wire until `taken`, and over it. Behind the one
/// that was on the wire it goes on to what that one came from. Room at the far end is a matter of its size, unless what
/// had it was itself kept from going on.
void LinkPort::Impl::Sender::crosses(CauseLog& log, Packet& packet, const Wire::Passage& passage, Ps taken) {
  const LinkPort& port = at.impl.link_port;
  const std::uint32_t network = log.place(network_place, [&] { return names::parent(port.name()); });
  const std::uint32_t place =
      log.place(wire_place, [&] { return std::string(port.name()) + ".wire" + std::to_string(at.number); });
  const Ps contention = packet.spent[static_cast<std::size_t>(Delay::contention)];
  const Ps on_link = passage.start - packet.head + passage.replayed;  // charged already
  Cause cause = taken > packet.head && CauseLog::end_of(on_wire) >= taken
                    ? on_wire
                    : log.travelled(packet.cause, contention - std::min(contention, packet.contended + on_link),
                                    network, packet.head);
  const bool detour = at.impl.config.detours && at.impl.routes.detour(packet.source, packet.destination);
  const auto spend = [&](Spent spent, Ps end) { cause = log.step(detour ? Spent::detour : spent, place, end, cause); };
  spend(Spent::wire_wait, taken);
  const Cause far = freed_by(static_cast<unsigned>(packet.virtual_network()), passage.start);
  if (CauseLog::end_of(far) > taken) cause = far;
  spend(Spent::wire_credit, passage.start);
  spend(Spent::wire, passage.end);
  Cause until_end = cause;
  spend(Spent::wire, passage.tail - at.impl.config.link.latency);
  spend(Spent::wire_latency, passage.tail);
  packet.cause = std::move(cause);
  packet.contended = contention;
  packet.held = false;
  log.room = until_end;
  if (passage.end >= CauseLog::end_of(on_wire)) on_wire = std::move(until_end);
}

void LinkPort::Impl::Lane::wake(Cycle time) {
  sender.at.impl.queue.at(time, [this, time] { port.arbitrate(time); });
}

// Called by the far end, on its own queue's time.
void LinkPort::Impl::Sender::credit(unsigned network, unsigned packets, Ps when) {
  if (when == 0) {
    far_buffer = packets;
    port(network).announce(network, packets);
    return;
  }
  EventQueue& queue = at.impl.queue;
  if (CauseLog* log = queue.causes(); log != nullptr && CauseLog::end_of(log->room) != 0)
    freed.push_back({when, network, std::exchange(log->room, Cause())});
  if (trains && &queue == &at.impl.peer_queue) return port(network).credit(network, packets, when, queue.now());
  queue.at_from(at.impl.peer_queue, when,
                [this, network, packets, when] { port(network).credit(network, packets, when, when); });
}

// Wire to network.

// Called by the far end, on its own queue's time: touches nothing but the clock.
void LinkPort::Impl::Injection::tail(Packet& packet, Ps head, Ps) {
  Impl& impl = at.impl;
  const Cycle first = impl.clock.tick_at_or_after(head);
  impl.queue.at_from(impl.peer_queue, impl.clock.at(first), [this, &packet, first] { enter(packet, first); });
}

void LinkPort::Impl::Injection::enter(Packet& packet, Cycle first) {
  const Impl& impl = at.impl;
  const Ps time = impl.clock.at(first);
  packet.charge(Delay::mesh, time - packet.head);  // to the next edge
  packet.head = time;
  packet.input = packet.vc;  // the wire's virtual network, to which the credit belongs
  bytes += packet.bytes;
  const RouteDecision route = this->route(packet.destination, packet.dateline);
  packet.exit_router = route.exit.router;
  packet.exit_port = route.exit.port;
  packet.vc_set = route.vc_set;
  packet.dateline = route.dateline;
  const Cycle last = impl.timing.last_injection(packet.bytes, first, packet.tail);
  at.router->offer(packet, time, impl.clock.at(last));
}

unsigned LinkPort::Impl::Injection::debug(BackDoor& access) {
  const RouteDecision route = this->route(access.destination, access.dateline);
  access.exit = route.exit;
  access.dateline = route.dateline;
  return at.router->debug(access);
}

void LinkPort::Impl::Injection::injected(Packet& packet, Ps head, Ps tail) {
  const Impl& impl = at.impl;
  const Ps link = impl.clock.at(impl.config.noc.link_delay), left = tail - link;
  const std::uint32_t units = places(impl.config.link.buffer_packets, packet.bytes);
  Ps free = left;  // of the first packet of a train: the others' places follow at the rate of the wire
  if (units > 1) {
    const Ps rest = (units - 1) * at.sender.wire.held(kMaxPacketBytes);
    free = std::max(impl.timing.first(packet.bytes, head, tail) - link, left > rest ? left - rest : 0);
  }
  if (CauseLog* log = impl.queue.causes(); log != nullptr && packet.held) log->room = packet.cause;
  at.far_end->credit(packet.input, units, std::max(free, impl.queue.now()) + impl.config.link.latency);
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
    from_network[i]->bind(static_cast<PacketForwardIf&>(connection.sender));
    wire_out[i]->bind(static_cast<PacketBackwardIf&>(connection.sender));
    to_network[i]->bind(static_cast<PacketBackwardIf&>(connection.injection));
    wire_in[i]->bind(static_cast<PacketForwardIf&>(connection.injection));
    if (observer != nullptr) {
      connection.sender.track = observer->add_track(std::string(this->name()) + ".wire" + number, TrackKind::state,
                                                    {"idle", "busy", "replay"});
    }
  }
}

LinkPort::~LinkPort() = default;

void LinkPort::end_of_elaboration() {
  const NocConfig& noc = impl_->config.noc;
  for (std::size_t i = 0; i < from_network.size(); ++i) {
    impl_->connections[i]->bound();
    for (unsigned vc = 0; vc < noc.vcs(); ++vc) from_network[i]->give_credit(vc, impl_->depth, 0);
    for (unsigned network = 0; network < kVirtualNetworks; ++network) {
      wire_in[i]->give_credit(network, impl_->config.link.buffer_packets, 0);
    }
  }
}

const Wire& LinkPort::wire(unsigned i) const { return impl_->connections.at(i)->sender.wire; }
const WireStats& LinkPort::wire_stats(unsigned i) const { return wire(i).stats(); }

std::uint64_t LinkPort::received_bytes(unsigned i) const { return impl_->connections.at(i)->injection.bytes; }
void LinkPort::observe_usage(unsigned i, Usage* usage) { impl_->connections.at(i)->sender.usage = usage; }

}  // namespace kernbench
