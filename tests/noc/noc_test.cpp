#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>

#include "tests/noc/test_mesh.h"
#include "tests/support/thrown.h"

namespace kernbench::test {
namespace {

struct System {
  explicit System(const NocConfig& config) : mesh("mesh", config, 0, dispatcher.queue(0), pool) {}
  EventQueue& queue() { return dispatcher.queue(0); }
  Dispatcher dispatcher{"dispatcher", 1};
  PayloadPool pool;
  TestMesh mesh;
};

NodeId node(unsigned n) { return NodeId{n}; }

Ps sum(const std::array<Ps, kDelays>& spent) { return std::accumulate(spent.begin(), spent.end(), Ps{0}); }

TEST(Noc, ZeroLoadLatencyIs6Plus4PerLinkPlusBodyFlits) {
  System system(mesh_config(4, 4));
  EventQueue& queue = system.queue();
  Ps time = 0;
  for (unsigned from = 0; from < 16; ++from) {
    for (unsigned to = 0; to < 16; ++to) {
      for (const std::uint32_t bytes : {0U, 32U, 96U, 256U}) {
        queue.at(time, [&system, from, to, bytes] {
          system.mesh.node(from).send(node(to), MessageClass::ipcq_data, bytes, bytes);
        });
        time += 100 * kCycle;
      }
    }
  }
  sc_core::sc_start();
  std::size_t count = 0;
  for (unsigned to = 0; to < 16; ++to) {
    for (const Endpoint::Got& got : system.mesh.node(to).got) {
      const Ps flits = std::max(1U, (got.bytes + 31) / 32);
      const Ps links = system.mesh.links(got.source, to);
      EXPECT_EQ(got.latency(), (6 + 4 * links + flits - 1) * kCycle) << got.source << " to " << to;
      EXPECT_EQ(got.spent[static_cast<int>(Delay::mesh)], (6 + 4 * links) * kCycle);
      EXPECT_EQ(got.spent[static_cast<int>(Delay::wire)], (flits - 1) * kCycle);
      EXPECT_EQ(got.spent[static_cast<int>(Delay::contention)], 0U);
      ++count;
    }
  }
  EXPECT_EQ(count, 16U * 16U * 4U);
  EXPECT_EQ(system.pool.outstanding(), 0U);
}

TEST(Noc, PacketsStartAtTheNextEdgeOfAClockThatIsNoWholeNumberOfPicoseconds) {
  NocConfig config = mesh_config(2, 2);
  config.clock_hz = 3'000'000'000;  // 333.33 ps
  System system(config);
  system.queue().at(500, [&system] { system.mesh.node(0).send(node(3), MessageClass::ipcq_data, 256, 0); });
  sc_core::sc_start();
  ASSERT_EQ(system.mesh.node(3).got.size(), 1U);
  const Endpoint::Got& got = system.mesh.node(3).got[0];
  EXPECT_EQ(got.time, Clock(config.clock_hz).at(2 + 6 + 4 * 2 + 7));  // 500 ps is seen at edge 2
  EXPECT_EQ(sum(got.spent), got.latency());
}

TEST(Noc, OneEventPerCycleInWhichSomethingHappens) {
  System system(mesh_config(1, 4));
  system.queue().at(0, [&system] { system.mesh.node(0).send(node(3), MessageClass::ipcq_data, 256, 0); });
  sc_core::sc_start();
  EXPECT_EQ(system.mesh.node(3).got.size(), 1U);
  // Four allocations of a channel at cycles 2, 6, 10, 14; the 8 flits win the switches in 3-10, 7-14, 11-18 and 15-22:
  // cycles 2 to 22. Besides the test's call and the delivery.
  EXPECT_EQ(system.queue().executed(), 1U + 21U + 1U);
}

TEST(Noc, IdleNetworkExecutesNothing) {
  System system(mesh_config(4, 4));
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_MS));
  EXPECT_EQ(system.queue().executed(), 0U);
}

TEST(Noc, OneFlowFillsItsLinks) {
  System system(mesh_config(1, 3));
  constexpr unsigned kPackets = 1000;
  system.queue().at(0, [&system] {
    for (unsigned i = 0; i < kPackets; ++i) system.mesh.node(0).send(node(2), MessageClass::ipcq_data, 256, i);
  });
  sc_core::sc_start();
  const auto& got = system.mesh.node(2).got;
  ASSERT_EQ(got.size(), kPackets);
  EXPECT_EQ(got.back().time, (6 + 4 * 2 + 8 * kPackets - 1) * kCycle);  // one flit in every cycle
  EXPECT_EQ(system.mesh.routers[0]->output_stats(kEastPort).packets, kPackets);
  EXPECT_EQ(system.mesh.routers[0]->output_stats(kEastPort).bytes, 256U * kPackets);
  EXPECT_EQ(system.mesh.routers[0]->output_stats(kEastPort).busy, 8 * kPackets * kCycle);
}

TEST(Noc, ShortPacketsFillTheLinksToo) {
  System system(mesh_config(1, 3));
  constexpr unsigned kPackets = 1000;
  system.queue().at(0, [&system] {
    for (unsigned i = 0; i < kPackets; ++i) system.mesh.node(0).send(node(2), MessageClass::ipcq_data, 32, i);
  });
  sc_core::sc_start();
  const auto& got = system.mesh.node(2).got;
  ASSERT_EQ(got.size(), kPackets);
  EXPECT_EQ(got.back().time, (6 + 4 * 2 + kPackets - 1) * kCycle);
}

TEST(Noc, ACreditRoundTripLimitsAShallowBuffer) {
  NocConfig config = mesh_config(1, 2);
  config.flit_bytes = 256;  // one-flit packets
  config.vc_depth_flits = 2;
  System system(config);
  constexpr unsigned kPackets = 1000;
  system.queue().at(0, [&system] {
    for (unsigned i = 0; i < kPackets; ++i) system.mesh.node(0).send(node(1), MessageClass::ipcq_data, 256, i);
  });
  sc_core::sc_start();
  const auto& got = system.mesh.node(1).got;
  ASSERT_EQ(got.size(), kPackets);
  // A slot comes back 7 cycles after a head flit was granted (bench/reference/noc/README.md): 2 flits in 7 cycles.
  EXPECT_NEAR(static_cast<double>(got.back().time - got.front().time) / kCycle, (kPackets - 1) * 7.0 / 2, 7);
}

TEST(Noc, InputsShareAnOutputRoundRobin) {
  System system(mesh_config(3, 3));
  constexpr unsigned kPackets = 300;
  const std::array<unsigned, 4> sources = {1, 3, 5, 7};  // the four neighbours of the middle
  system.queue().at(0, [&] {
    for (const unsigned from : sources) {
      for (unsigned i = 0; i < kPackets; ++i) system.mesh.node(from).send(node(4), MessageClass::ipcq_data, 128, i);
    }
  });
  sc_core::sc_start();
  std::map<unsigned, unsigned> half;
  const auto& got = system.mesh.node(4).got;
  ASSERT_EQ(got.size(), 4 * kPackets);
  for (std::size_t i = 0; i < got.size() / 2; ++i) ++half[got[i].source];
  for (const unsigned from : sources) EXPECT_NEAR(half[from], kPackets / 2.0, 2) << from;
}

TEST(Noc, WeightedRoundRobinFavoursThroughTraffic) {
  NocConfig config = mesh_config(1, 3);
  config.arbitration = Arbitration::weighted_round_robin;
  System system(config);
  constexpr unsigned kPackets = 300;
  system.queue().at(0, [&] {
    for (const unsigned from : {0U, 1U}) {
      for (unsigned i = 0; i < kPackets; ++i) system.mesh.node(from).send(node(2), MessageClass::ipcq_data, 128, i);
    }
  });
  sc_core::sc_start();
  const auto& got = system.mesh.node(2).got;
  unsigned through = 0;
  for (std::size_t i = 0; i < 150; ++i) through += got.at(i).source == 0 ? 1 : 0;
  EXPECT_NEAR(through, 100, 3);  // two of three
}

TEST(Noc, CommandsGoBeforeDataAtEveryArbiter) {
  System system(mesh_config(1, 4));
  system.queue().at(0, [&] {
    for (const unsigned from : {0U, 1U, 2U}) {
      for (unsigned i = 0; i < 100; ++i) system.mesh.node(from).send(node(3), MessageClass::ipcq_data, 256, i);
    }
  });
  // Each arbiter may have one packet of 8 flits under way; 4 routers and the source.
  system.queue().at(500 * kCycle, [&] { system.mesh.node(0).send(node(3), MessageClass::command, 0, 1000); });
  sc_core::sc_start();
  for (const Endpoint::Got& got : system.mesh.node(3).got) {
    if (got.tag != 1000) continue;
    EXPECT_LE(got.latency(), (6 + 4 * 3 + 5 * 8) * kCycle);
    EXPECT_EQ(sum(got.spent), got.latency());
  }
  EXPECT_EQ(system.mesh.node(3).got.size(), 301U);
}

TEST(Noc, AStalledEndpointBlocksOnlyRequests) {
  System system(mesh_config(1, 3));
  Endpoint& memory = system.mesh.node(2);
  memory.stalled = true;
  constexpr unsigned kWrites = 40;  // more than all buffers on the way hold
  system.queue().at(0, [&] {
    for (unsigned i = 0; i < kWrites; ++i) system.mesh.node(0).write(node(2), 256, i);
  });
  system.queue().at(5000 * kCycle, [&] {
    EXPECT_EQ(memory.got.size(), 1U);  // one request is held, the others wait in the network
    system.mesh.node(0).send(node(2), MessageClass::ipcq_data, 256, 100);
    system.mesh.node(0).send(node(2), MessageClass::command, 0, 101);
    system.mesh.node(0).send(node(2), MessageClass::credit, 0, 102);
  });
  system.queue().at(5100 * kCycle, [&] {
    EXPECT_EQ(memory.got.size(), 4U);  // those pass
    memory.stalled = false;
    memory.take();
  });
  sc_core::sc_start();
  EXPECT_EQ(memory.got.size(), kWrites + 3);
  EXPECT_EQ(system.mesh.node(0).got.size(), kWrites);  // acknowledgements
  EXPECT_EQ(system.pool.outstanding(), 0U);
}

TEST(Noc, ReadComesBackWithItsDataAndItsTimeAddsUp) {
  System system(mesh_config(2, 2));
  system.mesh.node(3).service = 7500;
  system.queue().at(0, [&] { system.mesh.node(0).read(node(3), 256, 42); });
  sc_core::sc_start();
  ASSERT_EQ(system.mesh.node(0).got.size(), 1U);
  const Endpoint::Got& got = system.mesh.node(0).got[0];
  EXPECT_EQ(got.tag, 42U);
  EXPECT_EQ(got.bytes, 256U);
  EXPECT_EQ(got.message_class, MessageClass::response);
  // 14 cycles there, 7.5 ns in the memory, to the next edge, 14 + 7 cycles back.
  EXPECT_EQ(got.latency(), 14 * kCycle + 8000 + 21 * kCycle);
  EXPECT_EQ(sum(got.spent), got.latency());
}

/// Stands between all the packet sockets of a mesh and keeps what crosses them.
struct HopLog final : PacketProbe {
  struct Hop {
    std::string socket;
    std::uint32_t tag;
    Ps head, tail;
  };
  void began(const char* socket, const Packet& packet, Ps head) override {
    begun[socket].emplace_back(packet.payload, head);
  }
  void crossed(const char* socket, const Packet& packet, Ps head, Ps tail) override {
    hops.push_back({socket, packet.tag, head, tail});
    auto& open = begun[socket];
    const auto same = std::find(open.begin(), open.end(), Head(packet.payload, head));
    if (same == open.end()) return;  // an injection, or a tail without its head
    open.erase(same);
    ++whole;
  }
  PacketBinder binder() {
    return [this](PacketInitiatorSocket& from, PacketTargetSocket& to) {
      taps.push_back(std::make_unique<PacketTap>(sc_core::sc_gen_unique_name("tap"), from, to, *this));
    };
  }
  std::vector<Hop> hops;
  std::uint64_t whole = 0;  ///< of which the head was seen before, and told the same time
  using Head = std::pair<const tlm::tlm_generic_payload*, Ps>;
  std::map<std::string, std::vector<Head>> begun;
  std::vector<std::unique_ptr<PacketTap>> taps;
};

class SocketsOfRouters : public ::testing::TestWithParam<Grade> {};

TEST_P(SocketsOfRouters, PassEveryHopInOrder) {
  Dispatcher dispatcher("dispatcher", 1);
  PayloadPool pool;
  HopLog log;
  TestMesh mesh("mesh", mesh_config(2, 2), 0, dispatcher.queue(0), pool, TestMesh::kNoGate, nullptr, GetParam(),
                log.binder());
  dispatcher.queue(0).at(0, [&] { mesh.node(0).send(node(3), MessageClass::ipcq_data, 64, 9); });
  sc_core::sc_start();
  ASSERT_EQ(log.hops.size(), 4U);
  const std::array<std::pair<const char*, Ps>, 4> expected = {
      {{"mesh.ni0.to_router", 2}, {"mesh.r0.out_e", 6}, {"mesh.r1.out_s", 10}, {"mesh.r3.out_p4", 14}}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(log.hops[i].socket, expected[i].first);
    EXPECT_EQ(log.hops[i].head, expected[i].second * kCycle);
    EXPECT_EQ(log.hops[i].tail, (expected[i].second + 1) * kCycle);
  }
  EXPECT_EQ(log.whole, 3U);
}

// Random traffic of every class from every node. Tags count up per (source, destination, class).
struct RandomTraffic {
  RandomTraffic(TestMesh& mesh, EventQueue& queue, std::uint64_t seed, unsigned packets, unsigned gap)
      : mesh(mesh), queue(queue), random(seed), left(packets), gap(gap), counts(mesh.endpoints.size()) {
    for (unsigned n = 0; n < mesh.endpoints.size(); ++n) next(n);
  }
  void next(unsigned from) {
    queue.at(queue.now() + 1 + random.below(2 * gap * kCycle), [this, from] {
      if (left == 0) return;
      --left;
      const unsigned to = random.below(static_cast<unsigned>(mesh.endpoints.size()));
      const std::uint32_t bytes = random.below(257);
      Endpoint& endpoint = mesh.node(from);
      const unsigned what = random.below(8);
      const MessageClass message_class = what == 0   ? MessageClass::command
                                         : what == 1 ? MessageClass::credit
                                         : what < 5  ? MessageClass::ipcq_data
                                                     : MessageClass::request;
      const std::uint32_t tag = counts[from][{to, message_class}]++;
      if (what == 5) {
        endpoint.read(node(to), bytes, tag);
      } else if (what > 5) {
        endpoint.write(node(to), bytes, tag);
      } else {
        endpoint.send(node(to), message_class, message_class == MessageClass::credit ? 0 : bytes, tag);
      }
      next(from);
    });
  }
  TestMesh& mesh;
  EventQueue& queue;
  Random random;
  unsigned left;
  unsigned gap;
  std::vector<std::map<std::pair<unsigned, MessageClass>, std::uint32_t>> counts;
};

// Everything that was sent has arrived, once, in the order it was sent; every latency is accounted for.
void expect_conserved(TestMesh& mesh, const RandomTraffic& traffic) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, MessageClass>, std::uint32_t> seen;
  std::uint64_t delivered = 0, requests = 0, responses = 0;
  for (auto& endpoint : mesh.endpoints) {
    for (const Endpoint::Got& got : endpoint->got) {
      EXPECT_EQ(got.destination, index(endpoint->self));
      EXPECT_EQ(sum(got.spent), got.latency());
      if (got.message_class == MessageClass::response) {
        ++responses;
        continue;  // a memory may answer in any order; the tag is the request's
      }
      EXPECT_EQ(got.tag, (seen[{got.source, got.destination, got.message_class}]++)) << got.source << got.destination;
      ++delivered;
      if (got.message_class == MessageClass::request) ++requests;
    }
  }
  std::uint64_t sent = 0;
  for (const auto& counts : traffic.counts) {
    for (const auto& count : counts) sent += count.second;
  }
  EXPECT_EQ(delivered, sent);
  EXPECT_EQ(responses, requests);
}

// A packet that no call on a bound socket brings to the next router never gets there.
TEST_P(SocketsOfRouters, AreTheOnlyWay) {
  struct Wall final : sc_core::sc_module, PacketForwardIf, PacketBackwardIf {
    explicit Wall(const sc_core::sc_module_name& name) : sc_module(name) {
      in.bind(static_cast<PacketForwardIf&>(*this));
      out.bind(static_cast<PacketBackwardIf&>(*this));
    }
    void head(Packet&, Ps) override { ++heads; }
    void tail(Packet&, Ps, Ps) override {}
    void credit(unsigned, unsigned, Ps) override {}
    PacketForwardIf& receiver() override { return out->receiver(); }
    unsigned heads = 0;
    PacketTargetSocket in{"in"};
    PacketInitiatorSocket out{"out"};
  } wall("wall");
  Dispatcher dispatcher("dispatcher", 1);
  PayloadPool pool;
  const auto binder = [&wall](PacketInitiatorSocket& from, PacketTargetSocket& to) {
    if (from.name() != std::string("mesh.r1.out_e")) return from.bind(to);
    from.bind(wall.in);
    wall.out.bind(to);
  };
  TestMesh mesh("mesh", mesh_config(1, 4), 0, dispatcher.queue(0), pool, TestMesh::kNoGate, nullptr, GetParam(),
                binder);
  dispatcher.queue(0).at(0, [&] {
    mesh.node(0).send(node(1), MessageClass::ipcq_data, 256, 1);  // not as far as the wall
    mesh.node(0).send(node(3), MessageClass::ipcq_data, 256, 2);
  });
  sc_core::sc_start();
  EXPECT_EQ(mesh.node(1).got.size(), 1U);
  EXPECT_EQ(wall.heads, 1U);
  EXPECT_TRUE(mesh.node(3).got.empty());
}

TEST_P(SocketsOfRouters, MayBeWatchedOrNotAndPacketsTakeTheSameTime) {
  Dispatcher dispatcher("dispatcher", 2);
  PayloadPool pool;
  HopLog log;
  TestMesh watched("watched", mesh_config(4, 4), 0, dispatcher.queue(0), pool, TestMesh::kNoGate, nullptr, GetParam(),
                   log.binder());
  TestMesh free("free", mesh_config(4, 4), 0, dispatcher.queue(1), pool, TestMesh::kNoGate, nullptr, GetParam());
  RandomTraffic first(watched, dispatcher.queue(0), 4, 20'000, 20);
  RandomTraffic second(free, dispatcher.queue(1), 4, 20'000, 20);
  sc_core::sc_start();
  expect_conserved(watched, first);
  std::uint64_t hops = 0, packets = 0;
  for (std::size_t n = 0; n < watched.endpoints.size(); ++n) {
    const std::vector<Endpoint::Got>&a = watched.endpoints[n]->got, &b = free.endpoints[n]->got;
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(std::tie(a[i].source, a[i].message_class, a[i].tag, a[i].time, a[i].spent),
                std::tie(b[i].source, b[i].message_class, b[i].tag, b[i].time, b[i].spent));
      hops += watched.links(a[i].source, a[i].destination) + 1;
    }
    packets += a.size();
  }
  EXPECT_EQ(log.whole, hops);
  EXPECT_EQ(log.hops.size(), hops + packets);  // and the injections
}

INSTANTIATE_TEST_SUITE_P(Noc, SocketsOfRouters, ::testing::Values(Grade::accurate, Grade::fast),
                         [](const auto& info) { return info.param == Grade::fast ? "fast" : "accurate"; });

TEST(Noc, HeavyRandomTrafficIsConservedAndInOrder) {
  System system(mesh_config(4, 4));
  RandomTraffic traffic(system.mesh, system.queue(), 1, 120'000, 12);  // beyond saturation
  sc_core::sc_start();
  expect_conserved(system.mesh, traffic);
  EXPECT_EQ(system.pool.outstanding(), 0U);
}

TEST(Noc, RandomTrafficWithOneVirtualChannelAndTheSmallestBuffer) {
  NocConfig config = mesh_config(4, 4);
  config.vcs_per_set = 1;
  config.vc_depth_flits = 1;  // a packet of 8 flits lies over 8 routers
  System system(config);
  for (auto& endpoint : system.mesh.endpoints) endpoint->service = 12'345;
  RandomTraffic traffic(system.mesh, system.queue(), 2, 60'000, 10);
  sc_core::sc_start();
  expect_conserved(system.mesh, traffic);
  EXPECT_EQ(system.pool.outstanding(), 0U);
}

TEST(Noc, TheSameTrafficTakesTheSameTimes) {
  Dispatcher dispatcher("dispatcher", 2);
  PayloadPool pool;
  TestMesh a("a", mesh_config(3, 3), 0, dispatcher.queue(0), pool);
  TestMesh b("b", mesh_config(3, 3), 0, dispatcher.queue(1), pool);
  RandomTraffic traffic_a(a, dispatcher.queue(0), 3, 10'000, 15);
  RandomTraffic traffic_b(b, dispatcher.queue(1), 3, 10'000, 15);
  sc_core::sc_start();
  for (unsigned n = 0; n < 9; ++n) {
    ASSERT_EQ(a.node(n).got.size(), b.node(n).got.size());
    for (std::size_t i = 0; i < a.node(n).got.size(); ++i) {
      const Endpoint::Got &x = a.node(n).got[i], &y = b.node(n).got[i];
      ASSERT_EQ(std::tie(x.source, x.tag, x.time, x.spent), std::tie(y.source, y.tag, y.time, y.spent));
    }
  }
}

struct Recorder final : Observer {
  TrackId add_track(const std::string& name, TrackKind, const std::vector<std::string>&) override {
    names.push_back(name);
    return TrackId{static_cast<std::uint32_t>(names.size() - 1)};
  }
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t) override {
    busy[names[static_cast<std::size_t>(track)]] += end - begin;
  }
  void interval(TrackId, Ps, Ps, const std::string&) override {}
  void change(TrackId track, Ps, std::uint64_t value) override {
    level[names[static_cast<std::size_t>(track)]] = value;
  }
  void op(const OpRecord&) override {}
  bool wants_ops() const override { return false; }
  std::vector<std::string> names;
  std::map<std::string, Ps> busy;
  std::map<std::string, std::uint64_t> level;
};

TEST(Noc, AnObserverSeesBusyOutputsAndWaitingInputs) {
  Dispatcher dispatcher("dispatcher", 1);
  PayloadPool pool;
  Recorder recorder;
  TestMesh mesh("mesh", mesh_config(1, 3), 0, dispatcher.queue(0), pool, TestMesh::kNoGate, &recorder);
  std::uint64_t waiting = 0;
  dispatcher.queue(0).at(0, [&] {
    for (const unsigned from : {0U, 1U}) {
      for (unsigned i = 0; i < 20; ++i) mesh.node(from).send(node(2), MessageClass::ipcq_data, 256, i);
    }
  });
  dispatcher.queue(0).at(100 * kCycle, [&] { waiting = recorder.level["mesh.r1.in_w.waiting"]; });
  sc_core::sc_start();
  EXPECT_EQ(recorder.busy["mesh.r1.out_e"], 40 * 8 * kCycle);
  EXPECT_EQ(recorder.busy["mesh.r2.out_p4"], 40 * 8 * kCycle);
  EXPECT_GT(waiting, 0U);
  EXPECT_EQ(recorder.level["mesh.r1.in_w.waiting"], 0U);
}

TEST(Noc, RefusesAPipelineThatItCannotLookAhead) {
  NocConfig config = mesh_config(1, 1);
  config.link_delay = 31;
  EXPECT_EQ(thrown_by([&] { System system(config); }),
            "NocConfig: the way from switch allocation to the next buffer takes 33 cycles; at most 32 are modelled");
}

}  // namespace
}  // namespace kernbench::test
