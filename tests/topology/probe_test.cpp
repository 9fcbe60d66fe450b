#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <sstream>

#include "tests/support/test_body.h"
#include "tests/topology/machines.h"
#include "tests/topology/probe_rig.h"
#include "tlm/kernel/tl.h"

// The contract (docs/noc.md, Watching): in both fidelities every DMA and IPCQ transaction is seen on every bound socket
// of its path, in order, with the right times: from the endpoint's TLM-2.0 socket over routers, ports and wires to the
// other endpoint's. Every packet socket is bound through a tap, so that what it does not see did not pass there.
namespace kernbench::topology {
namespace {

constexpr Va kVa = 1 << 20;
constexpr std::uint64_t kRings = 8 << 20;  ///< of TCM: behind the tiles

/// What travels: how, and in which pieces.
struct Traffic {
  const char* name;
  Fidelity fidelity;
  std::uint32_t flit_bytes = 64, slot_bytes = 4096;
  std::uint32_t access_train = kMaxPacketBytes, message_train = kMaxPacketBytes;  ///< bytes of the longest packets
};
constexpr Fidelity kAccurate = Fidelity::all(Grade::accurate), kFast = Fidelity::all(Grade::fast);
constexpr Fidelity kFastNetwork{Grade::fast, Grade::accurate};
const Traffic kAccuratePackets{"accurate", kAccurate};
const Traffic kFastPackets{"fast", kFast, 64, 4096, 4096, 4096};
const Traffic kLongTrains{"trains_of_16_KiB", kFast, 64, 16 << 10, 8192, 16 << 10};
const Traffic kLongestTrains{"trains_of_64_KiB", kFast, 64, 64 << 10, 8192, 64 << 10};
/// A packet of 256 B has 32 flits or more and lies over several routers; in the fast grade it goes ahead
/// (HopCommit.OrdinaryPacketsGoAheadFromThirtyTwoFlits).
const Traffic kNarrow{"accurate_of_32_flits", kAccurate, 8};
const Traffic kNarrowAhead{"fast_of_32_flits", kFastNetwork, 8};
const Traffic kNarrowerAhead{"fast_of_64_flits", kFastNetwork, 4};

SystemSpec machine_of(const Traffic& traffic) {
  SystemSpec spec = small_machine(2, 2, 1);
  for (NocConfig* noc : {&spec.cube.noc, &spec.sip.io.crossbar, &spec.links.switch_crossbar})
    noc->flit_bytes = traffic.flit_bytes;
  spec.cube.pe.ipcq.slot_bytes = traffic.slot_bytes;
  spec.cube.pe.dma.outstanding = 64;     // room for several trains of an access
  spec.links.link.buffer_packets = 512;  // and on the wires
  return spec;
}

NeighbourEntry queue_pair(const Traffic& traffic, PeCoord self, PeCoord to, PeCoord from, Direction direction) {
  NeighbourEntry entry;
  entry.self = self;
  entry.direction = direction;
  entry.peer = to;
  entry.source = from;
  entry.slot_bytes = traffic.slot_bytes;
  entry.ring_base = PhysicalAddress::tcm(self, kRings);
  entry.peer_ring_base = PhysicalAddress::tcm(to, kRings);
  return entry;
}

LaunchMessage launch(std::vector<PeCoord> targets, std::function<void(Tl&)> body) {
  return launch_of("probe", std::move(targets), std::move(body));
}

// An idle machine: one packet is under way at a time, so that the right time is the closed form.

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
/// A load, a store and a message: each one packet.
struct Sizes {
  const Traffic* traffic;
  std::int64_t access, message;
};
const Sizes kSizes[] = {
    {&kAccuratePackets, 64, 64},
    {&kAccuratePackets, kMaxPacketBytes, kMaxPacketBytes},
    {&kFastPackets, 64, 64},
    {&kFastPackets, kMaxPacketBytes, kMaxPacketBytes},
    {&kFastPackets, 4096, 4096},
    {&kLongTrains, 8192, 16 << 10},
    {&kLongestTrains, 8192, 64 << 10},
    {&kNarrow, kMaxPacketBytes, kMaxPacketBytes},
    {&kNarrowAhead, kMaxPacketBytes, kMaxPacketBytes},
    {&kNarrowerAhead, kMaxPacketBytes, kMaxPacketBytes},
};

class Probe : public ::testing::TestWithParam<std::tuple<Route, Sizes>> {};

TEST_P(Probe, SeesEveryDmaAndIpcqTransactionOnEverySocketOfItsPath) {
  const auto& [route, sizes] = GetParam();
  const Traffic& traffic = *sizes.traffic;
  const Plan plan(machine_of(traffic));
  RunOptions options;
  options.fidelity = traffic.fidelity;
  TappedMachine tapped(plan, options);
  Recorder& recorder = tapped.recorder;
  Machine& machine = tapped.machine;
  Host& host = tapped.host;
  for (std::uint32_t node = 0; node < plan.map.nodes.size(); ++node) {
    machine.network_interface(NodeId{node}).set_probe(&recorder);
  }

  const PeCoord a = route.sender, b = route.receiver, memory = route.memory;
  const std::int64_t access = sizes.access / 2, message = sizes.message / 2;  // elements
  const std::function<void(Tl&)> receive = [message](Tl& tl) {
    tl.wait(tl.recv(Direction::global_w(), {1, message}, DType::f16));
  };
  const std::function<void(Tl&)> send = [access, message](Tl& tl) {
    const Tile tile = tl.load(kVa, {1, access}, DType::f16);
    tl.wait(tile);
    tl.store(kVa + (32 << 10), tile);
    tl.fence();
    const Tile sent = tl.fill({1, message}, DType::f16, 1);
    tl.wait(sent);
    tl.send(Direction::global_e(), sent);
  };
  host.at(1, 0, MmuMapMessage{{{kVa, 64 << 10, PhysicalAddress::hbm(memory, 0), {}}}});
  host.at(1, a.sip, SfrWriteMessage{{queue_pair(traffic, a, b, b, Direction::global_e())}});
  host.at(1, b.sip, SfrWriteMessage{{queue_pair(traffic, b, a, a, Direction::global_w())}});
  if (a.sip == b.sip) {
    const int cube = a.cube, pe = a.pe;
    host.at(1, a.sip,
            launch({a, b}, [=](Tl& tl) { (tl.program_id(1) == cube && tl.program_id(0) == pe ? send : receive)(tl); }));
  } else {
    host.at(1, b.sip, launch({b}, receive));
    // Long after the other SIP has started, so that nothing else is under way.
    host.at(200'000'000, a.sip, launch({a}, send));
  }
  sc_core::sc_start();

  host.expect_no_faults();
  std::map<PacketKind, std::vector<std::uint32_t>> kinds;
  for (const Journey& journey : recorder.journeys) {
    kinds[journey.kind].push_back(journey.bytes);
    expect_journey(machine, plan, journey);
    expect_endpoints(machine, plan, journey, recorder);
  }
  for (const auto& [payload, left] : recorder.transports) EXPECT_TRUE(left.empty()) << "a phase without a journey";
  const auto one = [](std::int64_t bytes) { return std::vector<std::uint32_t>{static_cast<std::uint32_t>(bytes)}; };
  EXPECT_EQ(kinds[PacketKind::read], one(0));
  EXPECT_EQ(kinds[PacketKind::read_data], one(sizes.access));
  EXPECT_EQ(kinds[PacketKind::write], one(sizes.access));
  EXPECT_EQ(kinds[PacketKind::write_ack], one(0));
  EXPECT_EQ(kinds[PacketKind::ipcq_data], one(sizes.message));
  EXPECT_EQ(kinds[PacketKind::ipcq_credit].size(), 1U);
  EXPECT_EQ(machine.pool().outstanding(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Routes, Probe, ::testing::Combine(::testing::ValuesIn(kRoutes), ::testing::ValuesIn(kSizes)),
                         [](const auto& info) {
                           const Sizes& sizes = std::get<1>(info.param);
                           return std::get<0>(info.param).name + ("_" + std::to_string(sizes.message)) + "_" +
                                  sizes.traffic->name;
                         });

/// The back door leads over the sockets that a timed write to the same memory crosses, in their order.
class BackDoorProbe : public ::testing::TestWithParam<PhysicalAddress> {};

TEST_P(BackDoorProbe, LeadsOverEverySocketThatATimedWriteCrosses) {
  const Plan plan(machine_of(kAccuratePackets));
  TappedMachine tapped(plan);
  Recorder& recorder = tapped.recorder;
  Host& host = tapped.host;
  host.at(1, 0, MemoryWriteMessage{GetParam(), std::vector<std::uint8_t>(64, 1)});
  sc_core::sc_start();
  host.expect_no_faults();
  std::vector<std::string> timed;
  for (const Journey& journey : recorder.journeys) {
    if (journey.kind != PacketKind::write) continue;
    ASSERT_TRUE(timed.empty()) << "one write";
    for (const Crossing& crossing : journey.crossings) timed.push_back(crossing.socket);
  }
  EXPECT_GE(timed.size(), 3U);
  EXPECT_TRUE(recorder.debugs.empty());

  unsigned char data[64] = {};
  tlm::tlm_generic_payload payload;
  payload.set_read();
  payload.set_address(GetParam().encode());
  payload.set_data_ptr(data);
  payload.set_data_length(sizeof data);
  payload.set_streaming_width(sizeof data);
  EXPECT_EQ(host.debug(0, payload), sizeof data);
  EXPECT_EQ(recorder.debugs, timed);
  EXPECT_EQ(std::count(std::begin(data), std::end(data), 1), 64) << "what was written";
}

INSTANTIATE_TEST_SUITE_P(Memories, BackDoorProbe,
                         ::testing::Values(PhysicalAddress::hbm({0, 0, 0}, 0), PhysicalAddress::hbm({0, 1, 6}, 4096),
                                           PhysicalAddress::tcm({0, 1, 3}, 256), PhysicalAddress::sram({0, 1}, 64)),
                         [](const auto& info) { return "memory" + std::to_string(info.index); });

// A busy machine: every second PE loads from one slice, stores to another, and sends to the next of a ring over all of
// them. Packets wait for each other at outputs, for channels, at wires and at memories.

/// What the machine publishes of its router outputs and its DMA engines' ops.
struct Listener final : Observer {
  struct Interval {
    Ps begin, end;
    std::uint64_t op;
  };
  TrackId add_track(const std::string& name, TrackKind, const std::vector<std::string>&) override {
    names.push_back(name);
    return TrackId{static_cast<std::uint32_t>(names.size() - 1)};
  }
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override {
    intervals[names[static_cast<std::size_t>(track)]].push_back({begin, end, value});
  }
  void interval(TrackId, Ps, Ps, const std::string&) override {}
  void change(TrackId, Ps, std::uint64_t) override {}
  void op(const OpRecord& record) override {
    if (record.kind == "dma") ops[record.op] = record;
  }
  bool wants_ops() const override { return true; }
  std::vector<std::string> names;
  std::map<std::string, std::vector<Interval>> intervals;
  std::map<std::uint64_t, OpRecord> ops;
};

/// Every time that a run without any watcher can tell, as text.
std::string times_of(Machine& machine, const Plan& plan, const Host& host) {
  std::ostringstream out;
  for (const Ps answer : host.answers()) out << answer << '\n';
  const auto stats = [&out](const std::string& name, const PortStats& of) {
    out << name << ' ' << of.packets << ' ' << of.bytes << ' ' << of.busy << '\n';
  };
  for (std::uint32_t id = 0; id < plan.networks.size(); ++id) {
    for (std::uint16_t r = 0; r < plan.networks[id].routers(); ++r) {
      Router& router = machine.router(id, r);
      for (unsigned port = 0; port < router.out.size(); ++port) {
        if (router.out[port] != nullptr) stats(router.out[port]->name(), router.output_stats(port));
      }
    }
  }
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) out << machine.dispatcher().queue(sip).now() << '\n';
  return out.str();
}

constexpr std::int64_t kAccess = 16 << 10;  ///< bytes that each of them loads and stores
std::int64_t message_of(const Traffic& traffic) { return std::max<std::int64_t>(kAccess, traffic.slot_bytes); }

struct Watchers {
  Recorder* recorder = nullptr;
  Observer* observer = nullptr;
};
/// Elaborates the machine, runs the busy traffic, and lets `look` see what became of it.
void run_busy(const Traffic& traffic, const Watchers& watchers,
              const std::function<void(Machine&, const Plan&, const Host&)>& look) {
  const Plan plan(machine_of(traffic));
  RunOptions options;
  options.fidelity = traffic.fidelity;
  std::optional<Taps> taps;
  ForeignParts parts;
  if (watchers.recorder != nullptr) parts.bind_packets = taps.emplace(*watchers.recorder).binder();
  Machine machine(plan, options, watchers.observer, parts);
  Host host("test_host", machine);
  std::vector<PeCoord> all;
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) {
    for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
      for (std::uint16_t pe = 0; pe < plan.map.pes_per_cube; pe += 2) all.push_back({sip, cube, pe});
    }
  }
  std::vector<SfrWriteMessage> queues(plan.map.sips);
  std::vector<std::vector<PeCoord>> targets(plan.map.sips);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const PeCoord self = all[i], to = all[(i + 1) % all.size()], from = all[(i + all.size() - 1) % all.size()];
    queues[self.sip].entries.push_back(queue_pair(traffic, self, to, from, Direction::global_e()));
    targets[self.sip].push_back(self);
  }
  const std::int64_t message = message_of(traffic) / 2;
  const std::function<void(Tl&)> body = [message](Tl& tl) {
    const std::int64_t self = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1);
    const Tile tile = tl.load(kVa + kAccess * self, {1, kAccess / 2}, DType::f16);
    tl.store(kVa + (4 << 20) + kAccess * self, tile);
    tl.send(Direction::global_e(), tl.fill({1, message}, DType::f16, 1));
    tl.wait(tl.recv(Direction::global_e(), {1, message}, DType::f16));
  };
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) {
    host.at(1, sip,
            MmuMapMessage{{{kVa, 4 << 20, PhysicalAddress::hbm({0, 0, 5}, std::uint64_t{sip} << 24), {}},
                           {kVa + (4 << 20), 4 << 20, PhysicalAddress::hbm({1, 1, 2}, std::uint64_t{sip} << 24), {}}}});
    host.at(1, sip, std::move(queues[sip]));
    host.at(1, sip, launch(targets[sip], body));
  }
  sc_core::sc_start();
  host.expect_no_faults();
  EXPECT_EQ(machine.pool().outstanding(), 0u);
  look(machine, plan, host);
}

/// A port passes one flit per cycle, and a channel one packet after the other.
void expect_a_port(const std::string& socket, std::vector<Crossing> seen, const NocConfig& noc, bool leaves) {
  const FlitCounter flits(noc.flit_bytes);
  const Clock clock(noc.clock_hz);
  std::map<std::uint8_t, Ps> channels;  // end of the last packet
  std::sort(seen.begin(), seen.end(), [](const Crossing& a, const Crossing& b) { return a.head < b.head; });
  Ps begin = kNever, end = 0;
  std::uint64_t sum = 0;
  for (const Crossing& crossing : seen) {
    ASSERT_GE(crossing.tail, crossing.head + clock.at(flits(crossing.bytes) - 1)) << socket;
    const auto [before, is_first] = channels.try_emplace(crossing.vc, crossing.tail);
    if (!is_first) {
      // The fast grade adds to the tail of a packet that leaves the network what those after it cost it.
      if (!leaves) {
        ASSERT_GT(crossing.head, before->second) << socket << ", channel " << int{crossing.vc};
      }
      ASSERT_GT(crossing.tail, before->second) << socket << ", channel " << int{crossing.vc};
      before->second = crossing.tail;
    }
    if (crossing.goes_first) continue;  // in the fast grade they take cycles of packets that have been decided
    begin = std::min(begin, crossing.head);
    end = std::max(end, crossing.tail);
    sum += flits(crossing.bytes);
  }
  EXPECT_LE(clock.at(std::max<std::uint64_t>(sum, 1) - 1), sum == 0 ? 0 : end - begin) << socket;
}

class BusyProbe : public ::testing::TestWithParam<const Traffic*> {};

TEST_P(BusyProbe, SeesEveryTransactionOnEverySocketOfItsPathNeverEarlierThanOnAnIdleMachine) {
  const Traffic& traffic = *GetParam();
  Recorder recorder;
  Listener listener;
  run_busy(traffic, {&recorder, &listener}, [&](Machine& machine, const Plan& plan, const Host&) {
    std::map<PacketKind, std::int64_t> bytes;
    std::map<PacketKind, std::uint32_t> longest;
    unsigned late = 0;
    for (const Journey& journey : recorder.journeys) {
      bytes[journey.kind] += journey.bytes;
      longest[journey.kind] = std::max(longest[journey.kind], journey.bytes);
      expect_journey(machine, plan, journey, Load::busy);
      if (::testing::Test::HasFailure()) return;
      const auto routers = static_cast<unsigned>(walk(plan, journey.source, journey.destination).size());
      const auto& seen = journey.crossings;
      if (seen.size() == routers + 1) {  // it stays in one network
        const NocConfig& noc = *plan.networks[plan.network_of(journey.source)].noc;
        if (seen.back().head > pass(noc, {journey.bytes, seen[0].head, seen[0].tail}, routers).head) ++late;
      }
      const auto op = listener.ops.find(journey.op);
      if (op == listener.ops.end()) continue;
      EXPECT_GE(seen.front().head, op->second.start);
      EXPECT_LE(seen.back().tail, op->second.end);
    }
    const std::int64_t senders = plan.map.sips * plan.map.cubes_per_sip() * plan.map.pes_per_cube / 2;
    EXPECT_EQ(bytes[PacketKind::read_data], senders * kAccess);
    EXPECT_EQ(bytes[PacketKind::write], senders * kAccess);
    EXPECT_EQ(bytes[PacketKind::ipcq_data], senders * message_of(traffic));
    EXPECT_EQ(longest[PacketKind::read_data], traffic.access_train);
    EXPECT_EQ(longest[PacketKind::write], traffic.access_train);
    EXPECT_EQ(longest[PacketKind::ipcq_data], traffic.message_train);
    EXPECT_GT(late, recorder.journeys.size() / 20) << "hardly a packet had to wait for another";

    unsigned shared = 0;  // outputs that carry several channels
    for (std::uint32_t id = 0; id < plan.networks.size(); ++id) {
      const NocConfig& noc = *plan.networks[id].noc;
      const Clock clock(noc.clock_hz);
      const Cycle flight = Cycle{noc.sw_alloc_delay} + noc.switch_delay + noc.link_delay;
      for (std::uint16_t r = 0; r < plan.networks[id].routers(); ++r) {
        Router& router = machine.router(id, r);
        for (unsigned port = 0; port < router.out.size(); ++port) {
          if (router.out[port] == nullptr) continue;
          const std::string name = router.out[port]->name();
          const std::vector<Crossing>& seen = recorder.sockets[name];
          const bool leaves = plan.beyond(id, r, static_cast<std::uint8_t>(port)).kind != Beyond::Kind::router;
          expect_a_port(name, seen, noc, leaves);
          std::set<std::uint8_t> channels;
          for (const Crossing& crossing : seen) channels.insert(crossing.vc);
          if (channels.size() > 1) ++shared;
          // What the observer was told of the output: from the first flit's departure to after the last one's.
          const auto& told = listener.intervals[name];
          ASSERT_EQ(told.size(), seen.size()) << name;
          Ps before = 0;
          for (std::size_t i = 0; i < seen.size(); ++i) {
            EXPECT_EQ(told[i].begin, std::max(seen[i].head - clock.at(flight), before)) << name;
            EXPECT_EQ(told[i].end, seen[i].tail - clock.at(flight) + clock.at(1)) << name;
            EXPECT_EQ(told[i].op, seen[i].op) << name;
            before = told[i].end;
          }
        }
      }
    }
    EXPECT_GT(shared, 8U);
  });
}

/// What `run` says in a process of its own: SystemC elaborates once in each.
std::string in_a_child(const std::function<std::string()>& run) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = run();
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t more = write(ends[1], text.data() + sent, text.size() - sent);
      if (more <= 0) _exit(1);
      sent += static_cast<std::size_t>(more);
    }
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t more = 0; (more = read(ends[0], piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(more));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return text;
}

TEST_P(BusyProbe, ChangesNoTimeOfTheMachineThatItWatches) {
  const Traffic& traffic = *GetParam();
  const auto times = [&traffic](const Watchers& watchers) {
    std::string text;
    run_busy(traffic, watchers,
             [&](Machine& machine, const Plan& plan, const Host& host) { text = times_of(machine, plan, host); });
    return text;
  };
  const std::string alone = in_a_child([&] { return times({}); });
  const std::string tapped = in_a_child([&] {
    Recorder recorder;
    return times({&recorder, nullptr});
  });
  Recorder recorder;
  Listener listener;
  const std::string watched = times({&recorder, &listener});
  EXPECT_GT(alone.size(), 1000U);
  EXPECT_EQ(alone, tapped);
  EXPECT_EQ(alone, watched);
}

INSTANTIATE_TEST_SUITE_P(Traffic, BusyProbe,
                         ::testing::Values(&kAccuratePackets, &kFastPackets, &kLongTrains, &kLongestTrains, &kNarrow,
                                           &kNarrowAhead, &kNarrowerAhead),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace kernbench::topology
