#include "models/hbm/channel_timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/memory/hbm_presets.h"
#include "tlm/sim/random.h"

namespace kernbench {
namespace {

struct Device {
  const char* name;
  HbmConfig config;
  std::uint32_t rows;
};
const Device& device(const std::string& name) {
  static const Device devices[] = {{"HBM2_1600", hbm2_1600(), 65536},
                                   {"HBM2_2000", hbm2_2000(), 65536},
                                   {"HBM3_6400", hbm3_6400(), 16384},
                                   {"HBM3_6400_1sid", hbm3_6400_1sid(), 16384}};
  for (const Device& d : devices) {
    if (name == d.name) return d;
  }
  throw std::invalid_argument(name);
}

/// One burst at a time: the tick at which its data have arrived.
class Single {
 public:
  explicit Single(const HbmConfig& config) : made_(ChannelTiming::make(config, 32)) {}
  ChannelTiming::Decided run(Tick now, BurstPlace place, bool write = false) {
    channel_.advance(now);
    channel_.accept(now, place, write, 0);
    while (channel_.decided().empty()) channel_.advance(channel_.next());
    const ChannelTiming::Decided decided = channel_.decided().front();
    channel_.decided().clear();
    return decided;
  }
  /// Latency in CK of a read accepted at `now`, a rising edge.
  Tick read(Tick now, BurstPlace place) { return (run(now, place).end - now) / channel_.gaps().m; }

 private:
  const std::unique_ptr<ChannelTiming> made_;
  ChannelTiming& channel_ = *made_;
};

BurstPlace at(std::uint32_t bank_group, std::uint32_t bank, std::uint32_t row, std::uint32_t pseudo_channel = 0,
              std::uint32_t stack = 0) {
  return {pseudo_channel, stack, bank_group, bank, row};
}

class EveryDevice : public ::testing::TestWithParam<const char*> {
 protected:
  const HbmConfig& config() const { return device(GetParam()).config; }
};
INSTANTIATE_TEST_SUITE_P(Hbm, EveryDevice, ::testing::Values("HBM2_1600", "HBM2_2000", "HBM3_6400", "HBM3_6400_1sid"),
                         [](const auto& info) { return std::string(info.param); });

// Closed forms: bench/reference/hbm/latency_single.csv.
TEST_P(EveryDevice, IdleLatencyIsTheClosedForm) {
  const HbmTiming& t = config().timing;
  const Tick burst = config().burst_ck;
  Single channel(config());
  EXPECT_EQ(channel.read(1, at(0, 0, 5)), 1 + (t.t_rcd_rd + 1) + t.t_cl + burst);
  EXPECT_EQ(channel.read(401, at(0, 0, 5)), 1 + t.t_cl + burst);
  EXPECT_EQ(channel.read(801, at(0, 0, 6)), 1 + (t.t_rp - 1) + (t.t_rcd_rd + 1) + t.t_cl + burst);
  EXPECT_EQ(channel.read(1201, at(1, 0, 6)), 1 + (t.t_rcd_rd + 1) + t.t_cl + burst);
}

TEST_P(EveryDevice, BackToBackConflictsWaitForTrc) {
  const HbmTiming& t = config().timing;
  const Tick burst = config().burst_ck;
  Single channel(config());
  const Tick isolated = 1 + (t.t_rp - 1) + (t.t_rcd_rd + 1) + t.t_cl + burst;
  Tick now = 1;
  for (std::uint32_t row = 0; row < 10; ++row) {
    const Tick latency = channel.read(now, at(0, 0, row));
    if (row > 0) {
      EXPECT_EQ(latency, std::max<Tick>({isolated, t.t_rc, t.t_ras + t.t_rp})) << row;
    }
    now += latency * (config().half_clock_commands ? 2 : 1);
  }
}

TEST_P(EveryDevice, ReadAfterWriteWaitsForTheTurnaround) {
  const HbmTiming& t = config().timing;
  const Tick m = config().half_clock_commands ? 2 : 1, burst = config().burst_ck;
  for (const bool same_group : {true, false}) {
    const auto made = ChannelTiming::make(config(), 32);
    ChannelTiming& channel = *made;
    const BurstPlace written = at(0, 0, 1), read = at(same_group ? 0 : 1, 1, 1);
    channel.accept(1, written, false, 0);
    channel.accept(1, read, false, 0);
    channel.advance(1001);
    channel.decided().clear();
    channel.accept(1001, written, true, 1);
    channel.advance(1002 + m);
    channel.accept(1002 + m, read, false, 2);
    channel.advance(2001);
    ASSERT_EQ(channel.decided().size(), 2u);
    const Tick wtr = same_group ? t.t_wtr_l : t.t_wtr_s;
    EXPECT_EQ(channel.decided()[1].end - channel.decided()[0].command, m * (t.t_cwl + burst + wtr + t.t_cl + burst));
  }
}

/// Checks every pair of commands against the JEDEC rules, written down here a second time.
class RuleChecker : public CommandListener {
 public:
  explicit RuleChecker(const HbmConfig& config) : c_(config), g_(config) {}
  struct Event {
    DramCommand command;
    BurstPlace place;
    Tick at;
  };
  void command(DramCommand command, const BurstPlace& place, Tick at, unsigned bursts) override {
    ASSERT_EQ(bursts, 1u);
    events.push_back({command, place, at});
  }
  void queued(unsigned bursts, Tick) override { largest_queue = std::max(largest_queue, bursts); }

  static bool is_column(DramCommand c) { return c == DramCommand::read || c == DramCommand::write; }
  Tick length(DramCommand c) const {
    return is_column(c) ? g_.m : c == DramCommand::activate ? (c_.half_clock_commands ? 3 : 2) : 1;
  }
  /// JEDEC minimum from a to b in CK; 0: none.
  Tick minimum(const Event& a, const Event& b) const {
    const HbmTiming& t = c_.timing;
    const bool pc = a.place.pseudo_channel == b.place.pseudo_channel, sid = pc && a.place.stack_id == b.place.stack_id;
    const bool group = sid && a.place.bank_group == b.place.bank_group, bank = group && a.place.bank == b.place.bank;
    const Tick burst = c_.burst_ck;
    if (!pc) return 0;
    using C = DramCommand;
    const auto is = [&](C x, C y) { return a.command == x && b.command == y; };
    Tick gap = 0;
    const auto rule = [&](bool holds, Tick t) { gap = holds ? std::max(gap, t) : gap; };
    if (is(C::activate, C::activate)) rule(bank, t.t_rc), rule(group, t.t_rrd_l), rule(true, t.t_rrd_s);
    if (is(C::activate, C::read)) rule(bank, t.t_rcd_rd);
    if (is(C::activate, C::write)) rule(bank, t.t_rcd_wr);
    if (is(C::activate, C::precharge)) rule(bank, t.t_ras);
    if (is(C::activate, C::precharge_all)) rule(true, t.t_ras);
    if (is(C::read, C::precharge)) rule(bank, t.t_rtp);
    if (is(C::read, C::precharge_all)) rule(true, t.t_rtp);
    if (is(C::write, C::precharge)) rule(bank, t.t_cwl + burst + t.t_wr);
    if (is(C::write, C::precharge_all)) rule(true, t.t_cwl + burst + t.t_wr);
    if (is(C::precharge, C::activate)) rule(bank, t.t_rp);
    if (is(C::precharge_all, C::activate) || is(C::precharge, C::refresh_all) || is(C::precharge_all, C::refresh_all))
      rule(true, t.t_rp);
    if (is(C::precharge, C::precharge)) rule(true, t.t_ppd);
    if (is(C::read, C::read))
      rule(true, std::max<Tick>(burst, t.t_ccd_s)), rule(group, t.t_ccd_l), rule(!sid, t.t_ccd_r);
    if (is(C::write, C::write)) rule(true, std::max<Tick>(burst, t.t_ccd_s)), rule(group, t.t_ccd_l);
    if (is(C::read, C::write)) rule(true, t.t_rtw);
    if (is(C::write, C::read)) rule(true, t.t_cwl + burst + t.t_wtr_s), rule(group, t.t_cwl + burst + t.t_wtr_l);
    if (is(C::refresh_all, C::activate)) rule(true, t.t_rfc_ab);
    if (is(C::refresh_bank, C::activate)) rule(bank, t.t_rfc_pb), rule(true, t.t_rrefd);
    return gap;
  }
  /// Number of checked pairs; every violation is a test failure. `reached`: rules met with equality.
  std::size_t check() {
    std::size_t pairs = 0;
    std::map<std::uint32_t, std::vector<Tick>> activates;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Event& b = events[i];
      const bool odd_only =
          c_.half_clock_commands && b.command != DramCommand::precharge && b.command != DramCommand::precharge_all;
      EXPECT_TRUE(!odd_only || b.at % 2 == 1) << "command " << i << " off the rising edge";
      for (std::size_t j = i; j-- > 0 && events[j].at + 1500 > b.at;) {
        const Event& a = events[j];
        const Tick gap = minimum(a, b);
        if (gap != 0) {
          ++pairs;
          EXPECT_GE(b.at + length(b.command), a.at + g_.m * gap + length(a.command))
              << "commands " << j << " and " << i << ", kinds " << static_cast<int>(a.command) << " "
              << static_cast<int>(b.command);
        }
        if (is_column(a.command) == is_column(b.command)) {
          EXPECT_GE(b.at, a.at + length(a.command)) << "bus at command " << i;
        }
      }
      if (b.command == DramCommand::activate) {
        std::vector<Tick>& seen = activates[b.place.pseudo_channel];
        if (seen.size() >= 4) {
          EXPECT_GE(b.at, seen[seen.size() - 4] + g_.m * c_.timing.t_faw) << "tFAW at command " << i;
        }
        seen.push_back(b.at);
      }
    }
    return pairs;
  }
  std::vector<Event> events;
  unsigned largest_queue = 0;

 private:
  const HbmConfig c_;
  const ChannelGaps g_;
};

struct Traffic {
  std::function<BurstPlace(std::uint64_t)> place;
  std::function<bool(std::uint64_t)> is_write = [](std::uint64_t) { return false; };
};
/// Offers bursts in order, as fast as they are taken; returns the tick of the last data.
Tick saturate(ChannelTiming& channel, std::uint64_t bursts, const Traffic& traffic) {
  Tick now = 0, last = 0;
  std::uint64_t offered = 0, done = 0;
  while (done < bursts) {
    while (offered < bursts && channel.room(traffic.is_write(offered)) > 0) {
      channel.accept(now, traffic.place(offered), traffic.is_write(offered), 0);
      ++offered;
    }
    channel.advance(now = channel.next());
    for (const ChannelTiming::Decided& burst : channel.decided()) last = std::max(last, burst.end), ++done;
    channel.decided().clear();
  }
  return last;
}

std::uint64_t mix(std::uint64_t i) {  // bench/reference/hbm/README.md: smix(1, i)
  return splitmix64(1 + i * kSplitmixStep);
}

/// Mapping B: Ro [Si] Ba Co Bg [Pc].
BurstPlace mapping_b(std::uint64_t burst, const Device& d, unsigned pseudo_channels) {
  const auto take = [&burst](std::uint64_t n) {
    const auto value = static_cast<std::uint32_t>(burst % n);
    burst /= n;
    return value;
  };
  BurstPlace place;
  place.pseudo_channel = take(pseudo_channels);
  place.bank_group = take(4);
  take(32);
  place.bank = take(4);
  place.stack_id = take(d.config.stack_ids);
  place.row = take(d.rows);
  return place;
}
std::uint64_t bursts_of(const Device& d, unsigned pseudo_channels) {
  return std::uint64_t{d.rows} * 16 * d.config.stack_ids * 32 * pseudo_channels;
}

/// A few rows and banks, so that hits, misses and conflicts, both directions and all gates occur.
void expect_rules_hold(const HbmConfig& config) {
  constexpr std::uint64_t kBursts = 2500;
  const auto made = ChannelTiming::make(config, 32);
  ChannelTiming& channel = *made;
  RuleChecker checker(config);
  channel.set_listener(&checker);
  std::mt19937_64 random(9);
  std::vector<BurstPlace> places;
  std::vector<bool> writes;
  for (std::uint64_t i = 0; i < kBursts; ++i) {
    places.push_back({static_cast<std::uint32_t>(random() % 2), static_cast<std::uint32_t>(random() % config.stack_ids),
                      static_cast<std::uint32_t>(random() % 4), static_cast<std::uint32_t>(random() % 2),
                      static_cast<std::uint32_t>(random() % 3)});
    writes.push_back(i / 200 % 3 == 1 || random() % 5 == 0);
  }
  saturate(channel, kBursts,
           {[&](std::uint64_t i) { return places[i]; }, [&](std::uint64_t i) { return bool(writes[i]); }});
  EXPECT_GT(checker.check(), 50'000u);
  EXPECT_LE(checker.largest_queue, 64u);
  const ChannelTiming::Stats& s = channel.stats();
  EXPECT_EQ(s.row_hits + s.row_closed + s.row_conflicts, kBursts);
  EXPECT_GE(s.activates, s.row_closed + s.row_conflicts);
  EXPECT_EQ(s.reads + s.writes, kBursts);
  if (config.refresh != RefreshPolicy::none) {
    EXPECT_GT(s.refreshes, 5u);
  }
}

TEST_P(EveryDevice, NoCommandBreaksATimingRule) {
  for (const std::string& scheduler : hbm_scheduler_names()) {
    for (const RefreshPolicy refresh : {RefreshPolicy::none, RefreshPolicy::all_bank, RefreshPolicy::per_bank}) {
      for (const PagePolicy page : {PagePolicy::open, PagePolicy::closed}) {
        SCOPED_TRACE(scheduler + " " + std::to_string(static_cast<int>(refresh)));
        HbmConfig config = device(GetParam()).config;
        config.scheduler = hbm_scheduler(scheduler);
        config.refresh = refresh;
        config.page_policy = page;
        if (refresh == RefreshPolicy::all_bank) config.timing.t_refi /= 3;  // often
        expect_rules_hold(config);
      }
    }
  }
}

TEST(ChannelTiming, RefusesRefreshThatLeavesNoTime) {
  HbmConfig config = hbm3_6400();
  config.refresh = RefreshPolicy::all_bank;
  config.timing.t_refi = 632;
  EXPECT_THROW(ChannelTiming::make(config, 32), std::invalid_argument);
  config.timing.t_refi = 633;
  EXPECT_NO_THROW(ChannelTiming::make(config, 32));
  config.timing.t_refi = 0;
  EXPECT_THROW(ChannelTiming::make(config, 32), std::invalid_argument);
}

TEST_P(EveryDevice, SequentialReadsReachThePeak) {
  const Device& d = device(GetParam());
  for (const unsigned pseudo_channels : {1u, 2u}) {
    const auto made = ChannelTiming::make(d.config, 32 * pseudo_channels);
    ChannelTiming& channel = *made;
    const std::uint64_t bursts = 20'000;
    const Tick last = saturate(channel, bursts, {[&](std::uint64_t i) { return mapping_b(i, d, pseudo_channels); }});
    const double peak = static_cast<double>(bursts * channel.gaps().burst) / pseudo_channels;
    EXPECT_GT(peak / static_cast<double>(last), 0.99);
  }
}

TEST_P(EveryDevice, RefreshCostsItsShareOfTheTime) {
  const Device& d = device(GetParam());
  HbmConfig config = d.config;
  config.refresh = RefreshPolicy::all_bank;
  const auto made = ChannelTiming::make(config, 32);
  ChannelTiming& channel = *made;
  const std::uint64_t bursts = 100'000;
  const Tick last = saturate(channel, bursts, {[&](std::uint64_t i) { return mapping_b(i, d, 1); }});
  const double share = static_cast<double>(bursts * channel.gaps().burst) / static_cast<double>(last);
  const HbmTiming& t = config.timing;
  // Both pseudo channels are refreshed one after the other while nothing else is started: tRFC, and the gaps around it.
  EXPECT_NEAR(share, 1 - static_cast<double>(t.t_rfc_ab) / t.t_refi, 0.035);
  EXPECT_LT(share, 1 - static_cast<double>(t.t_rfc_ab) / t.t_refi);
  EXPECT_EQ(channel.stats().refreshes, 2 * (last / (channel.gaps().m * t.t_refi)));
}

TEST_P(EveryDevice, TimeInOneStepIsTimeInManySteps) {
  const Device& d = device(GetParam());
  HbmConfig config = d.config;
  config.refresh = RefreshPolicy::all_bank;
  const auto made_lazy = ChannelTiming::make(config, 32), made_eager = ChannelTiming::make(config, 32);
  ChannelTiming &lazy = *made_lazy, &eager = *made_eager;
  std::mt19937_64 random(4);
  Tick now = 1;
  for (int i = 0; i < 3000; ++i) {
    now += random() % 40 + (i % 500 == 0 ? 50'000 : 0);
    for (Tick t = now < 60 ? 0 : now - 60; t <= now; ++t) eager.advance(t);
    lazy.advance(now);
    const BurstPlace place = mapping_b(mix(random() % 300) % bursts_of(d, 2), d, 2);
    const bool write = random() % 3 == 0;
    if (lazy.room(write) == 0) continue;
    ASSERT_GT(eager.room(write), 0u);
    lazy.accept(now, place, write, static_cast<std::uint32_t>(i));
    eager.accept(now, place, write, static_cast<std::uint32_t>(i));
  }
  lazy.advance(now + 100'000);
  for (Tick t = now; t <= now + 100'000; ++t) eager.advance(t);
  ASSERT_EQ(lazy.decided().size(), eager.decided().size());
  for (std::size_t i = 0; i < lazy.decided().size(); ++i) {
    ASSERT_EQ(lazy.decided()[i].tag, eager.decided()[i].tag);
    ASSERT_EQ(lazy.decided()[i].end, eager.decided()[i].end);
  }
  EXPECT_EQ(lazy.stats().refreshes, eager.stats().refreshes);
}

// Clock counts of Ramulator 2.1; bench/reference/hbm/bandwidth.csv, column case_id.
struct Reference {
  const char* id;
  const char* device;
  unsigned pseudo_channels;
  const char* pattern;
  unsigned reads, writes, queue;
  std::uint64_t bursts;
  double clocks;
};
const Reference kReference[] = {
    {"S002", "HBM2_2000", 1, "seq", 1, 0, 32, 50'000, 100'032},
    {"S005", "HBM2_2000", 1, "seq", 0, 1, 32, 50'000, 100'021},
    {"S008", "HBM2_2000", 1, "seq", 2, 1, 32, 50'000, 119'150},
    {"S010", "HBM2_2000", 1, "rand", 1, 0, 32, 50'000, 202'118},
    {"S013", "HBM2_2000", 1, "rand", 0, 1, 32, 50'000, 207'136},
    {"S014", "HBM2_2000", 1, "rand", 2, 1, 32, 50'000, 222'659},
    {"S019", "HBM2_2000", 1, "stride_128", 1, 0, 32, 50'000, 200'028},
    {"S082", "HBM3_6400", 1, "seq", 1, 0, 32, 50'000, 100'151.5},
    {"S085", "HBM3_6400", 1, "seq", 0, 1, 32, 50'000, 100'028.5},
    {"S088", "HBM3_6400", 1, "seq", 2, 1, 32, 50'000, 130'763.5},
    {"S090", "HBM3_6400", 1, "rand", 1, 0, 32, 50'000, 300'114.5},
    {"S093", "HBM3_6400", 1, "rand", 0, 1, 32, 50'000, 300'295.5},
    {"S094", "HBM3_6400", 1, "rand", 2, 1, 32, 50'000, 310'417.5},
    {"S099", "HBM3_6400", 1, "stride_128", 1, 0, 32, 50'000, 186'388.5},
    {"S105", "HBM3_6400", 2, "seq", 1, 0, 32, 50'000, 55'536.5},
    {"S111", "HBM3_6400", 2, "seq", 2, 1, 32, 50'000, 80'075.5},
    {"S113", "HBM3_6400", 2, "rand", 1, 0, 32, 50'000, 155'493.5},
    {"S117", "HBM3_6400", 2, "rand", 2, 1, 32, 50'000, 169'352.5},
    {"S122", "HBM3_6400", 2, "stride_128", 1, 0, 32, 50'000, 100'249.5},
    {"S136", "HBM3_6400", 2, "rand", 1, 0, 8, 50'000, 244'438.5},
    {"S140", "HBM3_6400", 2, "seq", 1, 0, 64, 50'000, 50'104.5},
};
class RamulatorCase : public ::testing::TestWithParam<Reference> {};
INSTANTIATE_TEST_SUITE_P(Hbm, RamulatorCase, ::testing::ValuesIn(kReference),
                         [](const auto& info) { return std::string(info.param.id); });

TEST_P(RamulatorCase, TakesTheSameNumberOfClocks) {
  const Reference r = GetParam();
  const Device& d = device(r.device);
  const std::uint64_t total = bursts_of(d, r.pseudo_channels);
  const auto made = ChannelTiming::make(d.config, r.queue);
  ChannelTiming& channel = *made;
  const std::string pattern = r.pattern;
  const auto burst = [&](std::uint64_t i) {
    if (pattern == "seq") return i;
    if (pattern == "rand") return mix(i) % total;
    const std::uint64_t stride = std::stoull(pattern.substr(7)) / 32;
    return (i * stride + i * stride / total) % total;
  };
  const Tick last = saturate(channel, r.bursts,
                             {[&](std::uint64_t i) { return mapping_b(burst(i), d, r.pseudo_channels); },
                              [&](std::uint64_t i) { return i % (r.reads + r.writes) >= r.reads; }});
  EXPECT_NEAR(static_cast<double>(last) / static_cast<double>(channel.gaps().m), r.clocks, 1.0);
}

}  // namespace
}  // namespace kernbench
