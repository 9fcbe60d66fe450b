// Traffic of both slices, what is published of it, and the fast grade.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "tests/memory/hbm_stack.h"
#include "tlm/ext/packet.h"
#include "tlm/ext/payload_pool.h"

namespace kernbench {
namespace {

/// Sequential, random and conflicting reads and writes of both slices, in one go; all response times.
std::vector<Ps> mixed_traffic(HbmStack& bench) {
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
  HbmStack bench;
  EXPECT_EQ(fingerprint(mixed_traffic(bench)), kMixedTraffic);
}

TEST(Hbm, MixedTrafficWithoutDataTakesTheSameTimes) {
  RunOptions options;
  options.data = false;
  HbmStack bench(small_hbm(), options);
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
  HbmStack bench(small_hbm(), {}, &collector);
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
  HbmStack bench;
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
  HbmStack bench;
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
  HbmStack bench;
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
  HbmStack bench(config, options);
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
  HbmStack bench(small_hbm(), options);
  PlainPayload a(tlm::TLM_READ_COMMAND, address(0), 256), b(tlm::TLM_READ_COMMAND, address(0), 256);
  bench.run(0, a);
  // Four bank groups with two columns each: the last run starts 3 * 2 tCCD_S after the first and takes tCCD_L.
  EXPECT_EQ(bench.run(1'000'000, b), kHit + (6 * kTiming.t_ccd_s + kTiming.t_ccd_l) * kCk + kController);
}

TEST(Hbm, ATrainBeginsToLeaveBeforeItsLastByteIsThereAndSaysWhenThatIs) {
  RunOptions options;
  options.fidelity = Fidelity::all(Grade::fast);
  HbmStack bench(small_hbm(), options);
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

TEST(Hbm, RowsOfATrainAreOpenedBesideTheDataOfTheOneBefore) {
  RunOptions options;
  options.longest = kMaxTrainBytes;
  options.fidelity = Fidelity::all(Grade::fast);
  HbmStack bench(small_hbm(), options);
  PayloadPool pool;
  constexpr unsigned kTrains = 256;
  std::vector<tlm::tlm_generic_payload*> trains;
  for (unsigned i = 0; i < kTrains; ++i) {
    tlm::tlm_generic_payload& payload = pool.acquire(kMaxTrainBytes);
    payload.set_command(tlm::TLM_READ_COMMAND);
    payload.set_address(address(std::uint64_t{i} * kMaxTrainBytes));
    payload.set_data_length(kMaxTrainBytes);
    Packet::of(payload).lead = 1'000'000;  // each leaves with its first packet
    trains.push_back(&payload);
    bench.initiators[0].send(0, payload);
  }
  bench.queue.run_all();
  Ps end = 0;
  for (tlm::tlm_generic_payload* train : trains) end = std::max(end, Packet::of(*train).complete);
  const Rate peak(2 * small_hbm().pseudo_channel_peak().bytes_per_second());
  EXPECT_GT(static_cast<double>(peak.time_for(kTrains * kMaxTrainBytes)) / static_cast<double>(end), 0.9);
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

}  // namespace
}  // namespace kernbench
