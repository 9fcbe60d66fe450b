// Queues between PEs: contents, backpressure, rings in each kind of memory, statistics, the deadlock report.
#include <algorithm>

#include "tests/pe/harness.h"

namespace kernbench {
namespace {

using test::Bench;
using test::two_pes;

constexpr Va kData = 0x10000, kReceived = 0x40000;
const Direction kEast = Direction::east(), kWest = Direction::west();

std::vector<double> counted(std::size_t n) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i % 2048));
  return values;
}

std::size_t count(const Bench& bench, PacketKind kind) {
  return static_cast<std::size_t>(
      std::count_if(bench.sent.begin(), bench.sent.end(), [kind](const Bench::Sent& p) { return p.kind == kind; }));
}

void expect_done(Bench& bench, const Message& message) {
  EXPECT_TRUE(message.faults.empty()) << message.faults.front().reason;
  EXPECT_TRUE(bench.completed(message));
  EXPECT_EQ(bench.pool.outstanding(), 0u);
}

/// A message of several slots and a rest, from PE 0 to PE 1.
void send_a_long_message(IpcqBuffer where, PacketKind slot_access) {
  Bench bench(two_pes());
  bench.map_hbm(0, 1 << 20);
  bench.join(0, 1, where);
  constexpr std::size_t kCount = 2 * 4096 / 2 * 5 + 100;  // ten slots of f16 and 200 B
  bench.put(kData, DType::f16, counted(kCount));
  Message& message = bench.launch({
      {std::uint16_t{0},
       [](Tl& tl) {
         tl.send(kEast, tl.load(kData, {1, kCount}, DType::f16));
       }},
      {std::uint16_t{1},
       [](Tl& tl) {
         tl.store(kReceived, tl.recv(kWest, {1, kCount}, DType::f16));
       }},
  });
  expect_done(bench, message);
  EXPECT_EQ(bench.get(kReceived, DType::f16, kCount), counted(kCount));
  EXPECT_EQ(count(bench, PacketKind::ipcq_credit), 11u);
  EXPECT_EQ(count(bench, PacketKind::ipcq_data), 10u * 16 + 1);
  const std::size_t dma = 10u * 16 + 1;  // the load and the store themselves
  EXPECT_EQ(count(bench, slot_access), slot_access == PacketKind::ipcq_data ? dma : 2 * dma);
}

TEST(PeIpcq, ALongMessageGoesSlotBySlotThroughTcm) { send_a_long_message(IpcqBuffer::tcm, PacketKind::ipcq_data); }
TEST(PeIpcq, RingsInSramAreWritten) { send_a_long_message(IpcqBuffer::sram, PacketKind::write); }
TEST(PeIpcq, RingsInSramAreReadBack) { send_a_long_message(IpcqBuffer::sram, PacketKind::read); }
TEST(PeIpcq, RingsInHbmAreWritten) { send_a_long_message(IpcqBuffer::hbm, PacketKind::write); }
TEST(PeIpcq, RingsInHbmAreReadBack) { send_a_long_message(IpcqBuffer::hbm, PacketKind::read); }

TEST(PeIpcq, AMessageTakesTcmReadWayWriteAndCopy) {
  Bench bench(two_pes());
  bench.join(0, 1);
  Message& message = bench.launch({
      {std::uint16_t{0},
       [](Tl& tl) {
         tl.send(kEast, tl.alloc({1, 1024}, DType::f16));
       }},
      {std::uint16_t{1},
       [](Tl& tl) {
         tl.recv(kWest, {1, 1024}, DType::f16);
       }},
  });
  expect_done(bench, message);
  const Rate tcm(bench.options.config.tcm.bytes_per_second);
  const Ps start = Bench::body(message).first_start, dispatch = bench.options.config.cpu.dispatch;
  const auto copies = bench.observer.named("ipcq_copy");
  ASSERT_EQ(copies.size(), 2u);
  const Ps handed_over = start + dispatch + 8 * tcm.time_for(256);
  EXPECT_EQ(copies[0].component, "sip0.cube0.pe0.ipcq_send");
  EXPECT_EQ(copies[0].end, handed_over);
  const Ps visible = handed_over + bench.options.latency + tcm.time_for(256);
  EXPECT_EQ(copies[1].component, "sip0.cube0.pe1.ipcq_recv");
  EXPECT_EQ(copies[1].start, visible);
  // Its read begins when the banks have taken the last packet, its write one bank cycle behind.
  const Ps cycle = Clock(bench.options.config.tcm.clock_hz).at(1);
  EXPECT_EQ(copies[1].end, visible + (cycle - tcm.time_for(256)) + cycle + tcm.time_for(2048));
}

/// It is on the way once where a message leaves TCM, where it enters the slot and where it is copied.
TEST(PeIpcq, TcmsLatencyShiftsAMessageOfManyPacketsAndSlotsThreeTimes) {
  Bench::Options options = two_pes();
  constexpr Ps kLatency = 1'000'000;
  options.config.tcm.latency = kLatency;
  Bench bench(options);
  bench.join(0, 1);
  const auto slots = static_cast<std::int64_t>(options.config.ipcq.slots);
  const std::int64_t elements = slots * options.config.ipcq.slot_bytes / 2;
  Message& message = bench.launch({
      {std::uint16_t{0},
       [=](Tl& tl) {
         tl.send(kEast, tl.alloc({1, elements}, DType::f16));
       }},
      {std::uint16_t{1},
       [=](Tl& tl) {
         tl.recv(kWest, {1, elements}, DType::f16);
       }},
  });
  expect_done(bench, message);
  const Rate tcm(options.config.tcm.bytes_per_second);
  const Ps cycle = Clock(options.config.tcm.clock_hz).at(1);
  const Ps begin = Bench::body(message).first_start + options.config.cpu.dispatch;
  std::vector<Ps> data, credits;
  for (const auto& packet : bench.sent) {
    if (packet.kind == PacketKind::ipcq_data) data.push_back(packet.time);
    if (packet.kind == PacketKind::ipcq_credit) credits.push_back(packet.time);
  }
  ASSERT_EQ(data.size(), static_cast<std::size_t>(elements) * 2 / 256);
  for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], begin + (i + 1) * tcm.time_for(256) + kLatency) << i;
  const auto copies = bench.observer.named("ipcq_copy");
  ASSERT_EQ(copies.size(), 2U);
  const auto slot_packets = static_cast<std::size_t>(options.config.ipcq.slot_bytes / 256);
  const Ps visible = data[slot_packets - 1] + options.latency + tcm.time_for(256) + kLatency;
  EXPECT_EQ(copies[1].start, visible);
  ASSERT_EQ(credits.size(), static_cast<std::size_t>(slots));
  // Slots follow each other at the rate of the ports; a write begins a bank cycle behind the read beside it.
  const Ps slot = tcm.time_for(options.config.ipcq.slot_bytes);
  for (std::size_t i = 0; i < credits.size(); ++i) {
    EXPECT_GE(credits[i], visible + (i + 1) * slot + kLatency) << i;
    EXPECT_LE(credits[i], visible + (i + 1) * slot + kLatency + 2 * i * cycle) << i;
  }
  EXPECT_GE(copies[1].end, credits.back());
  EXPECT_LE(copies[1].end, credits.back() + 2 * cycle);
}

TEST(PeIpcq, TheMessageAfterAFullRingWaitsForTheFirstCredit) {
  Bench bench(two_pes());
  bench.join(0, 1);
  const auto slots = static_cast<int>(bench.options.config.ipcq.slots);
  const std::int64_t slot_elements = bench.options.config.ipcq.slot_bytes / 2;
  constexpr std::uint32_t kPackets = 4096 / 256;
  Message& message = bench.launch({
      {std::uint16_t{0},
       [=](Tl& tl) {
         const Tile tile = tl.alloc({1, slot_elements}, DType::f16);
         for (int i = 0; i < slots + 1; ++i) tl.send(kEast, tile);
       }},
      {std::uint16_t{1},
       [=](Tl& tl) {
         tl.wait(tl.fill({2048, 1024}, DType::f16, 0));  // all messages but the last are there long before its end
         for (int i = 0; i < slots + 1; ++i) tl.recv(kWest, {1, slot_elements}, DType::f16);
       }},
  });
  expect_done(bench, message);
  std::vector<Ps> data, credits;
  for (const auto& packet : bench.sent) {
    if (packet.kind == PacketKind::ipcq_data) data.push_back(packet.time);
    if (packet.kind == PacketKind::ipcq_credit) credits.push_back(packet.time);
  }
  ASSERT_EQ(data.size(), kPackets * static_cast<std::size_t>(slots + 1));
  const Rate tcm(bench.options.config.tcm.bytes_per_second);
  const Ps fifth = data[kPackets * static_cast<std::size_t>(slots)];
  EXPECT_EQ(fifth, credits[0] + bench.options.latency + tcm.time_for(256));
  EXPECT_LT(data[kPackets * static_cast<std::size_t>(slots) - 1], credits[0]);
  const QueueStatistics sender = bench.pe(0).ipcq_statistics()[0], receiver = bench.pe(1).ipcq_statistics()[0];
  EXPECT_EQ(sender.blocked_for_credit, fifth - tcm.time_for(256) - data[kPackets * 4 - 1]);
  EXPECT_EQ(sender.messages_sent, 5u);
  EXPECT_EQ(sender.bytes_sent, 5u * 4096);
  EXPECT_EQ(receiver.messages_received, 5u);
  EXPECT_EQ(receiver.high_water, 4u);
}

TEST(PeIpcq, BothPesMaySendMoreThanARingHoldsAndThenReceive) {
  Bench bench(two_pes());
  bench.map_hbm(0, 1 << 24);
  bench.join(0, 1);
  constexpr std::int64_t kCount = 10 * 2048;
  bench.put(kData, DType::f16, counted(kCount));
  const auto body = [](Tl& tl) {
    const Direction peer = tl.program_id(0) == 0 ? kEast : kWest;
    const Tile mine = tl.load(kData, {1, kCount}, DType::f16);
    for (int i = 0; i < 4; ++i) tl.send(peer, mine);
    for (int i = 0; i < 4; ++i) {
      tl.store(0x100000 + static_cast<Va>(i + 4 * tl.program_id(0)) * 0x10000, tl.recv(peer, {1, kCount}, DType::f16));
    }
  };
  Message& message = bench.launch({{std::uint16_t{0}, body}, {std::uint16_t{1}, body}});
  expect_done(bench, message);
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(bench.get(0x100000 + i * 0x10000, DType::f16, kCount), counted(kCount));
  }
}

TEST(PeIpcq, WhatWasSentIsWhatTheSourceHeldAtIssue) {
  Bench bench(two_pes());
  bench.map_hbm(0, 1 << 20);
  bench.join(0, 1);
  Message& message = bench.launch({
      {std::uint16_t{0},
       [](Tl& tl) {
         for (int i = 0; i < 8; ++i) tl.send(kEast, tl.fill({1, 2048}, DType::f16, i));  // all in one range of TCM
       }},
      {std::uint16_t{1},
       [](Tl& tl) {
         for (int i = 0; i < 8; ++i)
           tl.store(kReceived + 4096 * static_cast<Va>(i), tl.recv(kWest, {1, 2048}, DType::f16));
       }},
  });
  expect_done(bench, message);
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(bench.get(kReceived + 4096 * i, DType::f16, 2048), std::vector<double>(2048, static_cast<double>(i)));
  }
}

TEST(PeIpcq, EmptyMessagesKeepTheirPlace) {
  Bench bench(two_pes());
  bench.map_hbm(0, 1 << 20);
  bench.join(0, 1);
  Message& message = bench.launch({
      {std::uint16_t{0},
       [](Tl& tl) {
         tl.send(kEast, tl.alloc({1, 0}, DType::f16));
         tl.send(kEast, tl.fill({1, 4}, DType::f16, 3));
       }},
      {std::uint16_t{1},
       [](Tl& tl) {
         tl.recv(kWest, {1, 0}, DType::f16);
         tl.store(kReceived, tl.recv(kWest, {1, 4}, DType::f16));
       }},
  });
  expect_done(bench, message);
  EXPECT_EQ(bench.get(kReceived, DType::f16, 4), std::vector<double>(4, 3));
}

TEST(PeIpcq, GroupsHaveQueuesOfTheirOwn) {
  Bench bench(two_pes());
  bench.map_hbm(0, 1 << 20);
  bench.join(0, 1, IpcqBuffer::tcm, 0);
  bench.join(0, 1, IpcqBuffer::tcm, 3);
  const auto send = [](double value) {
    return [value](Tl& tl) { tl.send(kEast, tl.fill({1, 4}, DType::f16, value)); };
  };
  bench.launch({{std::uint16_t{0}, send(1)}}, "s0", 0);
  bench.launch({{std::uint16_t{0}, send(2)}}, "s3", 3);
  bench.launch({{std::uint16_t{1}, [](Tl& tl) { tl.store(kReceived, tl.recv(kWest, {1, 4}, DType::f16)); }}}, "r3", 3);
  bench.launch({{std::uint16_t{1},
                 [](Tl& tl) {
                   tl.store(kReceived + 64, tl.recv(kWest, {1, 4}, DType::f16));
                 }}},
               "r0", 0);
  EXPECT_EQ(bench.get(kReceived, DType::f16, 4), std::vector<double>(4, 2));
  EXPECT_EQ(bench.get(kReceived + 64, DType::f16, 4), std::vector<double>(4, 1));
}

TEST(PeIpcq, ExplainsWhoWaitsForData) {
  Bench bench(two_pes());
  bench.join(0, 1);
  const auto receive = [](Tl& tl) {
    tl.fence();
    tl.recv(tl.program_id(0) == 0 ? kEast : kWest, {1, 2048}, DType::f16);
  };
  bench.ending = Bench::Ending::waiting;
  Message& message = bench.launch({{std::uint16_t{0}, receive}, {std::uint16_t{1}, receive}}, "ring");
  EXPECT_FALSE(bench.completed(message));
  std::vector<Blocked> blocked;
  bench.pe(1).explain(blocked);
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].pe, bench.coord(1));
  EXPECT_EQ(blocked[0].kernel, "ring");
  EXPECT_EQ(blocked[0].op, "recv(W, 1x2048 f16)");
  EXPECT_EQ(blocked[0].waits_for, "data from sip0.cube0.pe0 (direction W), ring 0 of 4 slots full");
  EXPECT_TRUE(blocked[0].has_peer);
  EXPECT_EQ(blocked[0].peer, bench.coord(0));
  EXPECT_EQ(blocked[0].since, Bench::body(message).first_start + 2 * bench.options.config.cpu.dispatch);
}

TEST(PeIpcq, ExplainsWhoWaitsForCredit) {
  Bench bench(two_pes());
  bench.join(0, 1);
  bench.ending = Bench::Ending::waiting;
  Message& message = bench.launch([](Tl& tl) { tl.send(kEast, tl.alloc({8, 2048}, DType::f16)); });
  EXPECT_FALSE(bench.completed(message));
  std::vector<Blocked> blocked;
  bench.pe(0).explain(blocked);
  bench.pe(1).explain(blocked);
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].op, "send(E, 8x2048 f16)");
  EXPECT_EQ(blocked[0].waits_for, "credit of sip0.cube0.pe1 (direction E), ring 4 of 4 slots full");
}

/// Each sends more than slots and queues hold before it receives: what would make room is not reached.
TEST(PeIpcq, ExplainsThatPeCpuStandsBehindAFullQueue) {
  Bench bench(two_pes());
  bench.join(0, 1);
  bench.ending = Bench::Ending::waiting;
  const unsigned most = bench.options.config.ipcq.queue_depth + 4 + 2;
  const auto exchange = [most](Tl& tl) {
    const Direction other = tl.program_id(0) == 0 ? kEast : kWest;
    for (unsigned i = 0; i < most; ++i) tl.send(other, tl.alloc({1, 32}, DType::f16));
    for (unsigned i = 0; i < most; ++i) tl.recv(other, {1, 32}, DType::f16);
  };
  Message& message = bench.launch({{std::uint16_t{0}, exchange}, {std::uint16_t{1}, exchange}}, "ring");
  EXPECT_FALSE(bench.completed(message));
  std::vector<Blocked> blocked;
  bench.pe(0).explain(blocked);
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].waits_for,
            "credit of sip0.cube0.pe1 (direction E), ring 4 of 4 slots full; PE_CPU stands at send(E, 1x32 f16), whose "
            "queue is full");
}

/// Each sends 256 KiB, which dies with its sends, before it receives; rings hold 16 KiB.
TEST(PeIpcq, PeersThatSendMoreThanRingsHoldAndThenReceiveFinish) {
  Bench bench(two_pes());
  bench.map_hbm(0, 1 << 24);
  bench.join(0, 1);
  constexpr unsigned kTiles = 4;
  constexpr Va kElements = 32768;
  constexpr Va kSum = 0x80000;
  for (unsigned i = 0; i < kTiles; ++i)
    bench.put(kData + i * 2 * kElements, DType::f16, std::vector<double>(kElements, i + 1));
  const auto swap = [](Tl& tl) {
    const Direction other = tl.program_id(0) == 0 ? kEast : kWest;
    for (unsigned i = 0; i < kTiles; ++i)
      tl.send(other, tl.load(kData + i * 2 * kElements, {1, kElements}, DType::f16));
    Tile sum = tl.recv(other, {1, kElements}, DType::f16);
    for (unsigned i = 1; i < kTiles; ++i) sum = sum + tl.recv(other, {1, kElements}, DType::f16);
    if (tl.program_id(0) == 1) tl.store(kSum, sum);
  };
  expect_done(bench, bench.launch({{std::uint16_t{0}, swap}, {std::uint16_t{1}, swap}}, "swap"));
  EXPECT_EQ(bench.get(kSum, DType::f16, kElements), std::vector<double>(kElements, 1 + 2 + 3 + 4));
}

/// TCM holds either what is sent or what is received: the recv gets the tile's place, waits for it, and that for the
/// peer.
TEST(PeIpcq, ExplainsARecvThatWaitsForTheTileOfASend) {
  Bench bench(two_pes());
  bench.map_hbm(0, 1 << 26);
  bench.join(0, 1);
  bench.ending = Bench::Ending::waiting;
  const PeConfig& config = bench.options.config;
  const std::uint64_t share = config.tcm.bytes / config.cpu.kernel_contexts;
  const auto most = static_cast<std::int64_t>(share / size_of(DType::f16) * 2 / 3);
  const auto swap = [most](Tl& tl) {
    const Direction other = tl.program_id(0) == 0 ? kEast : kWest;
    tl.send(other, tl.load(kData, {1, most}, DType::f16));
    tl.recv(other, {1, most}, DType::f16);
  };
  bench.launch({{std::uint16_t{0}, swap}, {std::uint16_t{1}, swap}}, "swap");
  std::vector<Blocked> blocked;
  bench.pe(0).explain(blocked);
  ASSERT_EQ(blocked.size(), 2u);
  const std::string shape = "1x" + std::to_string(most) + " f16)";
  EXPECT_EQ(blocked[0].op, "send(E, " + shape);
  EXPECT_EQ(blocked[1].kernel, "swap");
  EXPECT_EQ(blocked[1].op, "recv(E, " + shape);
  EXPECT_EQ(blocked[1].waits_for,
            "TCM that send(E, " + shape +
                " still reads: there was no other place; receive before as much is sent, or send smaller parts");
}

TEST(PeIpcq, FillLevelsAreATrack) {
  Bench bench(two_pes());
  bench.join(0, 1);
  bench.launch([](Tl& tl) { tl.send(kEast, tl.alloc({2, 2048}, DType::f16)); });
  std::vector<std::uint64_t> levels;
  for (const auto& change : bench.observer.intervals) {
    if (change.track == "sip0.cube0.pe1.ipcq_W") levels.push_back(change.value);
  }
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.back(), 2u);
}

}  // namespace
}  // namespace kernbench
