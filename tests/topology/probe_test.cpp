#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "models/link/zero_load.h"
#include "models/noc/zero_load.h"
#include "tests/topology/machines.h"
#include "tlm/ext/message.h"
#include "tlm/kernel/tl.h"
#include "topology/machine.h"
#include "topology/plan.h"
#include "topology/walk.h"

// The contract of spec/hardware.md: in both fidelities every DMA and IPCQ transaction is seen on every bound socket of
// its path, in order, with the right times: from the endpoint's TLM-2.0 socket over routers, ports and wires to the
// other endpoint's. One packet is under way at a time, so that the right time is the closed form.
namespace kernbench::topology {
namespace {

struct Crossing {
  std::string socket;
  Ps head, tail;
};

/// One packet's way through the machine, one direction.
struct Journey {
  PacketKind kind;
  NodeId source, destination;
  std::uint32_t bytes;
  std::vector<Crossing> crossings;
};

/// A phase at a socket between an endpoint and the network.
struct Transport {
  std::string socket;
  const tlm::tlm_generic_payload* payload;
  tlm::tlm_phase phase;
  Ps at;
};

class Recorder final : public PacketProbe, public TransactionProbe {
 public:
  void transported(const char* socket, const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase,
                   Ps at) override {
    const Packet* packet = payload.get_extension<Packet>();
    ASSERT_NE(packet, nullptr);
    if (packet->kind != PacketKind::command) transports.push_back({socket, &payload, phase, at});
  }
  void crossed(const char* socket, const Packet& packet, Ps head, Ps tail) override {
    if (packet.kind == PacketKind::command) return;
    const auto leg = std::make_tuple(packet.payload, packet.source, packet.destination, packet.kind);
    const std::string name = socket;
    const std::string inject = ".to_router";
    if (name.size() > inject.size() && name.compare(name.size() - inject.size(), inject.size(), inject) == 0) {
      journeys.push_back({packet.kind, packet.source, packet.destination, packet.bytes, {}});
      under_way_[leg] = &journeys.back();
    }
    ASSERT_EQ(under_way_.count(leg), 1u) << "a packet appears on " << name << " without having been injected";
    under_way_[leg]->crossings.push_back({name, head, tail});
  }
  std::deque<Journey> journeys;
  std::vector<Transport> transports;

 private:
  std::map<std::tuple<tlm::tlm_generic_payload*, NodeId, NodeId, PacketKind>, Journey*> under_way_;
};

/// Submits messages over the host sockets, as any TLM-2.0 initiator might.
class Host : public sc_core::sc_module {
 public:
  explicit Host(Machine& machine) : sc_module("test_host"), machine_(machine) {
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

/// Follows a journey along the path that the plan's router gives, socket by socket, with the closed forms.
void expect_journey(Machine& machine, const Plan& plan, const Journey& journey) {
  const auto& seen = journey.crossings;
  std::size_t i = 0;
  const auto next = [&](const std::string& socket) -> const Crossing& {
    static const Crossing kNothing{"nothing", 0, 0};
    const Crossing& crossing = i < seen.size() ? seen[i] : kNothing;
    ++i;
    EXPECT_EQ(crossing.socket, socket) << "crossing " << i;
    return crossing;
  };
  const Crossing& first = next(machine.network_interface(journey.source).to_router.name());
  Flight flight{journey.bytes, first.head, first.tail};
  for (const RouterStep& step : walk(plan, journey.source, journey.destination)) {
    const NocConfig& noc = *plan.networks[step.network].noc;
    const Crossing& out = next(machine.router(step.network, step.router).out[step.out_port]->name());
    flight = pass(noc, flight, 1);
    EXPECT_EQ(out.head, flight.head) << out.socket;
    EXPECT_EQ(out.tail, flight.tail) << out.socket;
    if (step.end == kNoEnd) continue;
    const LinkEnd& end = plan.ends[step.end];
    const NocConfig& beyond = *plan.networks[plan.ends[end.peer].network].noc;
    const Crossing& wire = next(machine.link_port(step.end).wire_out[step.connection]->name());
    const LinkTiming port(end.link, noc);
    const Wire::Passage passage = Wire(end.link, beyond.flit_bytes)
                                      .send(journey.bytes, port.ready(journey.bytes, flight.head, flight.tail),
                                            port.complete(journey.bytes, flight.tail));
    EXPECT_EQ(wire.head, passage.head) << wire.socket;
    EXPECT_EQ(wire.tail, passage.tail) << wire.socket;
    EXPECT_GE(wire.tail, flight.head + end.link.latency + end.link.rate().time_for(journey.bytes)) << wire.socket;
    const Crossing& in = next(machine.link_port(end.peer).to_network[step.connection]->name());
    flight = cross(end.link, noc, beyond, flight);
    EXPECT_EQ(in.head, flight.head) << in.socket;
    EXPECT_EQ(in.tail, flight.tail) << in.socket;
  }
  EXPECT_EQ(i, seen.size()) << "seen on more sockets than the path has";
}

/// The TLM-2.0 sockets at both ends of a journey: the packet was asked for before it was injected, and handed over in
/// the instant in which its tail arrived.
void expect_endpoints(Machine& machine, const Journey& journey, const Transport& out, const Transport& in) {
  const bool response = journey.kind == PacketKind::read_data || journey.kind == PacketKind::write_ack;
  NetworkInterface& from = machine.network_interface(journey.source);
  NetworkInterface& to = machine.network_interface(journey.destination);
  EXPECT_EQ(out.socket, response ? from.to_endpoint->name() : from.from_endpoint->name());
  EXPECT_EQ(in.socket, response ? to.from_endpoint->name() : to.to_endpoint->name());
  for (const Transport* transport : {&out, &in}) {
    EXPECT_EQ(transport->phase, response ? tlm::BEGIN_RESP : tlm::BEGIN_REQ) << transport->socket;
  }
  EXPECT_EQ(out.payload, in.payload);
  EXPECT_LE(out.at, journey.crossings.front().head);
  EXPECT_EQ(in.at, journey.crossings.back().tail);
}

struct Route {
  const char* name;
  PeCoord sender, receiver, memory;  ///< memory: HBM slice that the sender loads from and stores to
};
const Route kRoutes[] = {
    {"within_a_cube", {0, 0, 2}, {0, 0, 7}, {0, 0, 5}},
    {"own_slice", {0, 1, 3}, {0, 1, 0}, {0, 1, 3}},
    {"to_the_next_cube", {0, 0, 2}, {0, 1, 5}, {0, 1, 7}},
    {"across_sips", {0, 0, 2}, {1, 1, 5}, {1, 0, 7}},
};
using Case = std::tuple<Route, std::int64_t, Grade>;

class Probe : public ::testing::TestWithParam<Case> {};

TEST_P(Probe, SeesEveryDmaAndIpcqTransactionOnEverySocketOfItsPath) {
  const auto& [route, bytes, grade] = GetParam();
  const Plan plan(small_machine(2, 2, 1));
  RunOptions options;
  options.fidelity = Fidelity::all(grade);
  Machine machine(plan, options, nullptr);
  Host host(machine);
  Recorder recorder;
  machine.for_each_packet_socket([&](PacketInitiatorSocket& socket) { socket.set_probe(&recorder); });
  for (std::uint32_t node = 0; node < plan.map.nodes.size(); ++node) {
    machine.network_interface(NodeId{node}).set_probe(&recorder);
  }

  const PeCoord a = route.sender, b = route.receiver, memory = route.memory;
  const auto entry = [&](PeCoord self, PeCoord peer, Direction direction) {
    NeighbourEntry e;
    e.self = self;
    e.direction = direction;
    e.peer = e.source = peer;
    e.ring_base = PhysicalAddress::tcm(self, 0);
    e.peer_ring_base = PhysicalAddress::tcm(peer, 0);
    return e;
  };
  constexpr Va kVa = 1 << 20;
  const std::int64_t elements = bytes / 2;
  const KernelBody receive = [elements](Tl& tl) { tl.wait(tl.recv(Direction::global_w(), {1, elements}, DType::f16)); };
  const KernelBody send = [elements](Tl& tl) {
    const Tile tile = tl.load(kVa, {1, elements}, DType::f16);
    tl.wait(tile);
    tl.store(kVa + 2048, tile);
    tl.fence();
    tl.send(Direction::global_e(), tile);
  };
  const auto launch = [](std::vector<PeCoord> targets, KernelBody body) {
    LaunchMessage message;
    message.kernel = "probe";
    message.targets = std::move(targets);
    message.body = std::move(body);
    return message;
  };
  std::deque<Message*> messages;
  messages.push_back(&host.at(1, 0, MmuMapMessage{{{kVa, 4096, PhysicalAddress::hbm(memory, 0), {}}}}));
  messages.push_back(&host.at(1, a.sip, SfrWriteMessage{{entry(a, b, Direction::global_e())}}));
  messages.push_back(&host.at(1, b.sip, SfrWriteMessage{{entry(b, a, Direction::global_w())}}));
  if (a.sip == b.sip) {
    const int cube = a.cube, pe = a.pe;
    messages.push_back(&host.at(1, a.sip, launch({a, b}, [=](Tl& tl) {
                                  (tl.program_id(1) == cube && tl.program_id(0) == pe ? send : receive)(tl);
                                })));
  } else {
    messages.push_back(&host.at(1, b.sip, launch({b}, receive)));
    // Long after the other SIP has started, so that nothing else is under way.
    messages.push_back(&host.at(200'000'000, a.sip, launch({a}, send)));
  }
  sc_core::sc_start();

  EXPECT_EQ(host.completed(), messages.size());
  for (const Message* message : messages) {
    for (const Fault& fault : message->faults) ADD_FAILURE() << fault.str();
  }
  std::map<PacketKind, unsigned> kinds;
  ASSERT_EQ(recorder.transports.size(), 2 * recorder.journeys.size());
  for (std::size_t i = 0; i < recorder.journeys.size(); ++i) {
    const Journey& journey = recorder.journeys[i];
    ++kinds[journey.kind];
    SCOPED_TRACE(plan.map.name(journey.source) + " to " + plan.map.name(journey.destination));
    expect_journey(machine, plan, journey);
    expect_endpoints(machine, journey, recorder.transports[2 * i], recorder.transports[2 * i + 1]);
  }
  for (const PacketKind kind : {PacketKind::read, PacketKind::read_data, PacketKind::write, PacketKind::write_ack,
                                PacketKind::ipcq_data, PacketKind::ipcq_credit}) {
    EXPECT_EQ(kinds[kind], 1u) << static_cast<int>(kind);
  }
  EXPECT_EQ(machine.pool().outstanding(), 0u);
}

// One flit, and the longest packet.
INSTANTIATE_TEST_SUITE_P(Routes, Probe,
                         ::testing::Combine(::testing::ValuesIn(kRoutes),
                                            ::testing::Values(64, std::int64_t{kMaxPacketBytes}),
                                            ::testing::Values(Grade::accurate, Grade::fast)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + ("_" + std::to_string(std::get<1>(info.param))) + "_" +
                                  to_string(std::get<2>(info.param));
                         });

}  // namespace
}  // namespace kernbench::topology
