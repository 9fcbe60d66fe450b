#include "sc_main/rigs/link_bench.h"

#include <cmath>
#include <systemc>

#include "models/link/link_port.h"
#include "tlm/ext/packet_tap.h"
#include "tlm/machine/routing.h"

namespace kernbench {

namespace {

constexpr std::uint64_t kPacket = kMaxPacketBytes;
constexpr double kPsInNs = 1000;

/// There is no network behind the ports.
class NoRoutes final : public NetworkRoutes {
 public:
  RouteDecision enter(NodeId, std::uint16_t at, bool, std::uint8_t dateline) const override {
    return {{at, kFirstLocalPort}, 0, dateline};
  }
  std::uint8_t next_port(std::uint16_t, Exit exit) const override { return exit.port; }
};

std::uint64_t packets_of(std::uint64_t bytes) { return std::max<std::uint64_t>((bytes + kPacket - 1) / kPacket, 1); }

std::uint64_t flits_of(std::uint64_t bytes, const NocConfig& noc) {
  return std::max<std::uint64_t>((bytes + noc.flit_bytes - 1) / noc.flit_bytes, 1);
}

/// Cycles from the switch of a network's last router to the port behind it.
std::uint64_t known_before(const NocConfig& noc) {
  return std::uint64_t{noc.sw_alloc_delay} + noc.switch_delay + noc.link_delay;
}

/// Time in ps that a message needs the wire for.
double held(const LinkConfig& link, std::uint64_t bytes) {
  const double framed = static_cast<double>(bytes) + static_cast<double>(link.header_bytes * packets_of(bytes));
  return 1e12 * framed * static_cast<double>(link.raw_parts) /
         (static_cast<double>(link.bytes_per_second) * static_cast<double>(link.payload_parts));
}

}  // namespace

/// Both ends of the bench: the source in front of one port, the sink behind the other.
struct LinkBench::Impl : sc_core::sc_module {
  struct End final : PacketForwardIf, PacketBackwardIf {
    End(Impl& impl, LinkPort& port, const char* out_name, const char* in_name)
        : impl(impl), out(out_name), in(in_name) {
      out.bind(static_cast<PacketBackwardIf&>(*this));
      in.bind(static_cast<PacketForwardIf&>(*this));
      out.bind(*port.from_network[0]);
      port.to_network[0]->bind(in);
    }
    void head(Packet&, Ps) override {}
    void tail(Packet&, Ps, Ps) override {}
    void offer(Packet& packet, Ps first, Ps last) override { impl.arrive(*this, packet, first, last); }
    void credit(unsigned vc, unsigned units, Ps when) override { impl.credit(vc, units, when); }
    void injected(Packet&, Ps, Ps) override {}
    Impl& impl;
    PacketInitiatorSocket out;
    PacketTargetSocket in;
  };
  /// Sees packets as they are put on the wire.
  struct Probe final : PacketProbe {
    explicit Probe(Impl& impl) : impl(impl) {}
    void crossed(const char*, const Packet&, Ps, Ps tail) override { impl.wire_sum += tail - impl.here.now(); }
    Impl& impl;
  };

  Impl(const sc_core::sc_module_name& name, const LinkConfig& link, const NocConfig& noc, EventQueue& here,
       EventQueue& there, PayloadPool& pool)
      : sc_module(name),
        noc(noc),
        link(link),
        clock(noc.clock_hz),
        here(here),
        there(there),
        pool(pool),
        near("near", {link, noc, {0}, false, Delay::ucie, noc.flit_bytes}, routes, here, there, nullptr),
        far("far", {link, noc, {0}, false, Delay::ucie, noc.flit_bytes}, routes, there, here, nullptr),
        source(*this, near, "source_out", "source_in"),
        sink(*this, far, "sink_out", "sink_in"),
        probe(*this),
        tap("tap", *near.wire_out[0], *far.wire_in[0], probe) {
    far.wire_out[0]->bind(*near.wire_in[0]);
  }

  // The source.

  void begin() {
    if (next_load == loads.size()) return;
    load = loads[next_load++];
    total = load.messages + load.messages / 10;
    numbers = IntervalNumbers(load.seed);
    created = arrived = packets_sent = 0;
    sum = most = first = last = wire_sum = 0;
    begun_at = here.now();
    next_arrival = static_cast<double>(here.now());
    arrivals.assign(total, 0);
    create();
  }

  /// The next message reaches the port of an unloaded network at an edge of its clock.
  void create() {
    if (created == total) return;
    arrivals[created] = clock.edge(std::max(static_cast<Ps>(next_arrival), here.now()));
    ++created;
    pump();
    if (load.load > 0 && load.load < 1) {
      const double mean = 1e3 * static_cast<double>(load.bytes) / (capacity_gbps(link, noc, load.bytes) * load.load);
      next_arrival -= mean * std::log(numbers.uniform());
      here.at(std::max(static_cast<Ps>(next_arrival), here.now()), [this] { create(); });
    } else if (load.load >= 1) {
      create_later();
    }
  }
  /// The source always has a message more.
  void create_later() {
    while (created < total && created < packets_sent / packets_of(load.bytes) + 2) arrivals[created++] = here.now();
  }

  /// Sends the next packet as soon as it is there, the port is free and has room.
  void pump() {
    const std::uint64_t each = packets_of(load.bytes), message = packets_sent / each;
    if (sending || message >= created) return;
    const std::uint64_t bytes =
        packets_sent % each + 1 == each ? load.bytes - (each - 1) * kPacket : std::min(load.bytes, kPacket);
    const std::uint64_t flits = flits_of(bytes, noc);
    if (room < flits) return;
    const Cycle head =
        std::max({clock.tick_at_or_after(arrivals[message]), port_free, clock.tick_at_or_after(here.now())});
    const Cycle tail = head + flits - 1, known = std::max(head, tail - std::min(tail, known_before(noc)));
    sending = true;
    room -= static_cast<unsigned>(flits);
    port_free = tail + 1;
    here.at(clock.at(known), [this, head, tail] { send(head, tail); });
  }
  void send(Cycle head, Cycle tail) {
    const std::uint64_t each = packets_of(load.bytes);
    const bool ends = packets_sent % each + 1 == each;
    Packet& packet = Packet::of(pool.acquire());
    packet.message_class = MessageClass::ipcq_data;
    packet.kind = PacketKind::ipcq_data;
    packet.bytes = static_cast<std::uint32_t>(ends ? load.bytes - (each - 1) * kPacket : kPacket);
    packet.source = packet.destination = NodeId{0};
    packet.last = ends;
    packet.vc_set = 0;
    packet.vc = static_cast<std::uint8_t>(noc.first_vc(packet.virtual_network()));
    packet.user = &arrivals[packets_sent / each];
    ++packets_sent;
    sending = false;
    source.out.send(packet, clock.at(head), clock.at(tail));
    if (load.load >= 1) create_later();
    pump();
  }
  void credit(unsigned, unsigned units, Ps when) {
    if (when == 0) {
      room = units;  // the same for every channel
      return;
    }
    const Ps all = std::max(clock.after(when, units - 1), here.now());
    here.at(all, [this, units] {
      room += units;
      pump();
    });
  }

  // The sink.

  void arrive(End& end, Packet& packet, Ps first, Ps last_flit) {
    const Cycle start = std::max(clock.tick_at_or_after(first), sink_free);
    const Cycle done = std::max(start + flits_of(packet.bytes, noc) - 1, clock.tick_at_or_after(last_flit));
    sink_free = done + 1;
    const Cycle delay = 1 + Cycle{noc.link_delay};
    const bool ends = packet.last;
    const Ps since = *static_cast<Ps*>(packet.user), tail = clock.at(done + delay);
    end.in->injected(packet, clock.at(start + delay), tail);
    here.completed();
    packet.payload->release();
    if (ends) count(since, tail);
  }
  void count(Ps since, Ps tail) {
    const unsigned warm_up = load.messages / 10;
    ++arrived;
    if (arrived == warm_up) first = tail;
    if (arrived > warm_up) {
      sum += tail - since;
      most = std::max(most, tail - since);
      last = tail;
    }
    const Ps then = tail + link.latency + 1'000'000;  // all credits are back
    if (arrived == total) {
      LinkPoint point;
      point.sent = load;
      point.mean_ns = static_cast<double>(sum) / load.messages / kPsInNs;
      point.most_ns = static_cast<double>(most) / kPsInNs;
      point.wire_ns = static_cast<double>(wire_sum) / static_cast<double>(packets_sent) / kPsInNs;
      point.gbps = static_cast<double>(load.bytes) * load.messages * 1e3 /
                   static_cast<double>(last - (warm_up == 0 ? begun_at : first));
      points.push_back(point);
      after(then, [this] { begin(); });
    } else if (load.load <= 0) {
      after(then, [this] {
        next_arrival = static_cast<double>(here.now());
        create();
      });
    }
  }
  /// On the source's queue, out of an event of the sink's.
  template <class F>
  void after(Ps time, const F& f) {
    if (&here == &there) {
      here.at(time, f);
    } else {
      here.at_from(there, time, f);
    }
  }

  const NocConfig noc;
  const LinkConfig link;
  const Clock clock;
  EventQueue& here;
  EventQueue& there;
  PayloadPool& pool;
  NoRoutes routes;
  LinkPort near, far;
  End source, sink;
  Probe probe;
  PacketTap tap;

  std::vector<LinkLoad> loads;
  std::vector<LinkPoint> points;
  std::size_t next_load = 0;

  // Of the measurement that runs. The source's:
  LinkLoad load;
  IntervalNumbers numbers{0};
  double next_arrival = 0;   // ps
  std::vector<Ps> arrivals;  // of messages
  std::uint64_t created = 0, packets_sent = 0, total = 0;
  Ps begun_at = 0, wire_sum = 0;
  bool sending = false;
  unsigned room = 0;
  Cycle port_free = 0;
  // The sink's:
  std::uint64_t arrived = 0;
  Ps sum = 0, most = 0, first = 0, last = 0;
  Cycle sink_free = 0;
};

LinkBench::LinkBench(const std::string& name, const LinkConfig& link, const NocConfig& noc, EventQueue& here,
                     EventQueue& there, PayloadPool& pool)
    : impl_(std::make_unique<Impl>(name.c_str(), link, noc, here, there, pool)) {}

LinkBench::~LinkBench() = default;

void LinkBench::start(const std::vector<LinkLoad>& loads) {
  impl_->loads = loads;
  Impl* impl = impl_.get();
  impl_->here.at(impl_->here.now(), [impl] { impl->begin(); });
}

const std::vector<LinkPoint>& LinkBench::points() const { return impl_->points; }
const Wire& LinkBench::wire() const { return impl_->near.wire(0); }

LinkBench::Rates LinkBench::rates_gbps(const LinkConfig& link, const NocConfig& noc, std::uint64_t bytes) {
  const double wire = static_cast<double>(bytes) * 1e3 / held(link, bytes) * Wire::goodput(link);
  const std::uint64_t full = packets_of(bytes) - 1;
  const std::uint64_t flits = full * flits_of(kPacket, noc) + flits_of(bytes - full * kPacket, noc);
  const double network =
      static_cast<double>(bytes) * static_cast<double>(noc.clock_hz) / (1e9 * static_cast<double>(flits));
  // A place at the receiver is taken from the start on the wire until the credit is back.
  const double piece = 1e12 * link.check_bytes / static_cast<double>(link.bytes_per_second);
  const double packet = held(link, bytes) / static_cast<double>(packets_of(bytes));
  const double there = piece == 0 ? packet : std::ceil(packet / piece) * piece;
  const double round_trip = there + 2 * static_cast<double>(link.latency) + 2e12 / static_cast<double>(noc.clock_hz);
  const double credits =
      link.buffer_packets * static_cast<double>(bytes) / static_cast<double>(packets_of(bytes)) * 1e3 / round_trip;
  return {wire, network, credits};
}

double LinkBench::wire_ns(const LinkConfig& link, std::uint64_t bytes) { return held(link, bytes) / kPsInNs; }

double LinkBench::zero_load_ns(const LinkConfig& link, const NocConfig& noc, std::uint64_t bytes) {
  const double cycle = 1e12 / static_cast<double>(noc.clock_hz);
  const auto edge = [&](double time) { return std::ceil(time / cycle - 1e-6) * cycle; };
  const double piece = 1e12 * link.check_bytes / static_cast<double>(link.bytes_per_second);
  const auto checked = [&](double time) {
    return piece == 0 ? time : std::max(std::ceil(time / piece - 1e-6), 1.0) * piece;
  };
  const std::uint64_t packets = packets_of(bytes), last_bytes = bytes - (packets - 1) * kPacket;
  const std::uint64_t first_flits = flits_of(std::min(bytes, kPacket), noc), last_flits = flits_of(last_bytes, noc);
  const auto known = static_cast<double>(known_before(noc));
  // The first packet starts when its tail has won the switch in front of the port.
  const double start = std::max(0.0, static_cast<double>(first_flits) - 1 - known) * cycle;
  // The last flit comes out of the network after all others, and out of the wire after all other bytes.
  const double rate = held(link, kPacket) / static_cast<double>(kPacket + link.header_bytes);  // ps per framed byte
  const double last_in = static_cast<double>((packets - 1) * flits_of(kPacket, noc) + last_flits - 1) * cycle +
                         rate * static_cast<double>(last_bytes - (last_flits - 1) * noc.flit_bytes);
  const double end = std::max(start + held(link, bytes), last_in);
  const double head_bytes =
      static_cast<double>(std::min<std::uint64_t>(last_bytes, noc.flit_bytes) + link.header_bytes);
  const double head_end = end - held(link, last_bytes) + rate * head_bytes;
  const double head = start + checked(head_end - start) + static_cast<double>(link.latency);
  const double tail = start + checked(end - start) + static_cast<double>(link.latency);
  const double injected = std::max(edge(tail), edge(head) + static_cast<double>(last_flits - 1) * cycle);
  return (injected + (1 + noc.link_delay) * cycle) / kPsInNs;
}

double LinkBench::loaded_ns(const LinkConfig& link, const NocConfig& noc, std::uint64_t bytes, double load) {
  const double service = static_cast<double>(bytes) / capacity_gbps(link, noc, bytes);  // ns
  return zero_load_ns(link, noc, bytes) + load * service / (2 * (1 - load));
}

}  // namespace kernbench
