#pragma once
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/link/zero_load.h"
#include "models/noc/zero_load.h"
#include "tlm/ext/message.h"
#include "tlm/ext/packet_tap.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/plan/walk.h"

// Watches every bound packet socket of a machine, and says what a packet's way through it must look like.
namespace kernbench::topology {

struct Crossing {
  std::string socket;
  Ps head, tail;
  std::uint32_t bytes;
  std::uint64_t op;
  std::uint8_t vc;
  bool goes_first;  ///< a command or credit
};

/// One packet's way through the machine, one direction.
struct Journey {
  const tlm::tlm_generic_payload* payload;
  PacketKind kind;
  NodeId source, destination;
  std::uint32_t bytes;
  std::uint64_t op;
  std::vector<std::string> offers;                     ///< sockets on which it was offered to a router
  std::vector<std::pair<std::string, Ps>> beginnings;  ///< where its head was seen
  std::vector<Crossing> crossings;
};

/// A phase at a socket between an endpoint and the network.
struct Transport {
  std::string socket;
  tlm::tlm_phase phase;
  Ps at;
};

/// Keeps what it sees: of commands only that they crossed, of the others their journeys.
class Recorder final : public PacketProbe, public TransactionProbe {
 public:
  void transported(const char* socket, const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase,
                   Ps at) override {
    const Packet* packet = payload.get_extension<Packet>();
    ASSERT_NE(packet, nullptr);
    if (packet->kind != PacketKind::command) transports[{&payload, phase}].push_back({socket, phase, at});
  }
  void offered(const char* socket, const Packet& packet, Ps, Ps) override {
    if (packet.kind == PacketKind::command) return;
    const std::string name = socket, entry = ".to_router";
    if (name.size() > entry.size() && name.compare(name.size() - entry.size(), entry.size(), entry) == 0) {
      journeys.push_back(
          {packet.payload, packet.kind, packet.source, packet.destination, packet.bytes, packet.op, {}, {}, {}});
      under_way_[leg(packet)] = &journeys.back();
    }
    if (Journey* journey = of(socket, packet)) journey->offers.push_back(name);
  }
  void began(const char* socket, const Packet& packet, Ps head) override {
    if (packet.kind == PacketKind::command) return;
    if (Journey* journey = of(socket, packet)) journey->beginnings.emplace_back(socket, head);
  }
  void crossed(const char* socket, const Packet& packet, Ps head, Ps tail) override {
    const bool goes_first = has_priority(packet.virtual_network());
    sockets[socket].push_back({socket, head, tail, packet.bytes, packet.op, packet.vc, goes_first});
    if (packet.kind == PacketKind::command) return;
    if (Journey* journey = of(socket, packet)) journey->crossings.push_back(sockets[socket].back());
  }
  void debugged(const char* socket) override { debugs.emplace_back(socket); }

  std::deque<Journey> journeys;
  /// Of a transaction's payload, which is used again when it has ended: twice for each journey.
  std::map<std::pair<const tlm::tlm_generic_payload*, unsigned>, std::deque<Transport>> transports;
  std::map<std::string, std::vector<Crossing>> sockets;  ///< all that crossed each
  std::vector<std::string> debugs;                       ///< sockets that the back door has led over

 private:
  using Leg = std::tuple<tlm::tlm_generic_payload*, NodeId, NodeId, PacketKind>;
  static Leg leg(const Packet& packet) { return {packet.payload, packet.source, packet.destination, packet.kind}; }
  Journey* of(const char* socket, const Packet& packet) {
    const auto found = under_way_.find(leg(packet));
    if (found != under_way_.end()) return found->second;
    ADD_FAILURE() << "a packet appears on " << socket << " without having been offered to a network";
    return nullptr;
  }
  std::map<Leg, Journey*> under_way_;
};

/// Binds every packet socket of a machine through a tap.
class Taps {
 public:
  explicit Taps(PacketProbe& probe) : probe_(probe) {}
  PacketBinder binder() {
    return [this](PacketInitiatorSocket& from, PacketTargetSocket& to) {
      taps_.push_back(std::make_unique<PacketTap>(sc_core::sc_gen_unique_name("tap"), from, to, probe_));
    };
  }

 private:
  PacketProbe& probe_;
  std::vector<std::unique_ptr<PacketTap>> taps_;
};

/// Submits messages over the host sockets, as any TLM-2.0 initiator might.
class Host : public sc_core::sc_module {
 public:
  Host(const sc_core::sc_module_name& name, Machine& machine) : sc_module(name), machine_(machine) {
    for (std::uint16_t sip = 0; sip < machine.map().sips; ++sip) {
      ports_.emplace_back();
      ports_.back().socket.bind(ports_.back());
      ports_.back().socket.bind(machine.host_socket(sip));
    }
  }
  Message& at(Ps time, std::uint16_t sip, decltype(Message::body) body) {
    Job& job = jobs_.emplace_back();
    job.message.id = jobs_.size();
    job.message.sip = sip;
    job.message.body = std::move(body);
    job.extension.message = &job.message;
    job.payload.set_extension(&job.extension);
    Job* pointer = &job;
    Port* port = &ports_[sip];
    machine_.dispatcher().queue(sip).at_host(time, [port, pointer] {
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      port->socket->nb_transport_fw(pointer->payload, phase, delay);
    });
    return job.message;
  }
  std::size_t completed() const {
    std::size_t sum = 0;
    for (const Port& port : ports_) sum += port.completed;
    return sum;
  }
  /// By the back door.
  unsigned debug(std::uint16_t sip, tlm::tlm_generic_payload& payload) {
    return ports_[sip].socket->transport_dbg(payload);
  }
  /// When each message was answered.
  std::vector<Ps> answers() const {
    std::vector<Ps> all;
    for (const Job& job : jobs_) all.push_back(job.message.completed);
    return all;
  }
  void expect_no_faults() const {
    EXPECT_EQ(completed(), jobs_.size());
    for (const Job& job : jobs_) {
      for (const Fault& fault : job.message.faults) ADD_FAILURE() << fault.str();
    }
  }

 private:
  struct Port : tlm::tlm_bw_transport_if<> {
    tlm::tlm_initiator_socket<> socket;
    std::size_t completed = 0;
    tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload&, tlm::tlm_phase&, sc_core::sc_time&) override {
      ++completed;
      return tlm::TLM_COMPLETED;
    }
    void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
  };
  struct Job {
    ~Job() { payload.clear_extension(&extension); }
    Message message;
    MessageExtension extension;
    tlm::tlm_generic_payload payload;
  };
  Machine& machine_;
  std::deque<Port> ports_;
  std::deque<Job> jobs_;
};

/// A machine with a host, whose packet sockets all lead through taps.
struct TappedMachine {
  explicit TappedMachine(const Plan& plan, const RunOptions& options = {})
      : taps(recorder), machine(plan, options, nullptr, parts(taps)), host("test_host", machine) {}
  Recorder recorder;
  Taps taps;
  Machine machine;
  Host host;

 private:
  static ForeignParts parts(Taps& taps) {
    ForeignParts parts;
    parts.bind_packets = taps.binder();
    return parts;
  }
};

/// idle: nothing else is under way, and every time is the closed form; busy: none is earlier.
enum class Load { idle, busy };

/// Follows a journey along the path that the plan's router gives, socket by socket. The time at each socket is held
/// against what the part before it makes of the times at the socket before.
inline void expect_journey(Machine& machine, const Plan& plan, const Journey& journey, Load load = Load::idle) {
  SCOPED_TRACE(plan.map.name(journey.source) + " to " + plan.map.name(journey.destination) + ", " +
               std::to_string(journey.bytes) + " B, kind " + std::to_string(static_cast<int>(journey.kind)));
  const auto& seen = journey.crossings;
  std::size_t i = 0;
  const auto next = [&](const std::string& socket) -> Crossing {
    const Crossing crossing = i < seen.size() ? seen[i] : Crossing{"nothing", 0, 0, 0, 0, 0, false};
    ++i;
    EXPECT_EQ(crossing.socket, socket) << "crossing " << i;
    return crossing;
  };
  const auto expect_times = [&](const Crossing& at, Ps head, Ps tail) {
    if (load == Load::idle) {
      EXPECT_EQ(at.head, head) << at.socket;
      EXPECT_EQ(at.tail, tail) << at.socket;
    } else {
      EXPECT_GE(at.head, head) << at.socket;
      EXPECT_GE(at.tail, tail) << at.socket;
    }
  };
  std::vector<std::string> offers{machine.network_interface(journey.source).to_router.name()}, heads;
  const Crossing first = next(offers.front());
  Flight flight{journey.bytes, first.head, first.tail};
  for (const RouterStep& step : walk(plan, journey.source, journey.destination)) {
    const NocConfig& noc = *plan.networks[step.network].noc;
    heads.push_back(machine.router(step.network, step.router).out[step.out_port]->name());
    const Crossing out = next(heads.back());
    const Flight passed = pass(noc, flight, 1);
    expect_times(out, passed.head, passed.tail);
    flight = {journey.bytes, out.head, out.tail};
    if (step.end == kNoEnd) continue;
    const LinkEnd& end = plan.ends[step.end];
    const NocConfig& beyond = *plan.networks[plan.ends[end.peer].network].noc;
    heads.push_back(machine.link_port(step.end).wire_out[step.connection]->name());
    const Crossing wire = next(heads.back());
    const LinkTiming port(end.link, noc), far(end.link, beyond);
    if (load == Load::idle) {
      const Wire::Passage passage = Wire(end.link, beyond.flit_bytes)
                                        .send(journey.bytes, port.ready(journey.bytes, flight.head, flight.tail),
                                              port.complete(journey.bytes, flight.tail));
      expect_times(wire, passage.head, passage.tail);
      EXPECT_GE(wire.tail, flight.head + end.link.latency + end.link.rate().time_for(journey.bytes)) << wire.socket;
    } else {  // it may go on in a flit that others have begun
      expect_times(wire, flight.head + end.link.latency, flight.tail + end.link.latency);
    }
    offers.push_back(machine.link_port(end.peer).to_network[step.connection]->name());
    const Crossing in = next(offers.back());
    const Cycle entry = Clock(beyond.clock_hz).tick_at_or_after(wire.head);
    const Flight entered = inject_at(beyond, journey.bytes, entry, far.last_injection(journey.bytes, entry, wire.tail));
    expect_times(in, entered.head, entered.tail);
    flight = {journey.bytes, in.head, in.tail};
  }
  EXPECT_EQ(i, seen.size()) << "seen on more sockets than the path has";
  EXPECT_EQ(journey.offers, offers);
  ASSERT_EQ(journey.beginnings.size(), heads.size());
  for (std::size_t k = 0, crossing = 0; k < heads.size(); ++k) {
    EXPECT_EQ(journey.beginnings[k].first, heads[k]);
    while (crossing < seen.size() && seen[crossing].socket != heads[k]) ++crossing;
    ASSERT_LT(crossing, seen.size());
    EXPECT_EQ(journey.beginnings[k].second, seen[crossing].head) << heads[k] << ": its head was said to come then";
  }
}

/// The TLM-2.0 sockets at both ends of a journey on an idle machine: the packet was asked for before it was injected,
/// and handed over in the instant in which its tail arrived; of a train of read data, its first packet.
inline void expect_endpoints(Machine& machine, const Plan& plan, const Journey& journey, Recorder& recorder) {
  const bool response = journey.kind == PacketKind::read_data || journey.kind == PacketKind::write_ack;
  NetworkInterface& from = machine.network_interface(journey.source);
  NetworkInterface& to = machine.network_interface(journey.destination);
  auto& transports = recorder.transports[{journey.payload, response ? tlm::BEGIN_RESP : tlm::BEGIN_REQ}];
  ASSERT_GE(transports.size(), 2U);
  const Transport out = transports[0], in = transports[1];
  transports.erase(transports.begin(), transports.begin() + 2);
  EXPECT_EQ(out.socket, response ? from.to_endpoint->name() : from.from_endpoint->name());
  EXPECT_EQ(in.socket, response ? to.from_endpoint->name() : to.to_endpoint->name());
  EXPECT_LE(out.at, journey.crossings.front().head);
  const Crossing& last = journey.crossings.back();
  if (journey.kind == PacketKind::read_data && journey.bytes > kMaxPacketBytes) {
    const std::uint32_t flit = plan.networks[plan.network_of(journey.destination)].noc->flit_bytes;
    EXPECT_EQ(in.at, last.head + (last.tail - last.head) * (kMaxPacketBytes / flit) / (journey.bytes / flit));
  } else {
    EXPECT_EQ(in.at, last.tail);
  }
}

}  // namespace kernbench::topology
