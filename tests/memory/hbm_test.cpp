#include "models/hbm/hbm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "models/hbm/address_map.h"
#include "tests/memory/hbm_presets.h"
#include "tests/memory/initiator.h"
#include "tlm/ext/packet.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/address.h"

namespace kernbench {
namespace {

constexpr Ps kCk = 625;  // of hbm3_6400()
constexpr Ps kController = 10'000;
constexpr CubeCoord kCube{1, 2};

/// Two channels of HBM3, four pseudo channels, dealt to two slices.
HbmConfig small_hbm() {
  HbmConfig config = hbm3_6400();
  config.channels = 2;
  config.bytes = 64 << 20;
  config.controller_latency = kController;
  return config;
}
std::uint64_t address(std::uint64_t offset, std::uint16_t slice = 0) {
  return PhysicalAddress::hbm({kCube.sip, kCube.cube, slice}, offset).encode();
}

/// The stack with a test initiator at each slice. One per TEST: SystemC elaborates once in a process.
struct Bench {
  explicit Bench(const HbmConfig& config = small_hbm(), RunOptions options = {}, Observer* observer = nullptr)
      : hbm("hbm", config, kCube, 2, options, queue, observer), initiators{{"i0", queue}, {"i1", queue}} {
    for (int i = 0; i < 2; ++i) initiators[i].out.bind(*hbm.port[static_cast<std::size_t>(i)]);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  /// Latency of one request sent at `time`.
  Ps run(Ps time, tlm::tlm_generic_payload& payload, int slice = 0) {
    const std::size_t id = initiators[slice].send(time, payload);
    queue.run_all();
    return initiators[slice].records[id].response - time;
  }
  EventQueue queue;
  Hbm hbm;
  TestInitiator initiators[2];
};

const HbmTiming kTiming = hbm3_6400().timing;
const Ps kHit = (1 + kTiming.t_cl + 2) * kCk;
const Ps kClosed = kHit + (kTiming.t_rcd_rd + 1) * kCk;
const Ps kConflict = kClosed + (kTiming.t_rp - 1) * kCk;

// 512 KiB: one step of the row field with RoSiBaCoBg over two pseudo channels: 4 groups x 32 columns x 4 banks x 2
// stacks x 32 B.
constexpr std::uint64_t kNextRow = 2 * 32768 * 2;

TEST(HbmAddressMap, DealsASliceToItsPseudoChannelsInTurnsOfTheInterleave) {
  EXPECT_EQ(HbmAddressMap(hbm3_6400(), 4).interleave(), 256u) << "the spec's";
  for (const std::uint64_t interleave : {256, 512}) {
    HbmConfig config = hbm3_6400();
    config.interleave_bytes = interleave;
    const HbmAddressMap map(config, 4);
    for (std::uint64_t offset = 0; offset < 16384; offset += 32) {
      ASSERT_EQ(map.place(offset).pseudo_channel, offset / interleave % 4) << offset;
      ASSERT_EQ(map.offset(map.place(offset)), offset);
    }
  }
}

TEST(Hbm, IdleReadsTakeTheClosedFormsToTheClock) {
  Bench bench;
  PlainPayload a(tlm::TLM_READ_COMMAND, address(0), 32), b(tlm::TLM_READ_COMMAND, address(0), 32),
      c(tlm::TLM_READ_COMMAND, address(kNextRow), 32);
  EXPECT_EQ(bench.run(0, a), kClosed + kController);
  EXPECT_EQ(bench.run(1'000'000, b), kHit + kController);
  EXPECT_EQ(bench.run(2'000'000, c), kConflict + kController);
  EXPECT_EQ(a.get_response_status(), tlm::TLM_OK_RESPONSE);
  const Hbm::Stats stats = bench.hbm.stats();
  EXPECT_EQ(stats.row_hits, 1u);
  EXPECT_EQ(stats.row_closed, 1u);
  EXPECT_EQ(stats.row_conflicts, 1u);
  EXPECT_EQ(stats.bytes, 96u);
  EXPECT_EQ(stats.busy, 3 * 2 * kCk);
}

TEST(Hbm, A256ByteReadIsPipelinedOverTheBankGroups) {
  Bench bench;
  PlainPayload a(tlm::TLM_READ_COMMAND, address(0), 256), b(tlm::TLM_READ_COMMAND, address(0), 256);
  // Rows of four bank groups open tRRD_S apart; the second column of a group follows the first of the last one.
  EXPECT_EQ(bench.run(0, a), kClosed + 3 * kTiming.t_rrd_s * kCk + 2 * kTiming.t_ccd_s * kCk + kController);
  EXPECT_EQ(bench.run(1'000'000, b), kHit + 7 * kTiming.t_ccd_s * kCk + kController);
}

TEST(Hbm, ArrivalsAreSeenAtTheNextEdge) {
  Bench bench;
  PlainPayload a(tlm::TLM_READ_COMMAND, address(0), 32), b(tlm::TLM_READ_COMMAND, address(0), 32);
  bench.run(0, a);
  // One picosecond after a rising edge: the falling edge sees it, the command starts one rising edge later.
  EXPECT_EQ(bench.run(kCk * 1600 + 1, b), kHit + kController - 1);
}

TEST(Hbm, WritesArePostedAndSeenByTheNextRead) {
  Bench bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(0x1234), 200, 7), r(tlm::TLM_READ_COMMAND, address(0x1230), 210);
  EXPECT_EQ(bench.run(0, w), kController);
  bench.run(100'000, r);
  for (unsigned i = 0; i < 210; ++i)
    ASSERT_EQ(r.data[i], i < 4 || i >= 204 ? 0 : static_cast<unsigned char>(7 + i - 4)) << i;
}

TEST(Hbm, SlicesAreApart) {
  Bench bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(64, 1), 32, 9), r(tlm::TLM_READ_COMMAND, address(64, 0), 32);
  bench.run(0, w, 1);
  bench.run(100'000, r, 0);
  EXPECT_EQ(r.data, std::vector<unsigned char>(32, 0));
}

TEST(Hbm, AnswersErrorsWithAResponse) {
  Bench bench;
  const std::uint64_t slice_bytes = small_hbm().bytes / 2;
  const auto status = [&](tlm::tlm_generic_payload& payload) {
    bench.run(bench.queue.now(), payload);
    return payload.get_response_status();
  };
  PlainPayload last(tlm::TLM_READ_COMMAND, address(slice_bytes - 32), 32),
      beyond(tlm::TLM_READ_COMMAND, address(slice_bytes - 31), 32);
  PlainPayload far(tlm::TLM_WRITE_COMMAND, address(slice_bytes), 1), slice(tlm::TLM_READ_COMMAND, address(0, 1), 32);
  PlainPayload cube(tlm::TLM_READ_COMMAND, PhysicalAddress::hbm({1, 3, 0}, 0).encode(), 32);
  PlainPayload kind(tlm::TLM_READ_COMMAND, PhysicalAddress::tcm({1, 2, 0}, 0).encode(), 32);
  PlainPayload ignore(tlm::TLM_IGNORE_COMMAND, address(0), 32), empty(tlm::TLM_READ_COMMAND, address(0), 0);
  PlainPayload stream(tlm::TLM_WRITE_COMMAND, address(0), 32), enable(tlm::TLM_WRITE_COMMAND, address(0), 32);
  stream.set_streaming_width(16);
  unsigned char bits = 0xff;
  enable.set_byte_enable_ptr(&bits);
  enable.set_byte_enable_length(0);
  EXPECT_EQ(status(last), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(status(beyond), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(far), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(slice), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(cube), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(kind), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(ignore), tlm::TLM_COMMAND_ERROR_RESPONSE);
  EXPECT_EQ(status(empty), tlm::TLM_BURST_ERROR_RESPONSE);
  EXPECT_EQ(status(stream), tlm::TLM_BURST_ERROR_RESPONSE);
  EXPECT_EQ(status(enable), tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  sc_core::sc_time delay(5, sc_core::SC_NS);
  bench.initiators[0].out->b_transport(beyond, delay);
  EXPECT_EQ(beyond.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(delay.value(), 5'000 + kController);
  EXPECT_EQ(bench.initiators[0].out->transport_dbg(beyond), 0u);
}

TEST(Hbm, RespectsByteEnables) {
  Bench bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(0), 8, 1), r(tlm::TLM_READ_COMMAND, address(0), 8),
      part(tlm::TLM_READ_COMMAND, address(0), 8);
  unsigned char every_other[2] = {TLM_BYTE_ENABLED, TLM_BYTE_DISABLED};
  w.set_byte_enable_ptr(every_other);
  w.set_byte_enable_length(2);
  bench.run(0, w);
  bench.run(100'000, r);
  EXPECT_EQ(r.data, (std::vector<unsigned char>{1, 0, 3, 0, 5, 0, 7, 0}));
  part.set_byte_enable_ptr(every_other);
  part.set_byte_enable_length(2);
  bench.run(200'000, part);
  EXPECT_EQ(part.data, (std::vector<unsigned char>{1, 0xee, 3, 0xee, 5, 0xee, 7, 0xee}));
}

TEST(Hbm, LooselyTimedAgreesWithApproximatelyTimedWhenIdle) {
  Bench bench;
  // Slice 0 by nb_transport, slice 1 by b_transport: two channels in the same states.
  Ps time = 0;
  const std::uint64_t offsets[] = {0, 0, 256, kNextRow, kNextRow + 4096, 128, 7, 1 << 20};
  const unsigned sizes[] = {32, 256, 64, 256, 1, 4096, 300, 2000};
  for (int i = 0; i < 8; ++i) {
    PlainPayload at(tlm::TLM_READ_COMMAND, address(offsets[i], 0), sizes[i]),
        lt(tlm::TLM_READ_COMMAND, address(offsets[i], 1), sizes[i]);
    bench.queue.run_all();
    time += 1'000'000;
    sc_core::sc_time delay = sc_core::sc_time::from_value(time - bench.queue.now());
    const Ps now = bench.queue.now();
    bench.initiators[1].out->b_transport(lt, delay);
    EXPECT_EQ(lt.get_response_status(), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(bench.run(time, at), now + delay.value() - time) << i;
  }
}

TEST(Hbm, LooselyTimedRequestsQueueBehindEachOther) {
  Bench bench;
  sc_core::sc_time delay;
  Ps last = 0;
  for (int i = 0; i < 400; ++i) {
    PlainPayload read(tlm::TLM_READ_COMMAND, address(static_cast<std::uint64_t>(i) * 256), 256);
    delay = sc_core::SC_ZERO_TIME;
    bench.initiators[0].out->b_transport(read, delay);
    EXPECT_GE(delay.value(), last);
    last = delay.value();
  }
  EXPECT_GT(last, Rate(2 * 25'600'000'000).time_for(400 * 256));
  EXPECT_EQ(bench.queue.now(), 0u);
}

TEST(Hbm, TheBackDoorTakesNoTime) {
  Bench bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(5000), 9000, 3), r(tlm::TLM_READ_COMMAND, address(5000), 9000);
  EXPECT_EQ(bench.initiators[0].out->transport_dbg(w), 9000u);
  EXPECT_EQ(bench.initiators[0].out->transport_dbg(r), 9000u);
  EXPECT_EQ(r.data, w.data);
  EXPECT_TRUE(bench.queue.empty());
  EXPECT_EQ(bench.hbm.stats().bytes, 0u);
  tlm::tlm_dmi dmi;
  EXPECT_FALSE(bench.initiators[0].out->get_direct_mem_ptr(r, dmi));
}

TEST(Hbm, AFullQueueHoldsTheRequestAtItsPort) {
  HbmConfig config = small_hbm();
  config.queue_depth = 4;  // a queue of 8 bursts per channel: one request of 256 B
  Bench bench(config);
  std::deque<PlainPayload> reads;
  for (unsigned i = 0; i < 6; ++i) {
    reads.emplace_back(tlm::TLM_READ_COMMAND, address(i * 256ull), 256);
    bench.initiators[0].send(0, reads.back());
  }
  bench.queue.run_all();
  const auto& records = bench.initiators[0].records;
  EXPECT_EQ(records[0].end_request, 0u);  // TLM_UPDATED
  for (unsigned i = 1; i < 6; ++i) {
    EXPECT_GT(records[i].end_request, records[i].begun) << i;  // TLM_ACCEPTED, END_REQ later
    EXPECT_EQ(records[i].begun, records[i - 1].end_request) << i;
    EXPECT_LT(records[i].end_request, records[i].response) << i;
  }
  for (unsigned i = 0; i < 6; ++i) EXPECT_NE(records[i].response, kNever);
}

TEST(Hbm, TwoPortsShareAChannelWithoutStarving) {
  HbmConfig config = small_hbm();
  config.channels = 1;  // each slice has one pseudo channel of the same channel
  config.queue_depth = 8;
  Bench bench(config);
  std::deque<PlainPayload> reads;
  for (std::uint16_t slice = 0; slice < 2; ++slice) {
    for (unsigned i = 0; i < 200; ++i) {
      reads.emplace_back(tlm::TLM_READ_COMMAND, address(i * 256ull, slice), 256);
      bench.initiators[slice].send(0, reads.back());
    }
  }
  bench.queue.run_all();
  const Ps a = bench.initiators[0].records.back().response, b = bench.initiators[1].records.back().response;
  EXPECT_LT(std::max(a, b) - std::min(a, b), std::max(a, b) / 20);
}

TEST(Hbm, SequentialReadsAndWritesReachNineTenthsOfThePeak) {
  Bench bench;
  for (const auto command : {tlm::TLM_READ_COMMAND, tlm::TLM_WRITE_COMMAND}) {
    std::deque<PlainPayload> payloads;
    const Ps start = bench.queue.now();
    const unsigned count = 4096;  // 1 MiB
    for (unsigned i = 0; i < count; ++i) {
      payloads.emplace_back(command, address(i * 256ull), 256);
      bench.initiators[0].send(start, payloads.back());
    }
    bench.queue.run_all();
    const Ps took = bench.initiators[0].records.back().response - start - kController;
    const Ps least = Rate(2 * small_hbm().pseudo_channel_peak().bytes_per_second()).time_for(count * 256);
    EXPECT_LT(static_cast<double>(least) / static_cast<double>(took), command == tlm::TLM_READ_COMMAND ? 1.0 : 1.02);
    EXPECT_GT(static_cast<double>(least) / static_cast<double>(took), 0.9);
  }
}

/// Sequential, random and conflicting reads and writes of both slices, in one go; all response times.
std::vector<Ps> mixed_traffic(Bench& bench) {
  static std::deque<PlainPayload> payloads;
  std::uint64_t state = 1;
  for (unsigned i = 0; i < 2000; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const std::uint64_t offset = i % 3 == 0 ? i * 256ull : (state >> 20) % (16 << 20) / 32 * 32;
    const auto slice = static_cast<std::uint16_t>(state >> 60 & 1);
    payloads.emplace_back((state >> 50) % 3 == 0 ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND,
                          address(offset, slice), static_cast<unsigned>(1 + (state >> 40) % 256));
    bench.initiators[slice].send(i * 1500ull, payloads.back());
  }
  bench.queue.run_all();
  std::vector<Ps> times;
  for (const TestInitiator& initiator : bench.initiators) {
    for (const TestInitiator::Record& record : initiator.records) times.push_back(record.response);
  }
  return times;
}

/// FNV-1a, to compare runs of two processes: a TEST can elaborate once only.
std::uint64_t fingerprint(const std::vector<Ps>& times) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const Ps time : times) {
    EXPECT_NE(time, kNever);
    hash = (hash ^ time) * 0x100000001b3;
  }
  return hash;
}
constexpr std::uint64_t kMixedTraffic = 1520346868114080745;  // changes with every change of the timing model

TEST(Hbm, MixedTrafficWithData) {
  Bench bench;
  EXPECT_EQ(fingerprint(mixed_traffic(bench)), kMixedTraffic);
}

TEST(Hbm, MixedTrafficWithoutDataTakesTheSameTimes) {
  RunOptions options;
  options.data = false;
  Bench bench(small_hbm(), options);
  EXPECT_EQ(fingerprint(mixed_traffic(bench)), kMixedTraffic);
  PlainPayload read(tlm::TLM_READ_COMMAND, address(0), 32);
  EXPECT_EQ(bench.initiators[0].out->transport_dbg(read), 0u);
}

/// Collects what a model publishes.
class Collector : public Observer {
 public:
  struct Interval {
    Ps begin, end;
    std::uint64_t value;
  };
  TrackId add_track(const std::string& name, TrackKind, const std::vector<std::string>&) override {
    names.push_back(name);
    return TrackId{static_cast<std::uint32_t>(names.size() - 1)};
  }
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override {
    intervals[name(track)].push_back({begin, end, value});
  }
  void interval(TrackId, Ps, Ps, const std::string&) override { FAIL(); }
  void change(TrackId track, Ps time, std::uint64_t value) override { changes[name(track)].emplace_back(time, value); }
  void op(const OpRecord&) override { FAIL(); }
  bool wants_ops() const override { return false; }
  const std::string& name(TrackId track) const { return names[static_cast<std::size_t>(track)]; }
  std::vector<std::string> names;
  std::map<std::string, std::vector<Interval>> intervals;
  std::map<std::string, std::vector<std::pair<Ps, std::uint64_t>>> changes;
};

TEST(Hbm, MixedTrafficObservedTakesTheSameTimesAndTracksAddUp) {
  Collector collector;
  Bench bench(small_hbm(), {}, &collector);
  EXPECT_EQ(fingerprint(mixed_traffic(bench)), kMixedTraffic);
  const Hbm::Stats stats = bench.hbm.stats();
  EXPECT_EQ(collector.names.front(), "sip1.cube2.hbm.ch0.pc0.bus");
  Ps busy = 0;
  for (auto& [name, intervals] : collector.intervals) {
    std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      EXPECT_LT(intervals[i].begin, intervals[i].end) << name;
      if (i > 0) {
        EXPECT_GE(intervals[i].begin, intervals[i - 1].end) << name << " overlaps itself";
      }
      if (name.find(".bus") != std::string::npos) busy += intervals[i].end - intervals[i].begin;
    }
  }
  EXPECT_EQ(busy, stats.busy);
  const auto& levels = collector.changes.at("sip1.cube2.hbm.ch0.queue");
  EXPECT_EQ(
      std::max_element(levels.begin(), levels.end(), [](auto& a, auto& b) { return a.second < b.second; })->second > 1,
      true);
}

TEST(Hbm, TimeOfAPacketIsSplitWithoutRemainder) {
  Bench bench;
  PayloadPool pool;
  std::vector<tlm::tlm_generic_payload*> payloads;
  for (unsigned i = 0; i < 300; ++i) {
    tlm::tlm_generic_payload& payload = pool.acquire();
    payload.set_command(i % 4 == 3 ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(address(i % 7 * kNextRow + i * 256ull));
    payload.set_data_length(256);
    bench.initiators[0].send(i * 700, payload);
    payloads.push_back(&payload);
  }
  bench.queue.run_all();
  Ps waited = 0;
  for (unsigned i = 0; i < 300; ++i) {
    const Packet& packet = Packet::of(*payloads[i]);
    const auto& record = bench.initiators[0].records[i];
    EXPECT_EQ(std::accumulate(packet.spent.begin(), packet.spent.end(), Ps{0}), record.response - record.begun) << i;
    waited += packet.spent[static_cast<std::size_t>(Delay::contention)];
    payloads[i]->release();
  }
  EXPECT_GT(waited, 0u);
  EXPECT_EQ(pool.outstanding(), 0u);
}

TEST(Hbm, HoldsResponsesUntilTheOneBeforeHasEnded) {
  Bench bench;
  bench.initiators[0].answer_later = true;
  std::deque<PlainPayload> reads;
  for (unsigned i = 0; i < 20; ++i) {
    reads.emplace_back(tlm::TLM_READ_COMMAND, address(i * 32ull), 32);
    bench.initiators[0].send(0, reads.back());
  }
  bench.queue.run_all();
  EXPECT_EQ(bench.initiators[0].largest_open_responses, 1u);
  for (unsigned i = 0; i < 20; ++i) {
    EXPECT_NE(bench.initiators[0].records[i].response, kNever);
    EXPECT_EQ(reads[i].get_ref_count(), 1) << i;  // every reference of the memory is released
  }
}

TEST(Hbm, ALoneRequestCostsTwoEvents) {
  Bench bench;
  PlainPayload read(tlm::TLM_READ_COMMAND, address(0), 256);
  const std::uint64_t before = bench.queue.executed();
  bench.run(0, read);
  EXPECT_LE(bench.queue.executed() - before, 1u /* send */ + 3u);
}

/// The same reads at times far apart, in both grades, with any mapping that leads to the same places.
std::vector<Ps> idle_latencies(Grade grade, const std::string& mapping) {
  HbmConfig config = small_hbm();
  config.mapping = mapping;
  RunOptions options;
  options.fidelity.hbm = grade;
  Bench bench(config, options);
  std::vector<Ps> latencies;
  Ps time = 0;
  for (const std::uint64_t offset : {0ull, 32ull, 96ull, 1ull << 20, 3ull << 20}) {
    PlainPayload read(tlm::TLM_READ_COMMAND, address(offset), 32);
    latencies.push_back(bench.run(time, read));
    time += 2'000'000;
  }
  return latencies;
}
const std::vector<Ps> kIdle = {kClosed + kController, kClosed + kController, kClosed + kController,
                               kConflict + kController, kConflict + kController};

TEST(Hbm, IdleLatenciesAreExactInTheFastGrade) { EXPECT_EQ(idle_latencies(Grade::fast, "RoSiBaCoBg"), kIdle); }

TEST(Hbm, TheMappingMayPlaceThePseudoChannelItself) {
  // Pseudo channel below the bank group: bursts 0, 1 and 3 of a slice of two lie in three banks.
  EXPECT_EQ(idle_latencies(Grade::accurate, "RoSiBaCoBgPc"), kIdle);
}

TEST(Hbm, FastRunsOfOneRequestEndWithinARunOfTheAccurateTime) {
  RunOptions options;
  options.fidelity.hbm = Grade::fast;
  Bench bench(small_hbm(), options);
  PlainPayload a(tlm::TLM_READ_COMMAND, address(0), 256), b(tlm::TLM_READ_COMMAND, address(0), 256);
  bench.run(0, a);
  // Four bank groups with two columns each: the last run starts 3 * 2 tCCD_S after the first and takes tCCD_L.
  EXPECT_EQ(bench.run(1'000'000, b), kHit + (6 * kTiming.t_ccd_s + kTiming.t_ccd_l) * kCk + kController);
}

TEST(Hbm, ATrainBeginsToLeaveBeforeItsLastByteIsThereAndSaysWhenThatIs) {
  RunOptions options;
  options.fidelity = Fidelity::all(Grade::fast);
  Bench bench(small_hbm(), options);
  PayloadPool pool;
  const auto read = [&](Ps at, Ps lead) -> tlm::tlm_generic_payload& {
    tlm::tlm_generic_payload& payload = pool.acquire(1024);
    payload.set_command(tlm::TLM_READ_COMMAND);
    payload.set_address(address(0));
    payload.set_data_length(1024);
    Packet::of(payload).lead = lead;
    bench.run(at, payload);
    return payload;
  };
  read(0, 0);  // opens the rows
  read(1'000'000, 0);
  const Ps whole = bench.initiators[0].records[1].response - 1'000'000;
  const Packet& train = Packet::of(read(2'000'000, 3 * kCk));
  EXPECT_EQ(train.complete, 2'000'000 + whole);
  EXPECT_EQ(bench.initiators[0].records[2].response, train.complete - 3 * kCk);
  const Packet& early = Packet::of(read(3'000'000, 1'000'000));  // not before its first packet is there
  EXPECT_EQ(early.complete, 3'000'000 + whole);
  EXPECT_GE(bench.initiators[0].records[3].response, 3'000'000 + kHit + kController);
}

TEST(PayloadPool, TrainsHaveRoomForTheirDataAndGiveItBack) {
  PayloadPool pool;
  tlm::tlm_generic_payload& train = pool.acquire(kMaxTrainBytes);
  std::fill_n(train.get_data_ptr(), kMaxTrainBytes, static_cast<unsigned char>(7));
  const unsigned char* buffer = train.get_data_ptr();
  tlm::tlm_generic_payload& other = pool.acquire(kMaxTrainBytes);
  EXPECT_NE(other.get_data_ptr(), buffer);
  train.release();
  tlm::tlm_generic_payload& packet = pool.acquire();
  EXPECT_NE(packet.get_data_ptr(), buffer);  // the same payload, with its own small buffer
  EXPECT_EQ(&packet, &train);
  EXPECT_EQ(pool.acquire(kMaxPacketBytes + 1).get_data_ptr(), buffer);
}

TEST(Hbm, DrainIssuesWhatTheWriteQueueStillHolds) {
  Bench bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(0), 64);
  bench.run(0, w);
  const Ps end = bench.hbm.drain();
  EXPECT_EQ(bench.hbm.stats().writes, 2u);
  EXPECT_EQ(end, (1 + kTiming.t_rcd_wr + 1 + kTiming.t_cwl + 2 + kTiming.t_rrd_s) * kCk);
  EXPECT_EQ(bench.hbm.stats().activates(), 2u);
  EXPECT_EQ(bench.hbm.channel_stats(0).writes, 2u);
  EXPECT_EQ(bench.hbm.channel_stats(1).writes, 0u);
}

TEST(Hbm, AQueuedWriteAnswersAReadIfAsked) {
  HbmConfig config = small_hbm();
  config.forward_writes = true;
  Bench bench(config);
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(0), 32, 5), r(tlm::TLM_READ_COMMAND, address(0), 32);
  bench.initiators[0].send(0, w);
  const Ps latency = bench.run(0, r);
  EXPECT_EQ(latency, kCk + kController);  // one clock after it has come, without a command
  EXPECT_EQ(r.data, w.data);
  EXPECT_EQ(bench.hbm.stats().forwarded, 1u);
}

TEST(Hbm, RefusesConfigurationsItCannotBuild) {
  EventQueue queue;
  const auto text = [&](const HbmConfig& config, std::uint32_t slices) -> std::string {
    try {
      Hbm hbm("hbm", config, kCube, slices, {}, queue, nullptr);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(text(small_hbm(), 3), "hbm: 4 pseudo channels cannot be dealt evenly to 3 slices");
  HbmConfig config = small_hbm();
  config.mapping = "RoSiBaCoCo";
  EXPECT_EQ(text(config, 2), "hbm: mapping 'RoSiBaCoCo': name each of Ro, Si, Ba, Bg, Co once, and Pc at most once");
  config = small_hbm();
  config.stack_ids = 5;
  EXPECT_EQ(text(config, 2), "hbm: a channel has 160 banks, at most 128 are supported");
  config = small_hbm();
  config.interleave_bytes = 48;
  EXPECT_EQ(text(config, 2), "hbm: interleave of 48 B is no multiple of a burst of 32 B");
}

}  // namespace
}  // namespace kernbench
