#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "models/link/link_port.h"
#include "models/link/zero_load.h"
#include "models/ucie/ucie_config.h"
#include "tests/noc/test_mesh.h"
#include "tests/support/thrown.h"

namespace kernbench::test {
namespace {

NodeId node(unsigned n) { return NodeId{n}; }

Ps sum(const std::array<Ps, kDelays>& spent) { return std::accumulate(spent.begin(), spent.end(), Ps{0}); }

LinkConfig slow_link() {
  LinkConfig link;
  link.bytes_per_second = 16'000'000'000;  // half the rate of the meshes: 16 ns for 256 B
  link.header_bytes = 16;                  // 1 ns
  link.latency = 20'300;
  link.buffer_packets = 8;
  return link;
}

/// Two meshes of n x n, each on the event queue of its own SIP, joined by one link at their gates. Nodes of the second
/// one are numbered on.
struct System {
  System(const NocConfig& noc, const LinkConfig& link, unsigned sips = 2)
      : dispatcher("dispatcher", sips),
        first(dispatcher.queue(0)),
        second(dispatcher.queue(sips - 1)),
        nodes(std::uint32_t{noc.rows} * noc.cols),
        a("a", noc, 0, first, pool, kGate),
        b("b", noc, nodes, second, pool, kGate),
        port_a("port_a", {link, noc, {kGate}, false, Delay::ucie, noc.flit_bytes}, a.routes, first, second, nullptr),
        port_b("port_b", {link, noc, {kGate}, false, Delay::ucie, noc.flit_bytes}, b.routes, second, first, nullptr) {
    attach(a, port_a);
    attach(b, port_b);
    port_a.wire_out[0]->bind(*port_b.wire_in[0]);
    port_b.wire_out[0]->bind(*port_a.wire_in[0]);
  }
  static void attach(TestMesh& mesh, LinkPort& port) {
    Router& router = *mesh.routers[kGate];
    router.out[kFirstLocalPort + 1]->bind(*port.from_network[0]);
    port.to_network[0]->bind(*router.in[kFirstLocalPort + 1]);
  }
  Endpoint& at(unsigned n) { return n < nodes ? a.node(n) : b.node(n - nodes); }

  static constexpr std::uint16_t kGate = 1;
  Dispatcher dispatcher;
  EventQueue& first;
  EventQueue& second;
  PayloadPool pool;
  std::uint32_t nodes;
  TestMesh a, b;
  LinkPort port_a, port_b;
};

TEST(Link, ZeroLoadLatencyIsTheClosedForm) {
  const NocConfig noc = mesh_config(2, 2);
  for (const std::uint32_t bytes : {0U, 1U, 32U, 100U, 256U}) {
    const LinkConfig link = slow_link();
    // From node 0 over routers 0 and 1 to the port, then by routers 1 and 3 of the other mesh to its node 3.
    const Flight flight = pass(noc, cross(link, noc, noc, pass(noc, inject(noc, bytes, 0), 2)), 2);
    const Ps body = std::max(1U, (bytes + 31) / 32) - 1;
    const auto edge = [](Ps time) { return (time + kCycle - 1) / kCycle; };
    // 2 + 2 * 4 cycles to the port, which sends when the tail has won the switch three cycles before; the wire at 62.5
    // ps per byte, the head injected when its flit is here, the tail when it is here; 2 + 2 * 4 cycles for the head,
    // the tail does not wait for VC allocation: 2 + 2 * 3.
    const Ps out = (10 + std::max<Ps>(body, 3) - 3) * kCycle + link.latency;
    const Ps head = edge(out + (std::min(bytes, 32U) + 16) * 125 / 2), last = edge(out + (bytes + 16) * 125 / 2);
    EXPECT_EQ(flight.tail, std::max(head + 10 + body, last + 8) * kCycle) << bytes;
  }
}

TEST(Link, EachLinkWaitsUntilTheTailHasWonItsWay) {
  const NocConfig noc = mesh_config(2, 2);
  const LinkConfig link = slow_link();
  const auto hop = [&](const Flight& flight) { return pass(noc, cross(link, noc, noc, flight), 2); };
  const Flight source = pass(noc, inject(noc, 256, 0), 2);
  const Ps one = hop(source).tail, two = hop(hop(source)).tail, three = hop(hop(hop(source))).tail;
  // From tail to tail: three cycles earlier on the wire, the packet there, latency, to the next edge, eight cycles.
  const Ps more = link.rate().time_for(256 + 16) + link.latency + (8 - 3) * kCycle;
  EXPECT_NEAR(static_cast<double>(two - one), static_cast<double>(more), 1000);
  EXPECT_NEAR(static_cast<double>(three - two), static_cast<double>(more), 1000);
}

TEST(Link, PacketsTakeTheClosedFormAndTheirTimeAddsUp) {
  System system(mesh_config(2, 2), slow_link());
  const NocConfig noc = mesh_config(2, 2);
  Ps time = 0;
  for (unsigned from = 0; from < 4; ++from) {
    for (const std::uint32_t bytes : {0U, 1U, 32U, 100U, 256U}) {
      system.first.at(time,
                      [&system, from, bytes] { system.at(from).send(node(7), MessageClass::ipcq_data, bytes, bytes); });
      time += 1'234'567;
    }
  }
  sc_core::sc_start();
  const auto& got = system.at(7).got;
  ASSERT_EQ(got.size(), 20U);
  for (const Endpoint::Got& packet : got) {
    const unsigned routers = system.a.links(packet.source, System::kGate) + 1;
    const Flight at_port = pass(noc, inject(noc, packet.bytes, packet.sent), routers);
    EXPECT_EQ(packet.time, pass(noc, cross(slow_link(), noc, noc, at_port), 2).tail);
    EXPECT_EQ(sum(packet.spent), packet.latency());
    EXPECT_EQ(packet.spent[static_cast<int>(Delay::ucie)], slow_link().latency);
    EXPECT_EQ(packet.spent[static_cast<int>(Delay::contention)], 0U);
  }
}

TEST(Link, AFastWireAddsOnlyItsLatency) {
  LinkConfig fast = slow_link();
  fast.bytes_per_second = 1'024'000'000'000;  // 0.25 ns for 256 B
  fast.header_bytes = 0;
  System system(mesh_config(2, 2), fast);
  system.first.at(0, [&] { system.at(1).send(node(5), MessageClass::ipcq_data, 256, 0); });
  sc_core::sc_start();
  ASSERT_EQ(system.at(5).got.size(), 1U);
  const Endpoint::Got& got = system.at(5).got[0];
  // The tail is at the port at cycle 13, known at 10, when the packet starts: the head is there 20.3 ns and its flit of
  // 32 ps later, at edge 31. The tail follows 7 cycles behind; 6 more cycles from there.
  EXPECT_EQ(got.time, 44 * kCycle);
  EXPECT_EQ(sum(got.spent), got.latency());
}

TEST(Link, OneFlowGetsTheRateOfTheWire) {
  System system(mesh_config(2, 2), slow_link());
  constexpr unsigned kPackets = 500;
  system.first.at(0, [&] {
    for (unsigned i = 0; i < kPackets; ++i) system.at(1).send(node(5), MessageClass::ipcq_data, 256, i);
  });
  sc_core::sc_start();
  const auto& got = system.at(5).got;
  ASSERT_EQ(got.size(), kPackets);
  const Ps held = slow_link().rate().time_for(256 + 16);
  EXPECT_EQ(got.back().time - got.front().time, (kPackets - 1) * held);
  EXPECT_EQ(system.port_a.wire_stats(0).packets, kPackets);
  EXPECT_EQ(system.port_a.wire_stats(0).busy, kPackets * held);
}

TEST(Link, PacketsFromASlowWireLeaveGapsThatOthersUse) {
  System system(mesh_config(2, 2), slow_link());
  constexpr unsigned kPackets = 200;
  // Both flows leave router 1 of the second mesh southward: one comes over the wire, one from the node there.
  system.first.at(0, [&] {
    for (unsigned i = 0; i < kPackets; ++i) system.at(1).send(node(7), MessageClass::ipcq_data, 256, i);
  });
  system.second.at(0, [&] {
    for (unsigned i = 0; i < kPackets; ++i) system.at(5).send(node(7), MessageClass::ipcq_data, 256, i);
  });
  sc_core::sc_start();
  const auto& got = system.at(7).got;
  ASSERT_EQ(got.size(), 2 * kPackets);
  // 3,200 flits in the 3,400 ns that the wire needs, and the way to the first and from the last of them.
  EXPECT_LT(got.back().time, kPackets * slow_link().rate().time_for(256 + 16) + 100 * kCycle);
}

TEST(Link, TooFewBuffersLimitOneVirtualNetworkToARoundTrip) {
  LinkConfig link = slow_link();
  link.latency = 100'000;
  link.buffer_packets = 2;
  System system(mesh_config(2, 2), link);
  constexpr unsigned kPackets = 100;
  system.first.at(0, [&] {
    for (unsigned i = 0; i < kPackets; ++i) system.at(1).send(node(5), MessageClass::ipcq_data, 256, i);
  });
  sc_core::sc_start();
  const auto& got = system.at(5).got;
  ASSERT_EQ(got.size(), kPackets);
  // Two packets per round trip: 100 ns there, 17 ns of serialisation and up to two cycles in the receiver, 100 ns back.
  EXPECT_NEAR(static_cast<double>(got.back().time - got.front().time), (kPackets / 2 - 1) * 218'000.0 + 17'000, 60'000);
  EXPECT_GT(link.packets_to_cover(), 12U);
}

TEST(Link, EnoughBuffersFillTheWire) {
  LinkConfig link = slow_link();
  link.latency = 100'000;
  link.buffer_packets = link.packets_to_cover();
  System system(mesh_config(2, 2), link);
  constexpr unsigned kPackets = 100;
  system.first.at(0, [&] {
    for (unsigned i = 0; i < kPackets; ++i) system.at(1).send(node(5), MessageClass::ipcq_data, 256, i);
  });
  sc_core::sc_start();
  const auto& got = system.at(5).got;
  ASSERT_EQ(got.size(), kPackets);
  EXPECT_EQ(got.back().time - got.front().time, (kPackets - 1) * link.rate().time_for(256 + 16));
}

TEST(Link, AStalledVirtualNetworkDoesNotBlockTheOthers) {
  System system(mesh_config(2, 2), slow_link());
  Endpoint& memory = system.at(5);
  memory.stalled = true;
  constexpr unsigned kWrites = 60;
  system.first.at(0, [&] {
    for (unsigned i = 0; i < kWrites; ++i) system.at(1).write(node(5), 256, i);
  });
  system.first.at(10'000'000, [&] {
    EXPECT_EQ(memory.got.size(), 1U);
    system.at(1).send(node(5), MessageClass::ipcq_data, 256, 100);
    system.at(1).send(node(5), MessageClass::command, 0, 101);
  });
  system.second.at(10'200'000, [&] {
    EXPECT_EQ(memory.got.size(), 3U);
    memory.stalled = false;
    memory.take();
  });
  sc_core::sc_start();
  EXPECT_EQ(memory.got.size(), kWrites + 2);
  EXPECT_EQ(system.at(1).got.size(), kWrites);
  EXPECT_EQ(system.pool.outstanding(), 0U);
}

/// When a packet that stays in the mesh arrives behind 40 that leave over the link: all start at node 0 at once, on one
/// channel, and share the way from router 0 to the gate.
Ps arrival_behind_a_backlog(std::uint32_t send_packets) {
  NocConfig noc = mesh_config(2, 2);
  noc.vcs_per_set = 1;
  LinkConfig link = slow_link();
  link.send_packets = send_packets;
  System system(noc, link);
  system.a.routes.set_here = 0;
  system.first.at(0, [&] {
    for (unsigned i = 0; i < 40; ++i) system.at(0).send(node(5), MessageClass::ipcq_data, 256, i);
    system.at(0).send(node(3), MessageClass::ipcq_data, 256, 40);
  });
  sc_core::sc_start();
  EXPECT_EQ(system.at(5).got.size(), 40U);
  EXPECT_EQ(system.at(3).got.size(), 1U);
  return system.at(3).got.empty() ? 0 : system.at(3).got[0].time;
}

TEST(Link, WhatWaitsForAWireHoldsUpNoOtherFlowWhileTheSenderHasRoom) {
  // 40 packets of 8 flits before it, and its own way over routers 0, 1 and 3.
  EXPECT_LT(arrival_behind_a_backlog(40), (40 * 8 + 40) * kCycle);
}

TEST(Link, WhatFindsNoRoomAtTheSenderHoldsUpItsChannel) {
  // The wire takes 17 ns for each packet; the sender has room for 8, and routers and interface for a few.
  const Ps held = slow_link().rate().time_for(256 + 16), at = arrival_behind_a_backlog(8);
  EXPECT_GT(at, (40 - 8 - 8) * held);
  EXPECT_LT(at, (40 - 8) * held + 40 * kCycle);
}

TEST(Link, ASenderHasRoomForTwoPacketsAtLeast) {
  const Ps held = slow_link().rate().time_for(256 + 16), at = arrival_behind_a_backlog(0);
  EXPECT_GT(at, (40 - 2 - 8) * held);
  EXPECT_LT(at, (40 - 2) * held + 40 * kCycle);
}

// Random packets of every class between all nodes of both meshes; tags count up per (source, destination, class).
struct RandomTraffic {
  RandomTraffic(System& system, unsigned packets, unsigned gap) : system(system), left(packets), gap(gap) {
    counts.resize(2 * system.nodes);
    for (unsigned n = 0; n < 2 * system.nodes; ++n) next(n);
  }
  void next(unsigned from) {
    EventQueue& queue = system.at(from).queue;
    queue.at(queue.now() + 1 + random.below(2 * gap * kCycle), [this, from] {
      if (left == 0) return;
      --left;
      const unsigned to = random.below(2 * system.nodes);
      const std::uint32_t bytes = random.below(257);
      const unsigned what = random.below(6);
      const MessageClass message_class = what == 0   ? MessageClass::command
                                         : what == 1 ? MessageClass::credit
                                         : what < 4  ? MessageClass::ipcq_data
                                                     : MessageClass::request;
      const std::uint32_t tag = counts[from][{to, message_class}]++;
      Endpoint& endpoint = system.at(from);
      if (what == 4) {
        endpoint.read(node(to), bytes, tag);
      } else if (what == 5) {
        endpoint.write(node(to), bytes, tag);
      } else {
        endpoint.send(node(to), message_class, message_class == MessageClass::credit ? 0 : bytes, tag);
      }
      next(from);
    });
  }
  System& system;
  Random random{7};
  unsigned left, gap;
  std::vector<std::map<std::pair<unsigned, MessageClass>, std::uint32_t>> counts;
};

void expect_conserved(System& system, const RandomTraffic& traffic) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, MessageClass>, std::uint32_t> seen;
  std::uint64_t delivered = 0, requests = 0, responses = 0, sent = 0;
  for (unsigned n = 0; n < 2 * system.nodes; ++n) {
    for (const Endpoint::Got& got : system.at(n).got) {
      EXPECT_EQ(sum(got.spent), got.latency());
      if (got.message_class == MessageClass::response) {
        ++responses;
        continue;
      }
      EXPECT_EQ(got.tag, (seen[{got.source, got.destination, got.message_class}]++));
      ++delivered;
      if (got.message_class == MessageClass::request) ++requests;
    }
  }
  for (const auto& counts : traffic.counts) {
    for (const auto& count : counts) sent += count.second;
  }
  EXPECT_EQ(delivered, sent);
  EXPECT_EQ(responses, requests);
  EXPECT_EQ(system.pool.outstanding(), 0U);
}

TEST(Link, RandomTrafficOverTwoQueuesIsConservedAndInOrder) {
  System system(mesh_config(4, 4), slow_link());
  RandomTraffic traffic(system, 120'000, 100);  // the wires are overloaded
  sc_core::sc_start();
  expect_conserved(system, traffic);
  EXPECT_GT(system.port_a.wire_stats(0).packets, 20'000U);
}

TEST(Link, RandomTrafficOnOneQueueIsConservedAndInOrder) {
  System system(mesh_config(2, 2), slow_link(), 1);
  RandomTraffic traffic(system, 30'000, 60);
  sc_core::sc_start();
  expect_conserved(system, traffic);
}

TEST(Link, OneAndTwoQueuesGiveTheSameTimes) {
  // Traffic in one direction at a time leaves no ties between the SIPs: the split must not change a time.
  const NocConfig noc = mesh_config(2, 2);
  Dispatcher dispatcher("dispatcher", 3);
  PayloadPool pool;
  std::vector<std::vector<Ps>> times;
  struct Pair {
    TestMesh a, b;
    LinkPort port_a, port_b;
    Pair(const char* name, const NocConfig& noc, EventQueue& p, EventQueue& q, PayloadPool& pool)
        : a((std::string(name) + "_a").c_str(), noc, 0, p, pool, System::kGate),
          b((std::string(name) + "_b").c_str(), noc, 4, q, pool, System::kGate),
          port_a((std::string(name) + "_pa").c_str(),
                 {slow_link(), noc, {System::kGate}, false, Delay::ucie, noc.flit_bytes}, a.routes, p, q, nullptr),
          port_b((std::string(name) + "_pb").c_str(),
                 {slow_link(), noc, {System::kGate}, false, Delay::ucie, noc.flit_bytes}, b.routes, q, p, nullptr) {
      System::attach(a, port_a);
      System::attach(b, port_b);
      port_a.wire_out[0]->bind(*port_b.wire_in[0]);
      port_b.wire_out[0]->bind(*port_a.wire_in[0]);
    }
  };
  Pair split("split", noc, dispatcher.queue(0), dispatcher.queue(1), pool);
  Pair joined("joined", noc, dispatcher.queue(2), dispatcher.queue(2), pool);
  for (Pair* pair : {&split, &joined}) {
    pair->a.node(0).queue.at(0, [pair] {
      for (unsigned i = 0; i < 100; ++i) pair->a.node(0).write(node(4 + i % 4), 17 * i % 257, i);
    });
  }
  sc_core::sc_start();
  for (unsigned n = 0; n < 4; ++n) {
    const auto &x = split.b.node(n).got, &y = joined.b.node(n).got;
    ASSERT_EQ(x.size(), 25U);
    ASSERT_EQ(y.size(), 25U);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i].time, y[i].time);
  }
}

TEST(Link, NeedsTwoPacketsOfBuffer) {
  LinkConfig link = slow_link();
  link.buffer_packets = 1;
  EXPECT_EQ(thrown_by([&] { System system(mesh_config(2, 2), link); }),
            "LinkConfig: buffer_packets must be at least 2");
}

TEST(Link, NeedsALatencyBetweenSips) {
  LinkConfig link = slow_link();
  link.latency = 0;
  EXPECT_EQ(thrown_by([&] { System system(mesh_config(2, 2), link); }),
            "LinkConfig: a link between two SIPs needs a latency above 0");
}

TEST(Ucie, ConnectionRateIsLanesTimesTransfersTimesFlitEfficiency) {
  UcieConfig ucie;
  ucie.lanes = 64;
  ucie.transfers_per_second = 16'000'000'000;
  ucie.flit = UcieFlit::b256;
  EXPECT_EQ(ucie.link().bytes_per_second, 128'000'000'000U);
  EXPECT_EQ(ucie.link().rate().bytes_per_second(), 118'000'000'000U);  // 236 of 256
  ucie.flit = UcieFlit::b68;
  EXPECT_EQ(ucie.link().rate().bytes_per_second(), 120'470'588'235U);  // 64 of 68
  EXPECT_EQ(ucie.link().latency, 2 * ucie.latency_per_side);
  EXPECT_GE(ucie.buffer_packets, ucie.link().packets_to_cover());
}

}  // namespace
}  // namespace kernbench::test
