#include "models/link/queued_port.h"

#include <gtest/gtest.h>

#include <deque>
#include <ostream>
#include <set>
#include <vector>

// Packets that wait for a wire: the rules without a SystemC kernel, driven with numbers.
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
  ledger.announce(0, 32);
  ledger.take(0, 32, 0);
  for (Cycle i = 0; i < 32; ++i) ledger.add(0, 1, 100 + 10 * i, 0);  // more runs than it keeps apart
  EXPECT_EQ(ledger.ready(0, 1), 100U);
  EXPECT_GE(ledger.ready(0, 32), 410U - 31U);
  ledger.add(0, 1, 600, 599);  // all others are past
  EXPECT_LE(ledger.ready(0, 32), 599U);
}

TEST(CreditLedger, CreditsOfATrainComeAndAreUsedStepByStep) {
  CreditLedger ledger(1, 10);
  ledger.announce(0, 8);
  ledger.take(0, 8, 0);
  ledger.add(0, 8, 100, 90);  // at 100, 110, ... 170
  EXPECT_EQ(ledger.ready(0, 8), 100U);
  ledger.take(0, 4, 0);
  ledger.add(0, 4, 220, 90);
  EXPECT_EQ(ledger.ready(0, 6), 180U);  // its fifth packet needs the credit of 220
}

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
