#include "models/noc/router_timing.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "models/noc/queued_port.h"

// The timing rules without a SystemC kernel, driven with numbers.
namespace kernbench::test {
namespace {

TEST(CreditLedger, KnowsNothingBeyondTheCapacity) {
  CreditLedger ledger(4);
  for (unsigned vc = 0; vc < 4; ++vc) ledger.announce(vc, 8);
  EXPECT_EQ(ledger.ready(2, 8), 0U);
  ledger.take(2, 6, 0);
  EXPECT_EQ(ledger.ready(2, 2), 0U);
  EXPECT_EQ(ledger.ready(2, 3), kNoCycle);
  EXPECT_EQ(ledger.ready(3, 8), 0U);  // another channel's
}

TEST(CreditLedger, APacketMayStartBeforeItsLastCreditIsBack) {
  CreditLedger ledger(1);
  ledger.announce(0, 8);
  ledger.take(0, 8, 0);
  ledger.add(0, 8, 100, 90);  // at 100, 101, ... 107
  EXPECT_EQ(ledger.ready(0, 8), 100U);
  ledger.take(0, 4, 0);
  ledger.add(0, 4, 120, 90);
  EXPECT_EQ(ledger.ready(0, 4), 0U);    // follows the packet before it, one per cycle
  EXPECT_EQ(ledger.ready(0, 6), 116U);  // its fifth flit needs the credit of 120
  EXPECT_EQ(ledger.ready(0, 9), kNoCycle);
}

TEST(CreditLedger, ManySingleCreditsAreNeverEarly) {
  CreditLedger ledger(1);
  ledger.announce(0, 8);
  ledger.take(0, 8, 0);
  for (Cycle i = 0; i < 8; ++i) ledger.add(0, 1, 100 + 10 * i, 0);  // more runs than it keeps apart
  EXPECT_EQ(ledger.ready(0, 1), 100U);
  EXPECT_GE(ledger.ready(0, 8), 170U - 7U);
  ledger.add(0, 1, 300, 299);  // all others are past
  EXPECT_LE(ledger.ready(0, 8), 299U);
}

/// Every packet goes to the port that its exit_port says.
struct PortRoutes final : NetworkRoutes {
  RouteDecision enter(NodeId, std::uint16_t, bool, std::uint8_t) const override { return {}; }
  std::uint8_t next_port(std::uint16_t, Exit exit) const override { return exit.port; }
};

struct Departure {
  unsigned output;
  std::uint64_t packet;
  Cycle start;
  bool operator==(const Departure& other) const {
    return output == other.output && packet == other.packet && start == other.start;
  }
};
std::ostream& operator<<(std::ostream& out, const Departure& d) {
  return out << "packet " << d.packet << " by output " << d.output << " at " << d.start;
}

/// A router of six ports under test, 4 flits of 64 B a packet of 256 B; its wakes are served in order of time.
class RouterBench final : public RouterTiming::Actions {
 public:
  explicit RouterBench(Arbitration arbitration = Arbitration::round_robin, unsigned depth = 64) {
    config.arbitration = arbitration;
    config.clock_hz = 1'000'000'000;
    timing = std::make_unique<RouterTiming>(config, routes, 0, 6, *this);
    for (unsigned output = 0; output < 6; ++output) {
      for (unsigned vc = 0; vc < config.vcs(); ++vc) timing->announce(output, vc, depth);
    }
  }
  void arrive(std::uint64_t id, unsigned input, unsigned output, Cycle now, MessageClass of = MessageClass::ipcq_data,
              unsigned k = 0) {
    run_to(now);
    Packet& packet = packets.emplace_back();
    packet.op = id;
    packet.bytes = 256;
    packet.message_class = of;
    packet.exit_port = static_cast<std::uint8_t>(output);
    packet.vc = static_cast<std::uint8_t>(config.first_vc(packet.virtual_network()) + k);
    packet.head = now * 1000;
    timing->arrive(input, packet, now);
  }
  void run_to(Cycle end) {
    while (!wakes.empty() && wakes.begin()->first <= end) {
      const auto [at, output] = *wakes.begin();
      wakes.erase(wakes.begin());
      now = at;
      timing->arbitrate(output, at);
    }
    now = end;
  }
  void depart(unsigned output, Packet& packet, unsigned, Cycle start, Cycle) override {
    departures.push_back({output, packet.op, start});
  }
  void free_buffer(unsigned, unsigned, unsigned, Cycle when) override { freed.push_back(when); }
  void wake(unsigned output, Cycle at) override { wakes.insert({at, output}); }

  NocConfig config;
  PortRoutes routes;
  std::unique_ptr<RouterTiming> timing;
  std::deque<Packet> packets;
  std::multiset<std::pair<Cycle, unsigned>> wakes;
  std::vector<Departure> departures;
  std::vector<Cycle> freed;
  Cycle now = 0;
};

TEST(RouterTiming, AFreePacketLeavesAfterVcAllocation) {
  RouterBench router;
  router.arrive(1, 0, 2, 10);
  EXPECT_EQ(router.departures, (std::vector<Departure>{{2, 1, 11}}));
  EXPECT_EQ(router.freed, (std::vector<Cycle>{13}));  // credit_delay
  EXPECT_TRUE(router.wakes.empty());
}

TEST(RouterTiming, AnOutputPassesOneFlitPerCycle) {
  RouterBench router;
  router.arrive(1, 0, 2, 10);
  router.arrive(2, 1, 2, 10);
  router.arrive(3, 3, 2, 11);
  router.run_to(100);
  EXPECT_EQ(router.departures, (std::vector<Departure>{{2, 1, 11}, {2, 2, 15}, {2, 3, 19}}));
}

TEST(RouterTiming, AnInputPassesOneFlitPerCycle) {
  RouterBench router;
  router.arrive(1, 0, 2, 10, MessageClass::ipcq_data, 0);
  router.arrive(2, 0, 3, 14, MessageClass::ipcq_data, 1);  // another channel, another output
  router.arrive(3, 0, 4, 14, MessageClass::ipcq_data, 2);
  router.run_to(100);
  EXPECT_EQ(router.departures, (std::vector<Departure>{{2, 1, 11}, {3, 2, 15}, {4, 3, 19}}));
}

TEST(RouterTiming, AHeadThatWaitsBlocksItsChannelOnly) {
  RouterBench router;
  router.arrive(1, 1, 2, 10);                              // holds output 2 until 15
  router.arrive(2, 0, 2, 10);                              // waits for it
  router.arrive(3, 0, 3, 10);                              // same channel: behind packet 2
  router.arrive(4, 0, 3, 10, MessageClass::ipcq_data, 1);  // another channel: passes
  router.run_to(100);
  EXPECT_EQ(router.departures, (std::vector<Departure>{{2, 1, 11}, {3, 4, 11}, {2, 2, 15}, {3, 3, 19}}));
}

TEST(RouterTiming, NoPacketLeavesWithoutCreditForAllOfIt) {
  RouterBench router(Arbitration::round_robin, 8);  // two packets behind each channel
  for (std::uint64_t id = 1; id <= 3; ++id) router.arrive(id, 0, 2, 10);
  router.run_to(100);
  EXPECT_EQ(router.departures, (std::vector<Departure>{{2, 1, 11}, {2, 2, 15}}));
  router.timing->credit(2, router.packets[0].vc, 3, 101, 100);
  router.run_to(200);
  EXPECT_EQ(router.departures.size(), 2U);  // three of four
  router.timing->credit(2, router.packets[0].vc, 1, 210, 200);
  router.run_to(300);
  // The last flit needs the credit that the switch allocator sees at 211.
  EXPECT_EQ(router.departures.back(), (Departure{2, 3, 208}));
}

TEST(RouterTiming, CommandsAndCreditsGoFirst) {
  RouterBench router;
  router.arrive(1, 0, 2, 10);
  router.arrive(2, 1, 2, 10);
  router.arrive(3, 3, 2, 12, MessageClass::credit);
  router.arrive(4, 4, 2, 13, MessageClass::command);
  router.run_to(100);
  EXPECT_EQ(router.departures, (std::vector<Departure>{{2, 1, 11}, {2, 3, 15}, {2, 4, 19}, {2, 2, 23}}));
}

TEST(RouterTiming, InputsTakeTurns) {
  RouterBench router;
  std::uint64_t id = 0;
  for (unsigned round = 0; round < 2; ++round) {
    for (const unsigned input : {0U, 1U, 3U}) router.arrive(++id, input, 2, 10);
  }
  router.run_to(100);
  std::vector<std::uint64_t> order;
  for (const Departure& d : router.departures) order.push_back(d.packet);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(RouterTiming, WeightedANeighbourSendsTwoInARow) {
  RouterBench router(Arbitration::weighted_round_robin);
  for (const std::uint64_t id : {1, 2}) router.arrive(id, 0, 2, 10);    // from the north
  for (const std::uint64_t id : {11, 12}) router.arrive(id, 4, 2, 10);  // local
  router.run_to(100);
  std::vector<std::uint64_t> order;
  for (const Departure& d : router.departures) order.push_back(d.packet);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 11, 12}));
}

/// A port that takes 10 units of time for each packet.
class PortBench final : public QueuedPort::Actions {
 public:
  PortBench() {
    for (unsigned vc = 0; vc < kVirtualNetworks; ++vc) port.announce(vc, 2);
  }
  void offer(std::uint64_t id, MessageClass of, Cycle now) {
    run_to(now);
    Packet& packet = packets.emplace_back();
    packet.op = id;
    packet.message_class = of;
    port.offer(packet, static_cast<unsigned>(packet.virtual_network()), now);
  }
  void run_to(Cycle end) {
    while (!wakes.empty() && *wakes.begin() <= end) {
      const Cycle at = *wakes.begin();
      wakes.erase(wakes.begin());
      port.arbitrate(at);
    }
  }
  unsigned units(const Packet&) const override { return 1; }
  QueuedPort::Release serve(Packet& packet, Cycle now) override {
    served.push_back({0, packet.op, now});
    return {now + 10, now + 10};
  }
  void wake(Cycle at) override { wakes.insert(at); }

  QueuedPort port{1, *this};
  std::deque<Packet> packets;
  std::multiset<Cycle> wakes;
  std::vector<Departure> served;
};

TEST(QueuedPort, ServesAtOnceThenInTurn) {
  PortBench bench;
  bench.offer(1, MessageClass::request, 5);
  bench.offer(2, MessageClass::request, 6);
  bench.offer(3, MessageClass::response, 7);
  bench.offer(4, MessageClass::ipcq_data, 8);
  bench.offer(5, MessageClass::command, 9);
  bench.run_to(100);
  // The command first; after a command it is the turn of ipcq_data, request, response.
  EXPECT_EQ(bench.served, (std::vector<Departure>{{0, 1, 5}, {0, 5, 15}, {0, 4, 25}, {0, 2, 35}, {0, 3, 45}}));
}

TEST(QueuedPort, ABlockedNetworkDoesNotBlockTheOthers) {
  PortBench bench;
  for (std::uint64_t id = 1; id <= 3; ++id) bench.offer(id, MessageClass::request, 0);  // credit for two
  bench.offer(4, MessageClass::response, 0);
  bench.run_to(100);
  EXPECT_EQ(bench.served, (std::vector<Departure>{{0, 1, 0}, {0, 4, 10}, {0, 2, 20}}));
  bench.port.credit(static_cast<unsigned>(MessageClass::request) * kVcSets, 1, 120, 110);
  bench.run_to(200);
  EXPECT_EQ(bench.served.back(), (Departure{0, 3, 120}));
}

}  // namespace
}  // namespace kernbench::test
