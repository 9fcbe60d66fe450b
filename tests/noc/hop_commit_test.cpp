#include <gtest/gtest.h>

#include <bitset>
#include <map>
#include <random>

#include "models/noc/hop_commit.h"
#include "tests/noc/bare_mesh.h"

namespace kernbench {
namespace {
using test::BareRoutes;

/// A k x k mesh of the engine alone, to which packets are offered by hand. `room`: flits behind its exits.
class HandMesh final : MeshEngine::Actions {
 public:
  HandMesh(const NocConfig& config, unsigned k, unsigned room = MeshEngine::kUnlimited) : k_(k), routes_(k) {
    engine_ = make_hop_commit_engine(config, routes_, *this);
    for (unsigned r = 0; r < k * k; ++r) engine_->add_router(kFirstLocalPort + 1);
    for (unsigned r = 0; r < k * k; ++r) {
      if (r % k + 1 < k) join(r, kEastPort, r + 1, kWestPort);
      if (r + k < k * k) join(r, kSouthPort, r + k, kNorthPort);
      engine_->announce(r, kFirstLocalPort, room);
    }
  }
  Packet& packet(unsigned from, unsigned to, unsigned flits, MessageClass message_class = MessageClass::ipcq_data) {
    Packet& packet = *packets_.emplace_back(std::make_unique<Packet>());
    packet.source = NodeId{from};
    packet.destination = NodeId{to};
    packet.exit_router = static_cast<std::uint16_t>(to);
    packet.exit_port = kFirstLocalPort;
    packet.bytes = flits;
    packet.message_class = message_class;
    packet.tag = static_cast<std::uint32_t>(packets_.size());
    return packet;
  }
  void offer(Packet& packet, Cycle at) {
    run(at);
    engine_->offer(index(packet.source), kFirstLocalPort, packet, at, at + packet.bytes - 1, at);
  }
  /// The exit of `router` has room again, as it has since `when`.
  void credit(unsigned router, unsigned vc, unsigned flits, Cycle when) {
    run(when);
    engine_->credit(router, kFirstLocalPort, vc, flits, when, when);
  }
  bool delivered(const Packet& packet) const { return tails_.count(packet.tag) != 0; }
  /// Until `until`, or for ever.
  void run(Cycle until = kNoCycle) {
    while (wake_ != kNoCycle && wake_ < until) {
      const Cycle now = wake_;
      wake_ = kNoCycle;
      ++steps;
      engine_->step(now);
    }
  }
  Cycle tail(const Packet& packet) const { return tails_.at(packet.tag); }
  std::vector<std::uint32_t> order;  // tags as they are delivered
  std::map<std::uint32_t, unsigned> hops;
  unsigned steps = 0;  // of the engine

 private:
  void join(unsigned a, unsigned out, unsigned b, unsigned in) {
    engine_->connect(a, out, b, in);
    engine_->connect(b, in, a, out);
    to_[{a, out}] = {b, in};
    to_[{b, in}] = {a, out};
  }
  void head(unsigned router, unsigned, unsigned output, Packet& packet, Cycle head) override {
    ++hops[packet.tag];
    if (output == kFirstLocalPort) return;
    const auto [next, input] = to_.at({router, output});
    engine_->arrive(next, input, packet, head);
  }
  void tail(unsigned, unsigned, unsigned output, Packet& packet, Cycle head, Cycle tail) override {
    EXPECT_GE(tail, head + packet.bytes - 1);
    if (output != kFirstLocalPort) return;
    EXPECT_TRUE(tails_.emplace(packet.tag, tail).second) << "delivered twice";
    order.push_back(packet.tag);
  }
  void injected(unsigned, unsigned, Packet&, Cycle, Cycle) override {}
  void wake(Cycle at) override { wake_ = std::min(wake_, at); }

  unsigned k_;
  BareRoutes routes_;
  std::unique_ptr<MeshEngine> engine_;
  std::map<std::pair<unsigned, unsigned>, std::pair<unsigned, unsigned>> to_;
  std::vector<std::unique_ptr<Packet>> packets_;
  std::map<std::uint32_t, Cycle> tails_;
  Cycle wake_ = kNoCycle;
};

NocConfig hand_config(unsigned vcs = 4, unsigned depth = 8) {
  NocConfig config;
  config.flit_bytes = 1;
  config.vcs_per_set = vcs;
  config.vc_depth_flits = depth;
  return config;
}

unsigned links(unsigned k, unsigned from, unsigned to) {
  const auto apart = [](unsigned a, unsigned b) { return a > b ? a - b : b - a; };
  return apart(from % k, to % k) + apart(from / k, to / k);
}

TEST(HopCommit, ZeroLoadIsTheFormulaOfTheReference) {
  for (const unsigned depth : {8U, 16U}) {
    for (const unsigned flits : {1U, 2U, 8U}) {
      HandMesh mesh(hand_config(4, depth), 8);
      Cycle at = 10;
      for (const unsigned to : {0U, 1U, 8U, 20U, 63U}) {
        Packet& packet = mesh.packet(0, to, flits);
        mesh.offer(packet, at);
        mesh.run();
        EXPECT_EQ(mesh.tail(packet) - at, 6 + 4 * links(8, 0, to) + flits - 1) << to << ' ' << flits;
        EXPECT_EQ(mesh.hops[packet.tag], links(8, 0, to) + 1);
        at = mesh.tail(packet) + 100;
      }
    }
  }
}

TEST(HopCommit, PacketsLongerThanTheBufferKeepTheirRateWhereCreditsComeInTime) {
  HandMesh mesh(hand_config(4, 8), 8);  // 8 places against a round trip of 6 to 7 cycles
  Packet& packet = mesh.packet(0, 63, 32);
  mesh.offer(packet, 0);
  mesh.run();
  EXPECT_EQ(mesh.tail(packet), 6U + 4 * 14 + 31);
}

TEST(HopCommit, ACreditFromOutsideIsUsedWhenTheSwitchHasSeenIt) {
  const NocConfig config = hand_config(1, 8);
  HandMesh mesh(config, 1, 4);  // room for one packet
  Packet &first = mesh.packet(0, 0, 4), &second = mesh.packet(0, 0, 4);
  mesh.offer(first, 0);
  mesh.offer(second, 10);
  mesh.run(1000);
  EXPECT_TRUE(mesh.delivered(first));
  EXPECT_FALSE(mesh.delivered(second));
  mesh.credit(0, first.vc, 4, 1000);
  mesh.run();
  // Switch allocation, then a hop of 3, as in the accurate engine (FlitEngine.ABlockedPacketWaits...), and 3 flits
  // more.
  EXPECT_EQ(mesh.tail(second), 1000 + config.sw_alloc_delay + 3 + 3);
}

TEST(HopCommit, TrainsLongerThanAPortsMapKeepTheirRate) {
  HandMesh mesh(hand_config(4, 8), 8);
  Packet& first = mesh.packet(0, 63, 600);
  Packet& second = mesh.packet(0, 63, 600);
  mesh.offer(first, 0);
  mesh.offer(second, 0);
  mesh.run();
  EXPECT_EQ(mesh.tail(first), 6U + 4 * 14 + 599);
  EXPECT_EQ(mesh.tail(second) - mesh.tail(first), 600U) << "one behind the other";
}

TEST(HopCommit, TrainsOfTwoInputsTakeAnOutputInTurn) {
  HandMesh mesh(hand_config(4, 8), 3);
  Packet& west = mesh.packet(3, 5, 600);  // both leave router 4 to the east
  Packet& north = mesh.packet(4, 5, 600);
  mesh.offer(west, 0);
  mesh.offer(north, 0);
  mesh.run();
  EXPECT_GE(std::max(mesh.tail(west), mesh.tail(north)), 1200U) << "1,200 flits over one link";
  EXPECT_LT(std::max(mesh.tail(west), mesh.tail(north)), 1230U);
}

TEST(HopCommit, CreditsAndTrainsCrossAnIdleMeshInOneStep) {
  for (const bool train : {false, true}) {
    HandMesh mesh(hand_config(4, 8), 8);
    Packet& packet = mesh.packet(0, 63, train ? 64 : 1, train ? MessageClass::ipcq_data : MessageClass::credit);
    mesh.offer(packet, 0);
    mesh.run();
    EXPECT_EQ(mesh.tail(packet), 6U + 4 * 14 + packet.bytes - 1);
    EXPECT_EQ(mesh.hops[packet.tag], 15U);
    EXPECT_LE(mesh.steps, 1U);
  }
}

/// From 32 flits on the next hop of any packet is decided together with the one before it; of shorter ones when they
/// are there: one step a router.
TEST(HopCommit, OrdinaryPacketsGoAheadFromThirtyTwoFlits) {
  for (const unsigned flits : {31U, 32U, 64U}) {
    HandMesh mesh(hand_config(4, 8), 8);
    Packet& packet = mesh.packet(0, 63, flits);
    mesh.offer(packet, 0);
    mesh.run();
    EXPECT_EQ(mesh.tail(packet), 6U + 4 * 14 + flits - 1);
    if (flits < 32) {
      EXPECT_GE(mesh.steps, 14U) << flits;
    } else {
      EXPECT_LE(mesh.steps, 1U) << flits;
    }
  }
}

TEST(HopCommit, ChainingFillsALinkAndItsAbsenceCostsACycleAPacket) {
  for (const bool chaining : {false, true}) {
    NocConfig config = hand_config(1, 16);
    config.packet_chaining = chaining;
    HandMesh mesh(config, 2);
    constexpr unsigned kPackets = 100, kFlits = 4;
    std::vector<Packet*> packets;
    for (unsigned i = 0; i < kPackets; ++i) packets.push_back(&mesh.packet(0, 1, kFlits));
    for (Packet* packet : packets) mesh.offer(*packet, 0);
    mesh.run();
    const Cycle time = mesh.tail(*packets.back()) - mesh.tail(*packets.front());
    EXPECT_EQ(time, (kPackets - 1) * (kFlits + (chaining ? 0 : 1)));
  }
}

TEST(HopCommit, CommandsAndCreditsDoNotWaitForData) {
  for (const MessageClass message_class : {MessageClass::command, MessageClass::credit}) {
    HandMesh mesh(hand_config(), 4);
    for (unsigned i = 0; i < 50; ++i) {
      for (const unsigned from : {0U, 4U, 8U, 1U}) mesh.offer(mesh.packet(from, 15, 8), 0);
    }
    std::vector<std::pair<Packet*, Cycle>> packets;
    for (Cycle at = 40; at < 400; at += 37) {
      Packet& packet = mesh.packet(0, 15, 1, message_class);
      mesh.offer(packet, at);
      packets.emplace_back(&packet, at);
    }
    mesh.run();
    for (const auto& [packet, at] : packets) EXPECT_EQ(mesh.tail(*packet) - at, 6U + 4 * 6);
  }
}

TEST(HopCommit, CommandsDoNotWaitForCredits) {
  HandMesh mesh(hand_config(), 4);
  for (unsigned i = 0; i < 100; ++i) {
    for (const unsigned from : {0U, 4U, 8U, 1U}) mesh.offer(mesh.packet(from, 15, 1, MessageClass::credit), 0);
  }
  Packet& command = mesh.packet(4, 15, 1, MessageClass::command);
  mesh.offer(command, 60);
  mesh.run();
  EXPECT_EQ(mesh.tail(command) - 60, 6U + 4 * 5);
}

TEST(HopCommit, UrgentFlitsCostTheOthersAsManyCycles) {
  const auto last_tail = [](unsigned credits) {
    HandMesh mesh(hand_config(4, 16), 2);
    std::vector<Packet*> packets;
    for (unsigned i = 0; i < 100; ++i) packets.push_back(&mesh.packet(0, 1, 4));
    for (Packet* packet : packets) mesh.offer(*packet, 0);
    for (unsigned i = 0; i < credits; ++i) mesh.offer(mesh.packet(0, 1, 1, MessageClass::credit), 50 + 6 * i);
    mesh.run();
    return mesh.tail(*packets.back());
  };
  const Cycle alone = last_tail(0), shared = last_tail(40);
  EXPECT_GE(shared, alone + 30);
  EXPECT_LE(shared, alone + 60);
}

TEST(HopCommit, LosesNothingAndKeepsTheOrderOfAFlow) {
  HandMesh mesh(hand_config(4, 8), 4);
  std::mt19937 random(7);
  std::map<std::uint32_t, std::pair<unsigned, unsigned>> flow;
  constexpr unsigned kPackets = 20'000;
  for (unsigned i = 0; i < kPackets; ++i) {
    const unsigned from = random() % 16, to = random() % 16;
    Packet& packet = mesh.packet(from, to, 1 + random() % 12);  // some longer than the buffer
    flow[packet.tag] = {from, to};
    mesh.offer(packet, i / 8);  // far more than it can carry
  }
  mesh.run();
  EXPECT_EQ(mesh.order.size(), kPackets);
  std::map<std::pair<unsigned, unsigned>, std::uint32_t> last;
  for (const std::uint32_t tag : mesh.order) {
    std::uint32_t& before = last[flow[tag]];
    EXPECT_LT(before, tag);
    before = tag;
  }
}

/// Rows of the shared BookSim2 tables (bench/reference/noc): load and mean latency, up to 0.8 of saturation.
struct Row {
  unsigned k, flits, vcs, depth;
  bool hold;
  const char* pattern;
  double load, latency;
};
class HopCommitReference : public ::testing::TestWithParam<Row> {};

TEST_P(HopCommitReference, MeanLatencyIsWithinFifteenPercent) {
  const Row& row = GetParam();
  test::Traffic traffic;
  traffic.k = row.k;
  traffic.flits = row.flits;
  traffic.vcs = row.vcs;
  traffic.depth = row.depth;
  traffic.hold = row.hold;
  traffic.pattern = row.pattern;
  traffic.load = row.load;
  traffic.warm_up = 4'000;
  traffic.window = 12'000;
  const double latency = test::BareMesh(traffic, make_hop_commit_engine).run().latency;
  EXPECT_NEAR(latency / row.latency, 1, 0.15);
}

INSTANTIATE_TEST_SUITE_P(Tables, HopCommitReference,
                         ::testing::Values(Row{8, 8, 4, 8, false, "uniform", 0.149, 39.9212},
                                           Row{8, 8, 4, 8, false, "uniform", 0.279, 52.805},
                                           Row{8, 8, 1, 8, false, "uniform", 0.179, 43.9329},
                                           Row{4, 16, 4, 8, true, "uniform", 0.371, 47.8675},
                                           Row{4, 16, 1, 8, false, "transpose", 0.193, 38.3501},
                                           Row{8, 1, 1, 8, false, "tornado", 0.0817, 38.2552}));

TEST(SlotMap, ReservesWhatAPlainSearchFinds) {
  constexpr std::size_t kCycles = 20'000;
  SlotMap output, input;
  std::bitset<kCycles> out, in;
  std::mt19937 random(3);
  Cycle now = 0;
  for (int i = 0; i < 3000; ++i) {
    now += random() % 6;
    const Cycle earliest = now + random() % 30;
    const unsigned flits = 1 + random() % 9;
    const bool lost_picks = random() % 2 != 0;
    SlotMap other_input;
    const bool other = random() % 3 == 0;  // an input that nothing else uses
    std::bitset<kCycles> empty;
    const Passage passage = reserve(output, other ? other_input : input, earliest, flits, lost_picks, now);
    if (passage.first == kNoCycle) continue;
    std::bitset<kCycles>& taken = other ? empty : in;
    Cycle at = earliest, first = kNoCycle;
    std::vector<Cycle> lost;
    for (unsigned left = flits; left != 0; ++at) {
      if (!out[at] && !taken[at]) {
        if (first == kNoCycle) first = at;
        out[at] = taken[at] = true;
        --left;
      } else if (!out[at] && lost_picks) {
        lost.push_back(at);
      }
    }
    for (const Cycle cycle : lost) out[cycle] = true;
    ASSERT_EQ(passage.first, first) << i;
    ASSERT_EQ(passage.last, at - 1) << i;
  }
  EXPECT_LT(now + 500, kCycles);
}

TEST(SlotMap, KnowsARunBeyondItsRing) {
  SlotMap output, input;
  EXPECT_EQ(reserve(output, input, 10, 2000, false, 0).last, 2009U);
  EXPECT_EQ(output.end(), 2010U);
  for (const Cycle now : {0U, 500U, 1000U, 1500U}) {
    EXPECT_EQ(reserve(output, input, now + 20, 1, false, now).first, kNoCycle) << now;
  }
  EXPECT_EQ(reserve(output, input, 1900, 4, false, 1900).first, 2010U);
}

TEST(SlotMap, SaysWhenNothingIsWithinReach) {
  SlotMap output, input;
  for (unsigned i = 0; i < kReserveWindows; ++i)
    EXPECT_EQ(reserve(output, input, 0, 64, false, 0).first, 64 * i) << "one after the other";
  EXPECT_EQ(reserve(output, input, 0, 1, false, 0).first, kNoCycle);
  EXPECT_EQ(reserve(output, input, 64, 1, false, 64).first, 64U * kReserveWindows) << "time has passed";
}

}  // namespace
}  // namespace kernbench
