#include "models/link/wire.h"

#include <gtest/gtest.h>

#include "models/ucie/ucie_config.h"

// The rule of a wire, by hand: 128 GB/s raw are 7.8125 ps a byte, a flit of 256 B takes 2 ns.
namespace kernbench {
namespace {

constexpr Ps kLatency = 35'000;
constexpr std::uint32_t kNocFlit = 64;

LinkConfig ucie(UcieFlit flit, std::uint32_t header = 16) {
  UcieConfig config;
  config.flit = flit;
  config.header_bytes = header;
  return config.link();
}

TEST(Wire, WithoutFlitsBytesArriveAsTheyAreSent) {
  LinkConfig link;
  link.bytes_per_second = 128'000'000'000;
  link.header_bytes = 16;
  link.latency = kLatency;
  Wire wire(link, kNocFlit);
  const Wire::Passage passage = wire.send(256, 1000, 0);
  EXPECT_EQ(passage.end, 1000 + 272 * 125 / 16);
  EXPECT_EQ(passage.head, 1000 + 80 * 125 / 16 + kLatency);
  EXPECT_EQ(passage.tail, passage.end + kLatency);
  EXPECT_EQ(wire.free(), passage.end);
  EXPECT_EQ(wire.stats().raw_bytes, 272u);
  EXPECT_EQ(wire.stats().flits, 0u);
}

LinkConfig plain() {
  LinkConfig link;
  link.bytes_per_second = 128'000'000'000;
  link.header_bytes = 16;
  link.latency = kLatency;
  return link;
}
constexpr Ps kPacket = 2125;  // 256 B and a header

TEST(Wire, ATrainTakesWhatItsPacketsTake) {
  Wire train(plain(), kNocFlit), packets(plain(), kNocFlit);
  const Wire::Passage one = train.send(4096, 1000, 0);
  Wire::Passage last;
  for (Ps at = 1000; at < 1000 + 16 * kPacket; at = packets.free()) last = packets.send(256, at, 0);
  EXPECT_EQ(one.end, 1000 + 16 * kPacket);
  EXPECT_EQ(one.end, last.end);
  EXPECT_EQ(one.tail, last.tail);
  EXPECT_EQ(one.head, 1000 + 625 + kLatency);
  EXPECT_EQ(train.stats().packets, packets.stats().packets);
  EXPECT_EQ(train.stats().raw_bytes, packets.stats().raw_bytes);
  EXPECT_EQ(train.energy_aj(), packets.energy_aj());
}

TEST(Wire, WhatSlipsInGoesBetweenTwoPacketsOfATrainAndDelaysWhatFollows) {
  Wire wire(plain(), kNocFlit);
  wire.send(4096, 1000, 0);
  const Wire::Passage credit = wire.slip_in(16, 1000 + kPacket + 1, 0);
  EXPECT_EQ(credit.start, 1000 + 2 * kPacket);
  EXPECT_EQ(credit.end, credit.start + 250);
  EXPECT_EQ(credit.tail, credit.end + kLatency);
  EXPECT_EQ(wire.free(), 1000 + 16 * kPacket + 250);
  EXPECT_EQ(wire.slip_in(16, 1000 + 3 * kPacket, 0).start, 1000 + 3 * kPacket);
}

TEST(Wire, WhatSlipsInOnAFreeWireIsSentAsUsual) {
  Wire wire(ucie(UcieFlit::b256), kNocFlit), usual(ucie(UcieFlit::b256), kNocFlit);
  const Wire::Passage slipped = wire.slip_in(16, 5000, 5100), sent = usual.send(16, 5000, 5100);
  EXPECT_EQ(slipped.start, 5000u);
  EXPECT_EQ(slipped.end, sent.end);
  EXPECT_EQ(slipped.tail, sent.tail);
  EXPECT_EQ(wire.stats().raw_bytes, usual.stats().raw_bytes);
}

TEST(Wire, InFlitsWhatSlipsInArrivesWithThePieceThatHoldsIt) {
  Wire wire(ucie(UcieFlit::b256), kNocFlit);
  wire.send(4096, 0, 0);  // the stream begins at 0: a piece ends every 2 ns
  const Wire::Passage credit = wire.slip_in(16, 2400, 0);
  EXPECT_EQ(credit.start, 2 * wire.held(256));
  EXPECT_EQ(credit.tail, 6000 + kLatency);
}

TEST(Wire, AFlitIsPassedOnWhenItsCheckIsThere) {
  Wire wire(ucie(UcieFlit::b256), kNocFlit);
  // 272 bytes at 118 GB/s are 2,305.1 ps, in two flits.
  const Wire::Passage passage = wire.send(256, 1000, 0);
  EXPECT_EQ(passage.end, 1000 + 2306);
  EXPECT_EQ(passage.head, 1000 + 2000 + kLatency);
  EXPECT_EQ(passage.tail, 1000 + 4000 + kLatency);
  EXPECT_EQ(wire.stats().flits, 2u);
  EXPECT_EQ(wire.stats().raw_bytes, 512u);
}

TEST(Wire, HalvesOfALatencyOptimisedFlitAreCheckedOneByOne) {
  Wire wire(ucie(UcieFlit::b256_latency_optimised), kNocFlit);
  // 80 bytes at 125 GB/s are in the first half flit (1 ns), 272 bytes end in the first half of the second (3 ns).
  const Wire::Passage passage = wire.send(256, 0, 0);
  EXPECT_EQ(passage.head, 1000 + kLatency);
  EXPECT_EQ(passage.tail, 3000 + kLatency);
}

TEST(Wire, SmallFlitsPassASmallPacketSooner) {
  // 16 bytes of header alone: 68 B at 128 GB/s are 531.25 ps, rounded up.
  EXPECT_EQ(Wire(ucie(UcieFlit::b68), kNocFlit).send(0, 0, 0).tail, 532 + kLatency);
  EXPECT_EQ(Wire(ucie(UcieFlit::b256), kNocFlit).send(0, 0, 0).tail, 2000 + kLatency);
  EXPECT_EQ(Wire(ucie(UcieFlit::raw), kNocFlit).send(0, 0, 0).tail, 125 + kLatency);
}

TEST(Wire, PacketsThatFollowAreInTheSameFlit) {
  Wire wire(ucie(UcieFlit::b256), kNocFlit);
  wire.send(0, 0, 0);
  const Ps free = wire.free();
  EXPECT_EQ(free, 136u);                                       // 16 bytes at 118 GB/s
  EXPECT_EQ(wire.send(0, free, 0).tail, 2000 + kLatency);      // in the flit that is under way
  EXPECT_EQ(wire.send(0, 1900, 0).tail, 4000 + kLatency);      // 136 ps more do not fit: into the next one
  EXPECT_EQ(wire.send(0, 10'000, 0).tail, 12'000 + kLatency);  // idle before: a flit begins with it
  EXPECT_EQ(wire.stats().flits, 3u);
}

TEST(Wire, BackToBackPacketsGetTheRateOfTheFormat) {
  for (const UcieFlit flit : {UcieFlit::b68, UcieFlit::b256, UcieFlit::b256_latency_optimised, UcieFlit::raw}) {
    const LinkConfig link = ucie(flit);
    Wire wire(link, kNocFlit);
    constexpr std::uint64_t kPackets = 10'000;
    Ps last = 0;
    for (std::uint64_t i = 0; i < kPackets; ++i) last = wire.send(256, wire.free(), 0).tail;
    const double measured = 1e12 * kPackets * 256 / static_cast<double>(last);
    EXPECT_NEAR(measured / static_cast<double>(link.payload_rate().bytes_per_second()), 1, 0.005);
    // The raw bytes are those of full flits.
    const double expected =
        kPackets * 272.0 * static_cast<double>(link.raw_parts) / static_cast<double>(link.payload_parts);
    EXPECT_NEAR(static_cast<double>(wire.stats().raw_bytes), expected, 256 + 1e-3 * expected);
  }
}

TEST(Wire, AHalfWidthConnectionHasHalfTheRate) {
  UcieConfig config;
  const std::uint64_t full = config.link().bytes_per_second;
  config.width = UcieWidth::half;
  EXPECT_EQ(config.link().bytes_per_second, full / 2);
  config.width = UcieWidth::quarter;
  EXPECT_EQ(config.link().bytes_per_second, full / 4);
  EXPECT_EQ(config.link().payload_parts, 236u);
}

TEST(Wire, TheLastByteIsNotSentBeforeItIsHere) {
  Wire wire(ucie(UcieFlit::b256), kNocFlit);
  const Wire::Passage passage = wire.send(256, 0, 9'500);
  EXPECT_EQ(passage.end, 9'500u);
  EXPECT_EQ(passage.head, 2000 + kLatency);
  EXPECT_EQ(passage.tail, 10'000 + kLatency);
}

// Go-back-N: a bad flit costs its own time and a round trip; order is kept; the expected rate has a closed form.
TEST(Wire, AReplayCostsAFlitAndARoundTrip) {
  LinkConfig link = ucie(UcieFlit::b256, 0);
  link.bit_errors = BitErrors::kPerBits / 100'000;  // 1e-5: one flit in 49
  Wire wire(link, kNocFlit);
  Ps last = 0;
  std::uint64_t replays = 0;
  for (int i = 0; i < 1000; ++i) {
    const Ps start = last;
    const Wire::Passage passage = wire.send(236, start, 0);  // a flit each
    EXPECT_EQ(passage.end - start, 2000 + passage.replays * (2000 + 2 * kLatency));
    EXPECT_EQ(passage.tail, passage.end + kLatency);
    EXPECT_EQ(passage.head, passage.tail);
    EXPECT_EQ(passage.replayed, passage.replays * Wire::replay_time(link));
    last = passage.end;
    replays += passage.replays;
  }
  EXPECT_EQ(wire.stats().replays, replays);
  EXPECT_GT(replays, 5u);
  // In vain: 72 ns at 128 GB/s each.
  EXPECT_EQ(wire.stats().raw_bytes, 1000 * 256 + replays * 72 * 128);
}

TEST(Wire, GoodputWithErrorsIsTheClosedForm) {
  for (const std::uint64_t per_million : {1u, 10u, 50u}) {
    LinkConfig link = ucie(UcieFlit::b256);
    link.bit_errors = BitErrors::kPerBits / 1'000'000 * per_million;
    constexpr std::uint64_t kPackets = 200'000, kWires = 8;
    double measured = 0;
    for (std::uint64_t name = 0; name < kWires; ++name) {
      Wire wire(link, kNocFlit, name);
      for (std::uint64_t i = 0; i < kPackets; ++i) wire.send(256, wire.free(), 0);
      measured += 1e12 * kPackets * 256 / static_cast<double>(wire.free()) / kWires;
    }
    const double expected = static_cast<double>(link.payload_rate().bytes_per_second()) * Wire::goodput(link);
    EXPECT_NEAR(measured / expected, 1, 0.01) << per_million;
    EXPECT_LT(Wire::goodput(link), 0.95);
  }
}

TEST(Wire, AFlitIsReplayedAtMostThreeTimes) {
  LinkConfig link = ucie(UcieFlit::b256, 0);
  link.bit_errors = BitErrors::kPerBits / 2;  // nothing ever arrives well
  Wire wire(link, kNocFlit);
  EXPECT_EQ(wire.send(236, 0, 0).replays, 3u);
  EXPECT_EQ(wire.send(236, wire.free(), 0).replays, 3u);
}

TEST(Wire, TheSameSeedGivesTheSameErrors) {
  LinkConfig link = ucie(UcieFlit::b256);
  link.bit_errors = BitErrors::kPerBits / 100'000;
  const auto run = [&](std::uint64_t name, std::uint64_t seed) {
    LinkConfig seeded = link;
    seeded.error_seed = seed;
    Wire wire(seeded, kNocFlit, name);
    std::vector<Ps> tails;
    for (int i = 0; i < 500; ++i) tails.push_back(wire.send(256, wire.free(), 0).tail);
    return tails;
  };
  EXPECT_EQ(run(7, 1), run(7, 1));
  EXPECT_NE(run(7, 1), run(8, 1));
  EXPECT_NE(run(7, 1), run(7, 2));
}

TEST(Wire, EnergyIsThatOfTheRawBits) {
  Wire wire(ucie(UcieFlit::b256), kNocFlit);
  wire.send(256, 0, 0);
  EXPECT_EQ(wire.energy_aj(), 512u * 8 * 250'000);  // two flits at 0.25 pJ per bit
}

// 256 bytes and 16 of header are 1.15 flits of 236. Packets that start two flit times apart take two flits each, closer
// ones lie in one stream, whose last flit ends behind the last of them.
TEST(Wire, ATrainWhosePacketsPauseIsCountedTheFlitsOfItsPackets) {
  const LinkConfig link = ucie(UcieFlit::b256);
  const Ps flit = link.flit_time();
  for (const Ps apart : {Ps{0}, flit + flit / 2, 2 * flit, 5 * flit}) {
    Wire one_by_one(link, kNocFlit), train(link, kNocFlit);
    const Ps step = std::max(apart, one_by_one.held(256));
    for (Ps i = 0; i < 16; ++i) one_by_one.send(256, i * step, 0);
    train.send(4096, 0, 0);
    train.count_pauses(4096, 15 * step + train.held(256));
    EXPECT_EQ(train.stats().raw_bytes, one_by_one.stats().raw_bytes) << apart;
    EXPECT_EQ(train.stats().packets, one_by_one.stats().packets);
  }
}

// What has no data is a header: 16 of them fit two flits if they come at once, and take a flit each a packet time
// apart.
TEST(Wire, ATrainOfHeadersIsCountedTheFlitsOfItsPackets) {
  const LinkConfig link = ucie(UcieFlit::b256);
  for (const Ps apart : {Ps{0}, link.flit_time() / 4, link.flit_time(), 2 * link.flit_time()}) {
    Wire one_by_one(link, kNocFlit), train(link, kNocFlit);
    const Ps step = std::max(apart, one_by_one.held(0)), start = 100 * link.flit_time();
    for (Ps i = 0; i < 16; ++i) one_by_one.send(0, start + i * step, 0);
    train.count_headers(16, step, start);
    train.send(0, start, 0);
    EXPECT_EQ(train.stats().raw_bytes, one_by_one.stats().raw_bytes) << apart;
    EXPECT_EQ(train.stats().packets, 16U);
  }
}

// On a wire that is never idle headers lie in the flits that go anyway, and take no more than their own bytes.
TEST(Wire, HeadersOfATrainOnABusyWireTakeTheirBytesOnly) {
  const LinkConfig link = ucie(UcieFlit::b256);
  Wire wire(link, kNocFlit);
  for (int i = 0; i < 100; ++i) wire.send(256, wire.free(), 0);
  const std::uint64_t before = wire.stats().raw_bytes;
  wire.count_headers(16, wire.held(256), wire.free());
  EXPECT_LE(wire.stats().raw_bytes - before, 2 * link.flit_bytes);
}

// Each packet is rounded up to whole bytes on the wire.
TEST(Wire, WithoutFlitsATrainIsCountedTheBytesOfItsPackets) {
  LinkConfig link = ucie(UcieFlit::raw);
  link.payload_parts = 128;
  link.raw_parts = 130;
  Wire one_by_one(link, kNocFlit), train(link, kNocFlit);
  for (int i = 0; i < 16; ++i) one_by_one.send(i == 15 ? 100 : 256, one_by_one.free(), 0);
  for (int i = 0; i < 16; ++i) one_by_one.send(0, one_by_one.free(), 0);
  train.send(15 * 256 + 100, 0, 0);
  train.count_headers(16, train.held(256), train.free());
  train.send(0, train.free(), 0);
  EXPECT_EQ(train.stats().raw_bytes, one_by_one.stats().raw_bytes);
  EXPECT_EQ(train.stats().packets, one_by_one.stats().packets);
}

TEST(LinkConfig, TrainsTakeAsManyPlacesAsTheyHavePackets) {
  EXPECT_EQ(packets_of(0), 1u);
  EXPECT_EQ(packets_of(256), 1u);
  EXPECT_EQ(packets_of(257), 2u);
  EXPECT_EQ(packets_of(4096), 16u);
}

TEST(LinkConfig, PayloadRateLeavesOutFlitsAndHeaders) {
  EXPECT_EQ(ucie(UcieFlit::b256).payload_rate().bytes_per_second(), 111'058'823'529u);
}

}  // namespace
}  // namespace kernbench
