// A machine at work, seen on every base-protocol socket by a monitor that knows nothing but the standard: a call takes
// place at sc_time_stamp() plus its annotated delay, and keeps to the base protocol.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/interop/watched_machine.h"
#include "tests/support/test_body.h"
#include "tlm/kernel/tl.h"

namespace kernbench::topology {
namespace {

/// What the models themselves say of those sockets, by their own queues' clocks.
class ModelsLog final : public TransactionProbe {
 public:
  void transported(const char* socket, const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase,
                   Ps at) override {
    seen[socket].push_back({&payload, phase, at, 0, PacketKind::read});
  }
  std::map<std::string, std::vector<SeenPhase>> seen;
};

constexpr PeCoord kA{0, 0, 2}, kB{1, 1, 5};
constexpr Va kOwn = 1 << 20, kNear = 2 << 20, kFar = 3 << 20, kSram = 4 << 20, kTcm = 5 << 20, kShared = 6 << 20;
constexpr std::uint64_t kRegion = 64 << 10;

MmuMapMessage mapping(std::uint16_t sip) {
  return {{{kOwn, kRegion, PhysicalAddress::hbm({sip, 0, 2}, 0), {}},
           {kNear, kRegion, PhysicalAddress::hbm({sip, 1, 7}, 0), {}},
           {kFar, kRegion, PhysicalAddress::hbm({static_cast<std::uint16_t>(1 - sip), 0, 7}, 0), {}},
           {kSram, kRegion, PhysicalAddress::sram({sip, 0}, 0), {}},
           {kTcm, kRegion, PhysicalAddress::tcm({sip, 0, 6}, 256 << 10), {}},
           {kShared, kRegion, PhysicalAddress::hbm({sip, 0, 1}, kRegion), {}}}};
}

/// Of the pair between A and B that has this number at both.
NeighbourEntry entry(PeCoord self, PeCoord peer, std::uint16_t number, Direction direction, PhysicalAddress own,
                     PhysicalAddress theirs) {
  NeighbourEntry e;
  e.self = self;
  e.direction = direction;
  e.ring = e.queue = e.peer_ring = e.source_queue = number;
  e.peer = e.source = peer;
  e.ring_base = own;
  e.peer_ring_base = theirs;
  return e;
}

LaunchMessage launch(const char* name, std::vector<PeCoord> targets, std::function<void(Tl&)> body) {
  return launch_of(name, std::move(targets), std::move(body));
}

constexpr Direction kFromA[] = {Direction::global_e(), Direction::north()},
                    kFromB[] = {Direction::global_w(), Direction::south()};

/// Loads from and stores to every kind of memory, then a message there and one back by each pair of queues.
std::function<void(Tl&)> all_around(bool starts, Shape shape) {
  return [starts, shape](Tl& tl) {
    Tile tile = tl.load(kOwn, shape, DType::f16);
    for (const Va at : {kNear, kFar, kSram, kTcm}) {
      tl.store(at, tile);
      tl.fence();
      tile = tl.load(at, shape, DType::f16);
    }
    tl.wait(tile);
    for (const Direction peer : starts ? kFromA : kFromB) {
      if (starts) tl.send(peer, tile);
      tl.wait(tl.recv(peer, shape, DType::f16));
      if (!starts) tl.send(peer, tile);
    }
  };
}

/// Every PE of a cube at one slice at once: more than its queue holds.
std::function<void(Tl&)> crowd() {
  return [](Tl& tl) {
    const Va own = kShared + static_cast<Va>(tl.program_id(0)) * 8192;
    const Tile tile = tl.load(own, {1, 2048}, DType::f16);
    tl.store(own, tile);
    tl.wait(tl.load(own + 4096, {1, 2048}, DType::f16));
  };
}

class Endpoints : public ::testing::TestWithParam<WatchedCase> {};
INSTANTIATE_TEST_SUITE_P(Machine, Endpoints, every_grade_and_stepping(), &name_of);

TEST_P(Endpoints, KeepToTheProtocolAtTheTimesThatTheModelsHave) {
  const auto& [grade, observed] = GetParam();
  RunOptions options;
  options.fidelity = Fidelity::all(grade);
  OpLog ops;
  WatchedMachine bench(small_machine(2, 2, 1), options, observed ? &ops : nullptr);
  MessageHost host("host", bench);
  ModelsLog models;
  const MachineMap& map = bench.machine.map();
  for (std::uint32_t node = 0; node < map.nodes.size(); ++node)
    bench.machine.network_interface(NodeId{node}).set_probe(&models);

  std::vector<std::pair<std::uint16_t, Message*>> messages;
  const auto submit = [&](Ps time, std::uint16_t sip, decltype(Message::body) body) {
    messages.emplace_back(sip, &host.at(time, sip, std::move(body)));
  };
  // The rings of the first pair of queues lie in SRAM and TCM, those of the second in HBM.
  const PhysicalAddress in_sram = PhysicalAddress::sram({0, 0}, 1 << 20), in_tcm = PhysicalAddress::tcm(kB, 0);
  const PhysicalAddress of_a = PhysicalAddress::hbm({0, 0, 4}, 1 << 20),
                        of_b = PhysicalAddress::hbm({1, 1, 6}, 1 << 20);
  for (const std::uint16_t sip : {std::uint16_t{0}, std::uint16_t{1}}) {
    submit(1, sip, mapping(sip));
    submit(
        1, sip,
        sip == 0
            ? SfrWriteMessage{{entry(kA, kB, 0, kFromA[0], in_sram, in_tcm), entry(kA, kB, 1, kFromA[1], of_a, of_b)}}
            : SfrWriteMessage{{entry(kB, kA, 0, kFromB[0], in_tcm, in_sram), entry(kB, kA, 1, kFromB[1], of_b, of_a)}});
    submit(1'000, sip, MemoryWriteMessage{PhysicalAddress::hbm({sip, 0, 2}, 100), std::vector<std::uint8_t>(5000, 7)});
  }
  for (const std::int64_t elements : {32, 2048}) {
    submit(2'000, 0, launch("a", {kA}, all_around(true, {1, elements})));
    submit(2'000, 1, launch("b", {kB}, all_around(false, {1, elements})));
  }
  submit(3'000, 0, launch("crowd", map.pes(0), crowd()));
  MemoryReadMessage read;
  read.from = PhysicalAddress::hbm({0, 1, 7}, 30);
  read.bytes = 3000;
  submit(4'000, 0, read);
  submit(5'000, 0, MmuUnmapMessage{kOwn, kRegion});
  sc_core::sc_start();

  EXPECT_EQ(host.completed, messages.size());
  bench.expect_finished();

  // At the interfaces' sockets: what a monitor logs is what the models' clocks say.
  std::size_t compared = 0;
  for (const auto& [socket, by_models] : models.seen) {
    SCOPED_TRACE(socket);
    std::vector<SeenPhase> begins;
    for (const SeenPhase& phase : bench.seen.at(socket)) {
      if (phase.phase == tlm::BEGIN_REQ || phase.phase == tlm::BEGIN_RESP) begins.push_back(phase);
    }
    ASSERT_EQ(begins.size(), by_models.size());
    for (std::size_t i = 0; i < begins.size(); ++i) {
      ASSERT_EQ(begins[i].payload, by_models[i].payload) << i;
      ASSERT_EQ(begins[i].phase, by_models[i].phase) << i;
      ASSERT_EQ(begins[i].at, by_models[i].at) << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 500u);

  // At the host's: what the messages say.
  for (const auto& [sip, message] : messages) {
    for (const Fault& fault : message->faults) ADD_FAILURE() << fault.str();
    const tlm::tlm_generic_payload* payload = &host.payload_of(*message);
    std::vector<std::pair<tlm::tlm_phase, Ps>> phases;
    for (const SeenPhase& phase : bench.seen.at(WatchedMachine::host_socket(sip))) {
      if (phase.payload == payload) phases.emplace_back(phase.phase, phase.at);
    }
    ASSERT_EQ(phases.size(), 4u);
    EXPECT_EQ(phases[0], std::make_pair(tlm::tlm_phase(tlm::BEGIN_REQ), message->submitted));
    EXPECT_EQ(phases[1], std::make_pair(tlm::tlm_phase(tlm::END_REQ), message->submitted));
    EXPECT_EQ(phases[2], std::make_pair(tlm::tlm_phase(tlm::BEGIN_RESP), message->completed));
    EXPECT_EQ(phases[3], std::make_pair(tlm::tlm_phase(tlm::END_RESP), message->completed));
  }

  // At the PEs': what the op log says.
  std::map<std::string, unsigned> checked;
  for (const OpRecord& op : ops.ops) {
    if (op.kind != "dma" && op.kind != "ipcq") continue;
    const std::string pe = op.component.substr(0, op.component.rfind('.'));
    const auto found =
        std::find_if(map.pe_nodes.begin(), map.pe_nodes.end(), [&](NodeId node) { return map.name(node) == pe; });
    ASSERT_NE(found, map.pe_nodes.end()) << pe;
    Ps first_request = kNever, last_request = 0, last_response = 0;
    for (const SeenPhase& phase : bench.seen.at(bench.machine.network_interface(*found).from_endpoint->name())) {
      if (phase.op != op.op) continue;
      if (phase.phase == tlm::BEGIN_REQ) {
        first_request = std::min(first_request, phase.at);
        last_request = std::max(last_request, phase.at);
      }
      if (phase.phase == tlm::BEGIN_RESP) last_response = std::max(last_response, phase.at);
    }
    SCOPED_TRACE(op.component + " " + op.name);
    ++checked[op.component.substr(op.component.rfind('.'))];
    if (op.name == "dma_write") {
      EXPECT_LE(op.start, first_request);
      EXPECT_EQ(op.end, last_response);  // when the last acknowledgement is here
    } else if (op.name == "dma_read") {
      EXPECT_LE(op.start, first_request);
      EXPECT_LT(first_request, last_response);
      EXPECT_LT(last_response, op.end);  // TCM has yet to take the data
    } else if (op.component == pe + ".ipcq_send") {
      EXPECT_LT(op.start, first_request);  // TCM was read first
      EXPECT_EQ(op.end, last_request);     // when the last packet has been handed over
    }
  }
  if (observed) {
    EXPECT_GE(checked[".dma_w"], 16u);
    EXPECT_GE(checked[".dma_r"], 20u);
    EXPECT_EQ(checked[".ipcq_send"], 8u);
  }
}

}  // namespace
}  // namespace kernbench::topology
