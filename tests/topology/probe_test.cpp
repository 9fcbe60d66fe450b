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

// The contract of spec/hardware.md: every DMA and IPCQ transaction is seen on every bound socket of its path, in order,
// with the right times. One packet is under way at a time, so that the right time is the closed form.
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

class Recorder final : public PacketProbe {
 public:
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
    machine_.dispatcher().queue(sip).at(time, [port, pointer] {
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
    EXPECT_GE(wire.head, flight.head + end.link.latency) << wire.socket;
    EXPECT_GE(wire.tail, flight.head + end.link.latency + end.link.rate().time_for(journey.bytes)) << wire.socket;
    const Crossing& in = next(machine.link_port(end.peer).to_network[step.connection]->name());
    flight = cross(end.link, noc, beyond, flight);
    EXPECT_EQ(in.head, flight.head) << in.socket;
    EXPECT_EQ(in.tail, flight.tail) << in.socket;
  }
  EXPECT_EQ(i, seen.size()) << "seen on more sockets than the path has";
}

TEST(Probe, SeesEveryDmaAndIpcqTransactionOnEverySocketOfItsPath) {
  const Plan plan(small_machine(2, 2, 1));
  Machine machine(plan, RunOptions{}, nullptr);
  Host host(machine);
  Recorder recorder;
  machine.for_each_packet_socket([&](PacketInitiatorSocket& socket) { socket.set_probe(&recorder); });

  const PeCoord a{0, 0, 2}, b{1, 1, 5}, memory{1, 0, 7};
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
  constexpr std::int64_t kElements = 32;  // one flit
  const auto launch = [](PeCoord target, KernelBody body) {
    LaunchMessage message;
    message.kernel = "probe";
    message.targets = {target};
    message.body = std::move(body);
    return message;
  };
  std::deque<Message*> messages;
  messages.push_back(&host.at(1, 0, MmuMapMessage{{{kVa, 4096, PhysicalAddress::hbm(memory, 0), {}}}}));
  messages.push_back(&host.at(1, 0, SfrWriteMessage{{entry(a, b, Direction::global_e())}}));
  messages.push_back(&host.at(1, 1, SfrWriteMessage{{entry(b, a, Direction::global_w())}}));
  messages.push_back(&host.at(1, 1, launch(b, [](Tl& tl) {
                                tl.wait(tl.recv(Direction::global_w(), {1, kElements}, DType::f16));
                              })));
  // Long after the other SIP has started, so that nothing else is under way.
  messages.push_back(&host.at(200'000'000, 0, launch(a, [](Tl& tl) {
                                const Tile tile = tl.load(kVa, {1, kElements}, DType::f16);
                                tl.wait(tile);
                                tl.store(kVa + 2048, tile);
                                tl.fence();
                                tl.send(Direction::global_e(), tile);
                              })));
  sc_core::sc_start();

  EXPECT_EQ(host.completed(), messages.size());
  for (const Message* message : messages) {
    for (const Fault& fault : message->faults) ADD_FAILURE() << fault.str();
  }
  std::map<PacketKind, unsigned> kinds;
  for (const Journey& journey : recorder.journeys) {
    ++kinds[journey.kind];
    SCOPED_TRACE(plan.map.name(journey.source) + " to " + plan.map.name(journey.destination));
    expect_journey(machine, plan, journey);
  }
  for (const PacketKind kind : {PacketKind::read, PacketKind::read_data, PacketKind::write, PacketKind::write_ack,
                                PacketKind::ipcq_data, PacketKind::ipcq_credit}) {
    EXPECT_EQ(kinds[kind], 1u) << static_cast<int>(kind);
  }
  EXPECT_EQ(machine.pool().outstanding(), 0u);
}

}  // namespace
}  // namespace kernbench::topology
