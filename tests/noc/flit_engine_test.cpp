#include "models/noc/flit_engine.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/noc/bare_mesh.h"

// The rules of the accurate engine without a SystemC kernel, driven with cycles. Default pipeline: a flit that leaves
// its source in q is in the buffer at q + 2; the head gets a channel in q + 2 and may win the switch in q + 3; what
// wins in s is at the next hop at s + 3.
namespace kernbench::test {
namespace {

TEST(FlitTimes, KnowsTheLatestAndCallsTheOthersPast) {
  flit::FlitTimes times;
  for (const Cycle at : {10U, 11U, 15U}) times.add(at);
  EXPECT_EQ(times.total(), 3U);
  EXPECT_EQ(times.nth_last(1, 5), 15U);
  EXPECT_EQ(times.nth_last(2, 5), 11U);
  EXPECT_EQ(times.nth_last(3, 5), 10U);
  EXPECT_EQ(times.nth_last(3, 12), 12U);
  EXPECT_EQ(times.nth_last(1, 20), 20U);
  times.add_past(5);
  EXPECT_EQ(times.total(), 8U);
  EXPECT_EQ(times.nth_last(8, 5), 5U);
  times.add(200);  // all others are out of sight
  EXPECT_EQ(times.nth_last(2, 150), 150U);
  EXPECT_EQ(times.nth_last(1, 150), 200U);
}

/// Every packet goes to the port that its exit_port says, from the router that exit_router says.
struct ChainRoutes final : NetworkRoutes {
  RouteDecision enter(NodeId, std::uint16_t, bool, std::uint8_t) const override { return {}; }
  std::uint8_t next_port(std::uint16_t at, Exit exit) const override {
    return at == exit.router ? exit.port : std::uint8_t{kEastPort};
  }
};

struct Seen {
  std::uint64_t id;
  Cycle head, tail;
  bool operator==(const Seen& other) const { return id == other.id && head == other.head && tail == other.tail; }
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << "packet " << seen.id << " from " << seen.head << " to " << seen.tail;
}

/// Routers in a row, eastward, with ports 4 to 7 that leave the network. A flit has 64 B, a packet 4 flits of them
/// unless said otherwise. Logs what leaves.
class Bench final : MeshEngine::Actions {
 public:
  explicit Bench(const NocConfig& config, unsigned routers = 1, unsigned depth = MeshEngine::kUnlimited)
      : config(config), engine(make_flit_engine(this->config, routes, *this)), routers_(routers) {
    for (unsigned r = 0; r < routers; ++r) {
      engine->add_router(8);
      for (unsigned port = kFirstLocalPort; port < 8; ++port) engine->announce(r, port, depth);
    }
    for (unsigned r = 0; r + 1 < routers; ++r) engine->connect(r, kEastPort, r + 1, kWestPort);
  }
  static NocConfig round(unsigned vcs = 1) {
    NocConfig config;
    config.clock_hz = 1'000'000'000;
    config.vcs_per_set = vcs;
    return config;
  }

  struct Way {
    unsigned router = 0, input = 4;  ///< where it enters
    unsigned to = 0, output = 5;     ///< where it leaves
  };
  /// Its flits can leave the source from `at` on.
  Packet& offer(std::uint64_t id, const Way& way, Cycle at, MessageClass of = MessageClass::ipcq_data,
                std::uint32_t bytes = 256, std::uint32_t flow = 0) {
    run_to(at);
    Packet& packet = packets.emplace_back();
    packet.op = id;
    packet.bytes = bytes;
    packet.source = NodeId{flow};
    packet.message_class = of;
    packet.exit_router = static_cast<std::uint16_t>(way.to);
    packet.exit_port = static_cast<std::uint8_t>(way.output);
    const Cycle flits = FlitCounter(config.flit_bytes)(bytes);
    engine->offer(way.router, way.input, packet, at, at + flits - 1, at);
    return packet;
  }
  void run_to(Cycle end) {
    while (!wakes.empty() && *wakes.begin() < end) {
      now = *wakes.begin();
      wakes.erase(wakes.begin());
      engine->step(now);
    }
    now = end;
  }
  std::vector<Seen>& run() {
    run_to(1'000'000);
    return left;
  }
  std::vector<std::uint64_t> order() {
    std::vector<std::uint64_t> ids;
    for (const Seen& seen : run()) ids.push_back(seen.id);
    return ids;
  }

  const NocConfig config;
  ChainRoutes routes;
  std::unique_ptr<MeshEngine> engine;
  std::deque<Packet> packets;
  std::multiset<Cycle> wakes;
  std::vector<Seen> left, entered;
  Cycle now = 0;

 private:
  void head(unsigned router, unsigned, unsigned output, Packet& packet, Cycle head) override {
    EXPECT_GT(head, now);
    if (output == kEastPort) engine->arrive(router + 1, kWestPort, packet, head);
  }
  void tail(unsigned router, unsigned, unsigned output, Packet& packet, Cycle head, Cycle tail) override {
    EXPECT_GE(tail, head);
    EXPECT_GT(tail, now);
    if (output != kEastPort) left.push_back({packet.op, head, tail});
    EXPECT_LT(router, routers_);
  }
  void injected(unsigned, unsigned, Packet& packet, Cycle head, Cycle tail) override {
    entered.push_back({packet.op, head, tail});
  }
  void wake(Cycle at) override { wakes.insert(at); }

  unsigned routers_;
};

TEST(FlitEngine, APacketThatNothingHindersNeedsSixCyclesAndFourPerLink) {
  for (const unsigned routers : {1U, 2U, 4U}) {
    Bench bench(Bench::round(), routers);
    bench.offer(1, {0, 4, routers - 1, 5}, 10);
    const Cycle head = 10 + 6 + 4 * (routers - 1);
    EXPECT_EQ(bench.run(), (std::vector<Seen>{{1, head, head + 3}}));
    EXPECT_EQ(bench.entered, (std::vector<Seen>{{1, 12, 15}}));
  }
}

TEST(FlitEngine, EveryDelayOfThePipelineCounts) {
  NocConfig config = Bench::round();
  config.routing_delay = 2;
  config.vc_alloc_delay = 3;
  config.sw_alloc_delay = 2;
  config.switch_delay = 3;
  config.link_delay = 4;
  Bench bench(config, 2);
  bench.offer(1, {0, 4, 1, 5}, 0, MessageClass::ipcq_data, 64);
  const Cycle arrival = 1 + 4, router = 2 + 3 + 2 + 3 + 4;
  EXPECT_EQ(bench.run(), (std::vector<Seen>{{1, arrival + 2 * router, arrival + 2 * router}}));
}

TEST(FlitEngine, FlitsThatComeSlowlyAreInjectedAsTheyCome) {
  Bench bench(Bench::round());
  Packet packet;
  packet.op = 1;
  packet.bytes = 256;
  packet.exit_port = 5;
  packet.message_class = MessageClass::ipcq_data;
  bench.engine->offer(0, 4, packet, 0, 30, 0);  // a flit every 10 cycles
  bench.offer(2, {0, 4, 0, 5}, 1, MessageClass::request);
  // The second one goes through the gaps, behind the first flit: from 1 to 4.
  EXPECT_EQ(bench.run(), (std::vector<Seen>{{2, 7, 10}, {1, 6, 35}}));
}

// Flits per cycle of a flow over one link whose buffers have `depth` flits.
double rate(unsigned depth, std::uint32_t flits, bool chaining = false, unsigned vcs = 1) {
  NocConfig config = Bench::round(vcs);
  config.vc_depth_flits = depth;
  config.flit_bytes = 8;
  config.packet_chaining = chaining;
  Bench bench(config, 2);
  constexpr unsigned kPackets = 200;
  for (unsigned i = 0; i < kPackets; ++i) bench.offer(i, {0, 4, 1, 5}, 0, MessageClass::ipcq_data, 8 * flits);
  const auto& left = bench.run();
  EXPECT_EQ(left.size(), kPackets);
  return static_cast<double>(flits * (kPackets - 100)) / static_cast<double>(left[kPackets - 1].tail - left[99].tail);
}

TEST(FlitEngine, APlaceComesBackSixCyclesAfterABodyFlitAndSevenAfterAHead) {
  // One place: a head every 7 cycles, a body flit every 6 (bench/reference/noc/calib_credit_roundtrip.csv agrees).
  EXPECT_NEAR(rate(1, 1), 1.0 / 7, 1e-9);
  EXPECT_NEAR(rate(1, 4), 4.0 / (7 + 3 * 6), 1e-9);
  EXPECT_NEAR(rate(1, 8), 8.0 / (7 + 7 * 6), 1e-9);
  EXPECT_NEAR(rate(2, 8), 0.32, 0.001);  // the table's figures from here on
  EXPECT_NEAR(rate(3, 8), 0.4848, 0.001);
  EXPECT_NEAR(rate(4, 8), 0.6154, 0.001);
  EXPECT_NEAR(rate(5, 8), 0.7272, 0.001);
}

TEST(FlitEngine, OneChannelIdlesACycleBetweenPacketsUnlessTheyAreChained) {
  for (const std::uint32_t flits : {1U, 4U, 8U, 16U}) {
    EXPECT_NEAR(rate(32, flits), flits / (flits + 1.0), 1e-9) << flits;
    EXPECT_NEAR(rate(32, flits, true), 1.0, 1e-9) << flits;
  }
}

TEST(FlitEngine, AChainEndsWhereAnotherHeadWaitsForTheChannel) {
  Bench bench(Bench::round());
  for (unsigned i = 0; i < 4; ++i) {
    bench.offer(10 + i, {0, 4, 0, 6}, 0);
    bench.offer(20 + i, {0, 5, 0, 6}, 0);
  }
  EXPECT_EQ(bench.order(), (std::vector<std::uint64_t>{10, 20, 11, 21, 12, 22, 13, 23}));
  // The channel changes hands in the cycle after a tail: 5 cycles a packet.
  EXPECT_EQ(bench.left.back().tail - bench.left.front().tail, 7U * 5);
}

// Offers at inputs 4 and 5, in channels of their own, for output 6.
Bench& two_streams(Bench& bench, std::uint32_t& a, std::uint32_t& b) {
  const auto channel = [&](std::uint32_t flow) {
    Packet packet;
    packet.source = NodeId{flow};
    packet.message_class = MessageClass::ipcq_data;
    return virtual_channel(packet, bench.config);
  };
  a = 0;
  b = 1;
  while (channel(a) == channel(b)) ++b;
  bench.offer(1, {0, 4, 0, 6}, 0, MessageClass::ipcq_data, 256, a);
  bench.offer(2, {0, 5, 0, 6}, 0, MessageClass::ipcq_data, 256, b);
  return bench;
}

TEST(FlitEngine, ChannelsShareALinkFlitByFlit) {
  Bench bench(Bench::round(4));
  std::uint32_t a, b;
  two_streams(bench, a, b);
  EXPECT_EQ(bench.run(), (std::vector<Seen>{{1, 6, 12}, {2, 7, 13}}));
}

TEST(FlitEngine, OrAPacketHoldsIt) {
  NocConfig config = Bench::round(4);
  config.switch_policy = SwitchPolicy::hold;
  Bench bench(config);
  std::uint32_t a, b;
  two_streams(bench, a, b);
  EXPECT_EQ(bench.run(), (std::vector<Seen>{{1, 6, 9}, {2, 10, 13}}));
}

TEST(FlitEngine, AnOutputWhosePickIsNotAcceptedStaysIdle) {
  Bench bench(Bench::round(4));
  // Alone in cycle 53: it is then the turn of input 5 at output 6, and of output 7 at input 4.
  bench.offer(1, {0, 4, 0, 6}, 50, MessageClass::ipcq_data, 64);
  // 103: output 6 picks input 5 before input 4. 104: output 6 picks input 4, whose other flit output 7 picks, too;
  // input 4 accepts output 7, and output 6 is idle, although the second flit of input 5 waits for it. 105, 106: those
  // two.
  bench.offer(2, {0, 5, 0, 6}, 100, MessageClass::response, 128);
  bench.offer(3, {0, 4, 0, 6}, 100, MessageClass::ipcq_data, 64);
  bench.offer(4, {0, 4, 0, 7}, 101, MessageClass::request, 64);
  EXPECT_EQ(bench.run(), (std::vector<Seen>{{1, 56, 56}, {4, 107, 107}, {3, 108, 108}, {2, 106, 109}}));
}

TEST(FlitEngine, CommandsAndCreditsPassEverythingElse) {
  for (const SwitchPolicy policy : {SwitchPolicy::interleave, SwitchPolicy::hold}) {
    NocConfig config = Bench::round();
    config.switch_policy = policy;
    Bench bench(config, 3);
    for (unsigned i = 0; i < 20; ++i) {
      for (unsigned input = 4; input < 7; ++input) bench.offer(i, {0, input, 2, 7}, 0);
    }
    bench.offer(100, {0, 4, 2, 7}, 50, MessageClass::command, 64);
    bench.offer(101, {0, 5, 2, 7}, 90, MessageClass::credit, 0);
    for (const Seen& seen : bench.run()) {
      // The port of the source may have to send what it has begun: 3 flits; the switches are free at once.
      if (seen.id < 100) continue;
      EXPECT_LE(seen.tail, (seen.id == 100 ? 50U : 90U) + 6 + 4 * 2 + 3);
    }
    EXPECT_EQ(bench.left.size(), 62U);
  }
}

TEST(FlitEngine, WeightedANeighbourWinsTwiceInARow) {
  NocConfig config = Bench::round();
  config.arbitration = Arbitration::weighted_round_robin;
  Bench bench(config, 2);
  for (unsigned i = 0; i < 6; ++i) bench.offer(10 + i, {0, 4, 1, 6}, 0);
  for (unsigned i = 0; i < 6; ++i) bench.offer(20 + i, {1, 4, 1, 6}, 4);
  unsigned through = 0;
  const std::vector<std::uint64_t> order = bench.order();
  for (std::size_t i = 0; i < 6; ++i) through += order[i] < 20 ? 1 : 0;
  EXPECT_EQ(through, 4U);
}

TEST(FlitEngine, ABlockedPacketWaitsWhereItIsFlitByFlit) {
  NocConfig config = Bench::round();
  config.vc_depth_flits = 1;
  Bench bench(config, 4, 0);  // nothing may leave
  bench.offer(1, {0, 4, 3, 5}, 0);
  bench.run_to(1000);
  EXPECT_TRUE(bench.left.empty());
  EXPECT_EQ(bench.entered.size(), 1U);  // four buffers of one flit hold it
  for (unsigned flit = 0; flit < 4; ++flit) {
    bench.engine->credit(3, 5, bench.packets[0].vc, 1, 1000 + 100 * flit, 1000 + 100 * flit);
    bench.run_to(1100 + 100 * flit);
  }
  // A credit may be used sw_alloc_delay later; the last flit is at the head of the line by then.
  EXPECT_EQ(bench.run(), (std::vector<Seen>{{1, 1000 + 1 + 3, 1300 + 1 + 3}}));
}

TEST(FlitEngine, CreditsThatComeLateCountInFull) {
  Bench bench(Bench::round(), 1, 4);  // room for one packet
  for (std::uint64_t id = 1; id <= 3; ++id) bench.offer(id, {0, 4, 0, 5}, 0);
  bench.run_to(1000);
  EXPECT_EQ(bench.left.size(), 1U);
  for (const Cycle now : {1000U, 2000U}) {
    bench.engine->credit(0, 5, bench.packets[0].vc, 4, now - 500, now);  // could have been used long ago
    bench.run_to(now + 500);
    EXPECT_EQ(bench.left.size(), now / 1000 + 1);
  }
}

TEST(FlitEngine, ABlockedChannelDoesNotBlockTheOthers) {
  Bench bench(Bench::round(), 1, 4);
  for (unsigned i = 0; i < 8; ++i) bench.offer(i, {0, 4, 0, 5}, 0);
  bench.offer(50, {0, 4, 0, 5}, 100, MessageClass::request);
  bench.offer(51, {0, 4, 0, 6}, 200, MessageClass::response);
  EXPECT_EQ(bench.order(), (std::vector<std::uint64_t>{0, 50, 51}));
}

TEST(FlitEngine, NothingToDoWakesNobody) {
  Bench bench(Bench::round(), 4);
  bench.offer(1, {0, 4, 3, 5}, 0, MessageClass::ipcq_data, 64);
  bench.run();
  EXPECT_TRUE(bench.wakes.empty());
}

/// A row of a reference table: mean latency of three seeds within `percent` of it.
void expect_latency(Traffic traffic, double reference, double percent) {
  double sum = 0;
  for (traffic.seed = 1; traffic.seed <= 3; ++traffic.seed) sum += BareMesh(traffic, make_flit_engine).run().latency;
  EXPECT_NEAR(sum / 3, reference, reference * percent / 100);
}

Traffic mesh4x4(unsigned flits, unsigned vcs, unsigned depth, double load, const char* pattern = "uniform") {
  Traffic traffic;
  traffic.k = 4;
  traffic.flits = flits;
  traffic.vcs = vcs;
  traffic.depth = depth;
  traffic.pattern = pattern;
  traffic.load = load;
  traffic.warm_up = 5'000;
  traffic.window = 20'000;
  return traffic;
}

// bench/reference/noc/mesh4x4_uniform_p8_vc1_buf8.csv and others, rows near 0.8 of the saturation load.
TEST(FlitEngine, MeetsTheReferenceTables) {
  expect_latency(mesh4x4(8, 1, 8, 0.341), 33.9876, 5);
  expect_latency(mesh4x4(8, 4, 8, 0.485), 40.2639, 5);
  expect_latency(mesh4x4(16, 1, 8, 0.305), 48.4498, 5);
  expect_latency(mesh4x4(8, 4, 8, 0.207, "transpose"), 27.7869, 5);
  Traffic hold = mesh4x4(8, 4, 8, 0.457);
  hold.hold = true;
  expect_latency(hold, 34.2722, 5);
}

TEST(FlitEngine, PastSaturationDeliversWhatTheReferenceDoes) {
  Traffic traffic = mesh4x4(8, 4, 8, 0.809);
  double sum = 0;
  for (traffic.seed = 1; traffic.seed <= 3; ++traffic.seed) sum += BareMesh(traffic, make_flit_engine).run().accepted;
  EXPECT_NEAR(sum / 3, 0.71765, 0.03 * 0.71765);
}

}  // namespace
}  // namespace kernbench::test
