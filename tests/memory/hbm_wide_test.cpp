#include <gtest/gtest.h>

#include <algorithm>

#include "models/hbm/wide_slice.h"
#include "tests/memory/hbm_stack.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/ext/train.h"
#include "tlm/observe/usage.h"

namespace kernbench {
namespace {

constexpr std::uint32_t kTrain = kLongestAccessBytes;

RunOptions options(Grade grade, std::uint32_t longest) {
  RunOptions options;
  options.data = false;
  options.fidelity = Fidelity::all(grade);
  options.longest = longest;
  return options;
}

/// The same stack twice: its pseudo channels one by one, burst by burst, and the slices of the second in step.
struct TwoStacks {
  explicit TwoStacks(const RunOptions& first = options(Grade::accurate, kMaxPacketBytes), Observer* observer = nullptr)
      : each("each", config(), kCube, 2, first, queue, observer),
        wide("wide", config(), kCube, 2, options(Grade::fast, kLongestTrainBytes), queue, nullptr),
        each_in("each_in", queue),
        wide_in("wide_in", queue),
        unused{{"i0", queue}, {"i1", queue}} {
    each_in.out.bind(*each.port[0]);
    wide_in.out.bind(*wide.port[0]);
    unused[0].out.bind(*each.port[1]);
    unused[1].out.bind(*wide.port[1]);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  /// Four pseudo channels a slice.
  static HbmConfig config() {
    HbmConfig config = small_hbm();
    config.channels = 4;
    config.bytes *= 2;
    config.refresh = RefreshPolicy::all_bank;
    return config;
  }
  tlm::tlm_generic_payload& payload(bool write, std::uint64_t offset, std::uint32_t bytes) {
    tlm::tlm_generic_payload& payload = pool.acquire(bytes);
    payload.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(address(offset));
    payload.set_data_length(bytes);
    return payload;
  }
  /// Sends the same train to both.
  void send(Ps at, bool write, std::uint64_t offset, std::uint32_t bytes = kTrain) {
    each_in.send(at, payload(write, offset, bytes));
    wide_in.send(at, payload(write, offset, bytes));
  }
  /// Ends of the last data, after the last train: the wide one's over the other's, less 1.
  double error() {
    queue.run_all();
    const Ps last_each = std::max(each.drain(), each_in.records.back().response);
    const Ps last_wide = std::max(wide.drain(), wide_in.records.back().response);
    return static_cast<double>(last_wide) / static_cast<double>(last_each) - 1;
  }

  PayloadPool pool;
  EventQueue queue;
  Hbm each, wide;
  TestInitiator each_in, wide_in;
  TestInitiator unused[2];
};

TEST(WideSlice, ATrainFromAnIdleSliceTakesWhatItsBurstsTake) {
  TwoStacks stacks;
  stacks.send(0, false, 0);                          // rows are closed
  stacks.send(1'000'000, false, kTrain);             // and open
  stacks.send(2'000'000, false, 0, 256);             // one pseudo channel
  stacks.send(3'000'000, false, 4 * kNextRow, 256);  // another row of a bank that is open
  stacks.queue.run_all();
  for (std::size_t i = 0; i < 4; ++i) {
    const Ps each = stacks.each_in.records[i].response, wide = stacks.wide_in.records[i].response;
    // A row is opened bank group by bank group, two pseudo channels at a time.
    EXPECT_NEAR(static_cast<double>(wide), static_cast<double>(each), 10.0 * kCk) << i;
  }
}

TEST(WideSlice, AStreamOfReadsTakesWhatItsBurstsTakeRefreshesIncluded) {
  TwoStacks stacks;
  for (unsigned i = 0; i < 512; ++i) stacks.send(0, false, std::uint64_t{i} * kTrain);
  // One by one, the first burst of a row goes out of turn, and some of the cycles around it are lost.
  const double error = stacks.error();
  EXPECT_LT(error, 0);
  EXPECT_GT(error, -0.03);
  const Hbm::Stats each = stacks.each.stats(), wide = stacks.wide.stats();
  EXPECT_GT(each.refreshes, 0U);
  EXPECT_EQ(wide.refreshes, each.refreshes);
  EXPECT_EQ(wide.bank_refreshes, each.bank_refreshes);
  EXPECT_EQ(wide.reads, each.reads);
  EXPECT_EQ(wide.bytes, each.bytes);
  EXPECT_NEAR(static_cast<double>(wide.activates), static_cast<double>(each.activates), each.activates * 0.02);
}

TEST(WideSlice, AStreamOfWritesTakesWhatItsBurstsTake) {
  TwoStacks stacks;
  for (unsigned i = 0; i < 512; ++i) stacks.send(0, true, std::uint64_t{i} * kTrain);
  EXPECT_NEAR(stacks.error(), 0, 0.01);
  EXPECT_EQ(stacks.wide.stats().writes, stacks.each.stats().writes);
}

TEST(WideSlice, BlocksOfReadsAndWritesInTurnsTakeWhatTheirBurstsTake) {
  TwoStacks stacks;
  for (unsigned i = 0; i < 512; ++i) stacks.send(0, i / 8 % 2 == 1, std::uint64_t{i} * kTrain);
  EXPECT_NEAR(stacks.error(), 0, 0.03);
}

/// Sums up what the data buses do.
class Buses : public Observer {
 public:
  TrackId add_track(const std::string& name, TrackKind, const std::vector<std::string>&) override {
    const bool bus = name.find(".bus") != std::string::npos;
    if (bus) ends_.push_back(0);
    return bus ? TrackId{static_cast<std::uint32_t>(ends_.size() - 1)} : kNoTrack;
  }
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t) override {
    Ps& before = ends_[static_cast<std::size_t>(track)];
    EXPECT_GE(begin, before) << "a bus overlaps itself";
    before = end;
    busy += end - begin;
  }
  void interval(TrackId, Ps, Ps, const std::string&) override { FAIL(); }
  void change(TrackId, Ps, std::uint64_t) override { FAIL(); }
  void op(const OpRecord&) override { FAIL(); }
  bool wants_ops() const override { return false; }
  Ps busy = 0;

 private:
  std::vector<Ps> ends_;
};

TEST(WideSlice, ObservedTakesTheSameTimesAndItsBusesAddUp) {
  Buses buses;
  TwoStacks stacks(options(Grade::fast, kLongestTrainBytes), &buses);
  for (unsigned i = 0; i < 256; ++i) {
    const std::uint32_t bytes = i % 3 == 0 ? 256 : kTrain;
    stacks.send(i * Ps{70'000}, i % 4 == 1, std::uint64_t{i * 7 % 64} * kTrain, bytes);
  }
  EXPECT_EQ(stacks.error(), 0);
  for (std::size_t i = 0; i < 256; ++i)
    EXPECT_EQ(stacks.each_in.records[i].response, stacks.wide_in.records[i].response) << i;
  EXPECT_EQ(buses.busy, stacks.each.stats().busy);
}

TEST(WideSlice, ItsUsageAddsUpToItsChannels) {
  TwoStacks stacks;
  UsageBook book(64);
  Usage* const usage = book.add(stacks.wide.pseudo_channels_of_usage());
  stacks.wide.observe_usage(0, usage);
  for (unsigned i = 0; i < 32; ++i) stacks.send(0, i % 4 == 1, std::uint64_t{i} * kTrain);
  stacks.error();
  Hbm::Stats slice;
  const unsigned channels = TwoStacks::config().channels / stacks.wide.usages();
  for (unsigned i = 0; i < channels; ++i) {
    const Hbm::Stats one = stacks.wide.channel_stats(i);
    slice.reads += one.reads;
    slice.writes += one.writes;
    slice.bytes += one.bytes;
    slice.busy += one.busy;
  }
  EXPECT_EQ(slice.bytes, 32U * kTrain);
  EXPECT_EQ(usage->sum().messages, slice.reads + slice.writes);
  EXPECT_EQ(usage->sum().bytes, slice.bytes);
  EXPECT_EQ(usage->sum().busy, slice.busy);
}

TEST(WideSlice, LooselyTimedAgreesWithApproximatelyTimedWhenIdle) {
  TwoStacks stacks(options(Grade::fast, kLongestTrainBytes));
  for (const std::uint32_t bytes : {256U, kTrain, 8 * kTrain}) {
    const Ps start = stacks.queue.now() + 10'000'000;
    sc_core::sc_time delay = annotation(start);
    stacks.each_in.out->b_transport(stacks.payload(false, 0, bytes), delay);
    const Ps loose = instant(delay);
    const std::size_t id = stacks.wide_in.send(start, stacks.payload(false, 0, bytes));
    stacks.queue.run_all();
    EXPECT_EQ(loose, stacks.wide_in.records[id].response) << bytes;
  }
}

TEST(WideSlice, OtherMappingsAndSharedChannelsAreServedEachForItself) {
  HbmConfig config = TwoStacks::config();
  EXPECT_TRUE(WideSlice::possible(config, 4));
  EXPECT_FALSE(WideSlice::possible(config, 1)) << "half a channel";
  config.mapping = "RoBaBgSiCo";
  EXPECT_FALSE(WideSlice::possible(config, 4));
  config = TwoStacks::config();
  config.refresh = RefreshPolicy::per_bank;
  EXPECT_FALSE(WideSlice::possible(config, 4));
  config = TwoStacks::config();
  config.queue_depth = static_cast<std::uint32_t>(2 * config.interleave_bytes / config.burst_bytes);
  EXPECT_TRUE(WideSlice::possible(config, 4));
  --config.queue_depth;
  EXPECT_FALSE(WideSlice::possible(config, 4)) << "less than two units: what is full holds up the others";
}

/// tCCD_S and the shared command bus, one column command a cycle, limit a pseudo channel as its data bus does.
TEST(HbmConfig, PeaksAreOfTheSlowestOfDataBusAndCommands) {
  HbmConfig config;
  config.ck_hz = 1'600'000'000;
  config.burst_bytes = 32;
  config.burst_ck = 2;
  config.timing.t_ccd_s = 2;
  config.pseudo_channels = 2;
  EXPECT_EQ(config.pseudo_channel_peak().bytes_per_second(), 25'600'000'000);
  config.burst_ck = 1;
  EXPECT_EQ(config.pseudo_channel_peak().bytes_per_second(), 25'600'000'000) << "tCCD_S";
  config.timing.t_ccd_s = 8;
  EXPECT_EQ(config.pseudo_channel_peak().bytes_per_second(), 6'400'000'000);
  config.timing.t_ccd_s = 2;
  config.pseudo_channels = 4;
  EXPECT_EQ(config.pseudo_channel_peak().bytes_per_second(), 12'800'000'000) << "four share the command bus";
}

}  // namespace
}  // namespace kernbench
