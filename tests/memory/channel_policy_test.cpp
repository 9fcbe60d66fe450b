#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <typeinfo>
#include <vector>

#include "models/hbm/channel_timing.h"
#include "sc_main/rigs/stream_pattern.h"
#include "tests/memory/hbm_presets.h"

namespace kernbench {
namespace {

using Decided = ChannelTiming::Decided;

BurstPlace at(std::uint32_t group, std::uint32_t bank, std::uint32_t row, std::uint32_t column = 0,
              std::uint32_t pseudo_channel = 0) {
  return {pseudo_channel, 0, group, bank, row, column};
}
HbmConfig with(HbmConfig config, const std::function<void(HbmConfig&)>& change) {
  change(config);
  return config;
}
HbmConfig shared() {
  return with(hbm2_2000(), [](HbmConfig& c) { c.scheduler = hbm_scheduler("shared"); });
}
HbmConfig fast(HbmConfig config) {
  config.grain = 4;
  return config;
}

/// Takes decisions until nothing waits; what was decided, in order of commands.
std::vector<Decided> finish(ChannelTiming& channel) {
  while (!channel.idle()) channel.advance(channel.next());
  return channel.decided();
}

TEST(ChannelGrain, ARunLeavesOneColumnPerTccdL) {
  const HbmConfig config = fast(hbm2_2000());
  const HbmTiming& t = config.timing;
  const auto made = ChannelTiming::make(config, 32);
  ChannelTiming& channel = *made;
  channel.accept(1, at(0, 0, 5), false, 0);
  channel.advance(400);  // the row is open
  channel.decided().clear();
  channel.accept(400, at(0, 0, 5), false, 1, 4);
  const std::vector<Decided> decided = finish(channel);
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].count, 4u);
  EXPECT_EQ(decided[0].command, 401u);
  EXPECT_EQ(decided[0].end, 401 + 3 * t.t_ccd_l + t.t_cl + config.burst_ck);
  EXPECT_EQ(channel.last_data(), decided[0].end);
}

TEST(ChannelGrain, IdleLatenciesOfSingleBurstsAreThoseOfTheAccurateGrade) {
  for (const HbmConfig& config : {hbm2_1600(), hbm2_2000(), hbm3_6400(), hbm3_6400_1sid()}) {
    std::vector<Tick> ends[2];
    for (const bool is_fast : {false, true}) {
      const auto made = ChannelTiming::make(is_fast ? fast(config) : config, 32);
      ChannelTiming& channel = *made;
      Tick now = 1;
      for (const BurstPlace& place : {at(0, 0, 5), at(0, 0, 5), at(0, 0, 6), at(1, 0, 6)}) {
        channel.advance(now);
        channel.accept(now, place, false, 0);
        ends[is_fast].push_back(finish(channel).back().end);
        now += 1000;
      }
    }
    EXPECT_EQ(ends[0], ends[1]);
  }
}

TEST(ChannelGrain, TheOpenerOfARunGoesAlone) {
  const auto made = ChannelTiming::make(fast(hbm2_2000()), 32);
  ChannelTiming& channel = *made;
  channel.accept(1, at(0, 0, 5), false, 7, 4);
  const std::vector<Decided> decided = finish(channel);
  ASSERT_EQ(decided.size(), 2u);
  EXPECT_EQ(decided[0].count, 1u);
  EXPECT_TRUE(decided[0].opened);
  EXPECT_EQ(decided[1].count, 3u);
  EXPECT_FALSE(decided[1].opened);
  EXPECT_EQ(channel.stats().row_closed, 1u);
  EXPECT_EQ(channel.stats().row_hits, 3u);
}

TEST(ChannelGrain, BurstsOfSeveralRequestsShareARunAndAreToldApart) {
  const auto made = ChannelTiming::make(fast(hbm2_2000()), 32);
  ChannelTiming& channel = *made;
  channel.accept(1, at(0, 0, 5), false, 0);
  channel.advance(400);
  channel.decided().clear();
  channel.accept(400, at(0, 0, 5), false, 1, 2);
  channel.accept(400, at(0, 0, 5), false, 2, 3);  // two of them fill the run, the third starts another
  const std::vector<Decided> decided = finish(channel);
  ASSERT_EQ(decided.size(), 3u);
  EXPECT_EQ(decided[0].tag, 1u);
  EXPECT_EQ(decided[0].count, 2u);
  EXPECT_EQ(decided[1].tag, 2u);
  EXPECT_EQ(decided[1].count, 2u);
  EXPECT_EQ(decided[1].command, decided[0].command);
  EXPECT_EQ(decided[2].tag, 2u);
  EXPECT_EQ(decided[2].count, 1u);
}

TEST(ChannelGrain, QueuesCountBursts) {
  const auto made = ChannelTiming::make(fast(hbm2_2000()), 8);
  ChannelTiming& channel = *made;
  channel.accept(1, at(0, 0, 5), false, 0, 3);
  EXPECT_EQ(channel.room(false), 5u);
  EXPECT_EQ(channel.room(true), 8u);
}

TEST(ChannelGrain, OnlyOneToFour) {
  HbmConfig config = hbm2_2000();
  config.grain = 5;
  EXPECT_THROW(ChannelTiming::make(config, 8), std::invalid_argument);
  config.grain = 0;
  EXPECT_THROW(ChannelTiming::make(config, 8), std::invalid_argument);
}

TEST(ChannelShared, ReadsAndWritesShareTheQueueAndABurstKeepsItsPlaceUntilItsColumnCommand) {
  const auto made = ChannelTiming::make(shared(), 4);
  ChannelTiming& channel = *made;
  channel.accept(1, at(0, 0, 5), false, 0);
  channel.accept(1, at(1, 0, 5), true, 1);
  EXPECT_EQ(channel.room(false), 2u);
  EXPECT_EQ(channel.room(true), 2u);
  channel.advance(5);  // both banks are activated, tRRD apart
  EXPECT_EQ(channel.room(false), 2u);
}

TEST(ChannelShared, AWaitingHitKeepsItsRowOpenAgainstAnOlderMiss) {
  const auto made = ChannelTiming::make(shared(), 32);
  ChannelTiming& channel = *made;
  channel.accept(1, at(0, 0, 5), false, 0);
  channel.advance(400);
  channel.decided().clear();
  channel.accept(400, at(0, 0, 6), false, 1);  // a miss
  for (std::uint32_t i = 0; i < 4; ++i) channel.accept(400, at(0, 0, 5), i % 2 == 1, 2 + i);
  const std::vector<Decided> decided = finish(channel);
  ASSERT_EQ(decided.size(), 5u);
  EXPECT_EQ(decided.back().tag, 1u);
  // Hits of one bank leave in order of age, whatever their direction.
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(decided[i].tag, 2 + i);
}

TEST(ChannelShared, OfTwoRowCommandsTheOneThatEndsFirstGoesFirst) {
  const auto made = ChannelTiming::make(shared(), 32);
  ChannelTiming& channel = *made;
  channel.accept(1, at(0, 0, 5), false, 0);
  channel.advance(400);
  channel.decided().clear();
  channel.accept(400, at(1, 0, 1), false, 1);  // ACT: two clocks of the row bus
  channel.accept(400, at(0, 0, 6), false, 2);  // PRE: one
  const std::vector<Decided> decided = finish(channel);
  const HbmTiming& t = shared().timing;
  const auto of = [&](std::uint32_t tag) {
    return std::find_if(decided.begin(), decided.end(), [&](const Decided& d) { return d.tag == tag; })->command;
  };
  EXPECT_EQ(of(1), 402 + t.t_rcd_rd + 1);                 // one clock after the PRE
  EXPECT_EQ(of(2), 401 + (t.t_rp - 1) + t.t_rcd_rd + 1);  // PRE at once
}

TEST(ChannelShared, WhatWaitedBeforeAFullQueueIsSeenInTheTickOfItsPlace) {
  const auto made = ChannelTiming::make(shared(), 1);
  ChannelTiming& channel = *made;
  channel.accept(1, at(0, 0, 5), false, 0);
  while (channel.decided().empty()) channel.advance(channel.next());
  const Tick column = channel.decided()[0].command;
  EXPECT_TRUE(channel.tick_open(column));
  channel.accept(column, at(1, 0, 5), false, 1, 1, true);
  finish(channel);
  EXPECT_EQ(channel.decided()[1].command, column + shared().timing.t_rcd_rd + 1);  // ACT in the same tick
}

TEST(ChannelShared, RefreshStopsItsOwnPseudoChannelOnly) {
  HbmConfig config = shared();
  config.refresh = RefreshPolicy::all_bank;
  const auto made = ChannelTiming::make(config, 64);
  ChannelTiming& channel = *made;
  // Pseudo channel 1 is refreshed at tREFI / 2 for tRFC: reads of pseudo channel 0 go on then.
  const Tick refresh = config.timing.t_refi / 2;
  channel.accept(1, at(0, 0, 5, 0, 0), false, 0);
  channel.accept(1, at(0, 0, 5, 0, 1), false, 1);
  channel.advance(refresh + 20);
  channel.decided().clear();
  channel.accept(refresh + 20, at(0, 0, 5, 0, 0), false, 2);
  channel.accept(refresh + 20, at(0, 0, 5, 0, 1), false, 3);
  const std::vector<Decided> decided = finish(channel);
  ASSERT_EQ(decided.size(), 2u);
  EXPECT_EQ(decided[0].tag, 2u);
  EXPECT_EQ(decided[0].command, refresh + 21);
  EXPECT_GE(decided[1].command, refresh + config.timing.t_rfc_ab);
}

TEST(ChannelShared, ClosedPagesCloseAtEveryAccess) {
  HbmConfig config = shared();
  config.page_policy = PagePolicy::closed;
  const auto made = ChannelTiming::make(config, 32);
  ChannelTiming& channel = *made;
  for (std::uint32_t i = 0; i < 3; ++i) channel.accept(1, at(0, 0, 5), false, i);
  finish(channel);
  EXPECT_EQ(channel.stats().row_closed, 3u);
  EXPECT_EQ(channel.stats().row_hits, 0u);
}

TEST(HbmScheduler, EveryNameIsAClassThatServesAndNoOther) {
  HbmConfig config = hbm2_2000();
  const std::vector<std::string> names = hbm_scheduler_names();
  EXPECT_EQ(names.at(0), "batched");
  EXPECT_EQ(config.scheduler, hbm_scheduler("batched"));  // the default
  EXPECT_THROW(hbm_scheduler("batch"), std::invalid_argument);
  std::vector<std::string> classes;
  for (const std::string& name : names) {
    config.scheduler = hbm_scheduler(name);
    const auto channel = ChannelTiming::make(config, 8);
    channel->accept(0, at(0, 0, 5), false, 7);
    EXPECT_EQ(finish(*channel).size(), 1U) << name;
    const ChannelTiming& made = *channel;
    classes.emplace_back(typeid(made).name());
  }
  std::sort(classes.begin(), classes.end());
  EXPECT_EQ(std::unique(classes.begin(), classes.end()), classes.end());
}

TEST(ChannelTiming, ReadDataComeTdqsckAfterRl) {
  Tick ends[2];
  for (const std::uint32_t dqsck : {0u, 3u}) {
    HbmConfig config = hbm2_2000();
    config.timing.t_dqsck = dqsck;
    const auto made = ChannelTiming::make(config, 8);
    ChannelTiming& channel = *made;
    channel.accept(1, at(0, 0, 0), false, 0);
    ends[dqsck != 0] = finish(channel).front().end;
  }
  EXPECT_EQ(ends[1], ends[0] + 3);
}

TEST(ChannelTiming, AQueuedWriteAnswersReadsAndTakesEqualWritesIfAsked) {
  for (const bool forward : {false, true}) {
    HbmConfig config = hbm2_2000();
    config.forward_writes = forward;
    const auto made = ChannelTiming::make(config, 8);
    ChannelTiming& channel = *made;
    ASSERT_TRUE(channel.accept(1, at(0, 0, 5, 3), true, 0));
    EXPECT_EQ(channel.accept(1, at(0, 0, 5, 3), false, 1), !forward);
    EXPECT_EQ(channel.accept(1, at(0, 0, 5, 3), true, 2), !forward);
    EXPECT_TRUE(channel.accept(1, at(0, 0, 5, 4), false, 3));  // another column
    EXPECT_EQ(channel.stats().forwarded, forward ? 1u : 0u);
    EXPECT_EQ(channel.stats().merged, forward ? 1u : 0u);
    EXPECT_EQ(channel.waiting(true), forward ? 1u : 2u);
    EXPECT_EQ(finish(channel).size(), forward ? 2u : 4u);
  }
}

TEST(ChannelTiming, WritesStartAboveTheUpperMarkAndEndBelowTheLower) {
  HbmConfig config = hbm2_2000();
  config.write_high = 50;
  const auto made = ChannelTiming::make(config, 10);
  ChannelTiming& channel = *made;
  // Reads of one bank wait for tRC each; five writes are not above half of ten, six are.
  for (std::uint32_t i = 0; i < 8; ++i) channel.accept(1, at(0, 0, i), false, 100 + i);
  for (std::uint32_t i = 0; i < 5; ++i) channel.accept(1, at(i % 3 + 1, 1, i), true, i);
  channel.advance(100);
  ASSERT_GT(channel.waiting(false), 2u);
  EXPECT_EQ(channel.waiting(true), 5u);
  channel.accept(100, at(1, 2, 0), true, 5);
  channel.advance(104);                                                // within tRRD
  EXPECT_EQ(channel.waiting(true), 5u);                                // the oldest has been activated
  while (channel.waiting(true) >= 2) channel.advance(channel.next());  // 20 % of ten
  const std::uint64_t writes = channel.stats().writes;
  channel.advance(channel.next() + 40);
  EXPECT_LE(channel.stats().writes, writes + 4);  // those activated before; the last one waits for a batch
  EXPECT_EQ(channel.waiting(true), 1u);
}

/// Clock counts of DRAMSys 5.1, bench/reference/hbm/dramsys_hbm2.csv, timing set R.
struct Reference {
  const char* id;
  unsigned pseudo_channels;
  const char *mapping, *pattern;
  unsigned reads, writes;
  PagePolicy page;
  std::uint64_t requests;
  double clocks;
};
constexpr Reference kReference[] = {
    {"DS001", 1, "RoBaBgCo", "seq", 1, 0, PagePolicy::open, 20'000, 40'092},
    {"DS004", 1, "RoBaCoBg", "rand", 1, 0, PagePolicy::open, 20'000, 82'605},
    {"DS006", 1, "RoBaCoBg", "rand", 1, 0, PagePolicy::closed, 20'000, 80'850},
    {"DS008", 1, "RoBaCoBg", "seq", 2, 1, PagePolicy::open, 20'000, 70'829},
    {"DS014", 2, "RoBaBgPcCo", "seq", 1, 0, PagePolicy::open, 20'000, 37'962},
    {"DS017", 2, "RoBaCoBgPc", "rand", 1, 0, PagePolicy::open, 20'000, 63'075},
    {"DS021", 2, "RoBaCoBgPc", "seq", 2, 1, PagePolicy::open, 20'000, 37'382},
};
class DramSysCase : public ::testing::TestWithParam<Reference> {};
INSTANTIATE_TEST_SUITE_P(Hbm, DramSysCase, ::testing::ValuesIn(kReference),
                         [](const auto& info) { return std::string(info.param.id); });

/// A source that sends at most one request per clock, as the reference's port does.
TEST_P(DramSysCase, TakesTheSameNumberOfClocks) {
  const Reference r = GetParam();
  HbmConfig config = shared();
  config.page_policy = r.page;
  const auto made = ChannelTiming::make(config, 32);
  ChannelTiming& channel = *made;
  const StreamPattern pattern(r.pattern, config, r.pseudo_channels, 32'768, r.mapping, 32);
  std::uint64_t offered = 0, done = 0;
  Tick free = 0;
  for (Tick now = 0; done < r.requests;) {
    const bool write = offered % (r.reads + r.writes) >= r.reads;
    if (offered < r.requests && now >= free && channel.room(write) > 0) {
      channel.accept(now, pattern.place(offered, 0), write, 0, 1, now > free);
      free = now + 1;
      ++offered;
    }
    Tick next = channel.next();
    if (offered < r.requests && channel.room(write) > 0) next = std::min(next, free);
    channel.advance(now = next);
    for (const Decided& burst : channel.decided()) done += burst.count;
    channel.decided().clear();
  }
  EXPECT_NEAR(static_cast<double>(channel.last_data()), r.clocks, 1.0);
}

/// The fast grade against the accurate one on streams: within the 15 % of the specification.
TEST(ChannelGrain, SaturatedStreamsStayWithinTheBand) {
  for (const HbmConfig& device : {hbm2_2000(), hbm3_6400()}) {
    for (const char* name : {"seq", "rand", "stride_128", "stride_16384", "triad", "bankpar_k4", "rand_hit"}) {
      for (const unsigned writes : {0u, 1u}) {
        Tick last[2];
        for (const bool is_fast : {false, true}) {
          const HbmConfig config = is_fast ? fast(device) : device;
          const StreamPattern pattern(name, config, 2, 16'384, config.stack_ids > 1 ? "RoSiBaCoBgPc" : "RoBaCoBgPc",
                                      32);
          const auto made = ChannelTiming::make(config, 32);
          ChannelTiming& channel = *made;
          std::uint64_t offered = 0, done = 0;
          for (Tick now = 0; done < 10'000;) {
            while (offered < 10'000 && channel.room(offered % 3 >= 3 - writes) > 0) {
              channel.accept(now, pattern.place(offered, 0), offered % 3 >= 3 - writes, 0);
              ++offered;
            }
            channel.advance(now = channel.next());
            for (const Decided& burst : channel.decided()) done += burst.count;
            channel.decided().clear();
          }
          last[is_fast] = channel.last_data();
        }
        EXPECT_NEAR(static_cast<double>(last[1]) / static_cast<double>(last[0]), 1.0, 0.15) << name << " " << writes;
      }
    }
  }
}

}  // namespace
}  // namespace kernbench
