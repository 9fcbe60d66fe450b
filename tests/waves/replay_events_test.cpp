// What repeats tell the op log and the trace.
#include "sc_main/run/replay_events.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace kernbench {
namespace {

using Batch = ReplayRecord::Batch;

/// All that it hears, as text; of repeats behind "again ".
struct Heard final : Observer {
  TrackId add_track(const std::string& name, TrackKind, const std::vector<std::string>&) override {
    if (!wants(name)) return kNoTrack;
    tracks.push_back(name);
    return TrackId{static_cast<std::uint32_t>(tracks.size() - 1)};
  }
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override {
    say(name(track) + " " + span(begin, end) + " = " + std::to_string(value));
  }
  void interval(TrackId track, Ps begin, Ps end, const std::string& text) override {
    say(name(track) + " " + span(begin, end) + " " + text);
  }
  void change(TrackId track, Ps time, std::uint64_t value) override {
    say(name(track) + " " + std::to_string(time) + " = " + std::to_string(value));
  }
  void op(const OpRecord& record) override {
    say(record.component + " " + span(record.start, record.end) + " " + record.kernel);
    ops.push_back(record);
  }
  void kernel(const OpRecord& record) override { op(record); }
  bool wants_ops() const override { return true; }
  bool wants(const std::string& component) const override { return std::regex_match(component, wanted); }
  void repeats(bool does) override { again = does; }
  Ps resolution() const override { return coarse; }

  std::string name(TrackId track) const { return tracks[static_cast<std::uint32_t>(track)]; }
  static std::string span(Ps begin, Ps end) { return std::to_string(begin) + ".." + std::to_string(end); }
  void say(const std::string& text) { (again ? repeated : simulated).push_back(text); }

  std::vector<std::string> tracks, simulated, repeated;
  std::vector<OpRecord> ops;
  std::regex wanted{".*"};  ///< components and tracks
  bool again = false;
  Ps coarse = 0;
};

constexpr ReplayRecord::Work kLaunch{1, 0};
/// The launch "first" on SIP 0, message 7, which uses a tensor at 0x1000; and what repeats it on SIP 2.
const Batch kFirst{0, false, {{7, "first"}}, {{0x1000, 0x100}}};
const Batch kSecond{2, false, {{9, "second"}}, {{0x5000, 0x100}}};

OpRecord load(Ps start, Ps end) {
  OpRecord record;
  record.start = start;
  record.end = end;
  record.component = "sip0.cube1.pe0.dma_r";
  record.kind = "dma";
  record.name = "dma_read";
  record.kernel = "first";
  record.op = 77;
  record.launch = 7;
  record.params = {{"src", "va:0x1010", 0}, {"dst", "tcm:0x40", 0}, {"peer", "sip0.cube0.pe1", 0}, {"nbytes", "", 16}};
  return record;
}

struct ReplayEventsTest : ::testing::Test {
  Heard heard;
  Ps now = 0;
  ReplayEvents events{heard, 3, true, [this] { return now; }};

  /// From 1,000 to `end`; `act` publishes.
  template <class Act>
  void occur(Ps end, const Act& act, bool ends = true) {
    now = 1'000;
    const auto done = events.begin(kFirst);
    act();
    now = end;
    if (!ends) return;
    events.end(0, *done);
    events.simulated(kLaunch, *done, 1'000, false);
  }
};

TEST_F(ReplayEventsTest, ARepeatPublishesWhatTheOccurrenceHasAtItsOwnTimesAndPlaces) {
  const TrackId link = events.add_track("sip0.cube1.link", TrackKind::state, {});
  const TrackId stall = events.add_track("sip0.cube1.pe0.cpu", TrackKind::text, {});
  events.add_track("sip2.cube1.link", TrackKind::state, {});
  events.add_track("sip2.cube1.pe0.cpu", TrackKind::text, {});
  occur(1'400, [&] {
    events.interval(link, 1'000, 1'100, 3);
    events.change(link, 1'200, 5);
    events.interval(stall, 1'100, 1'300, std::string("recv from sip0.cube0.pe1"));
    events.op(load(1'100, 1'200));
    events.kernel(load(1'000, 1'400));
  });
  EXPECT_TRUE(heard.repeated.empty());
  events.repeated(kLaunch, kSecond, 5'000, 5'800);  // twice as long
  EXPECT_EQ(heard.repeated, (std::vector<std::string>{"sip2.cube1.link 5000..5200 = 3", "sip2.cube1.link 5400 = 5",
                                                      "sip2.cube1.pe0.cpu 5200..5600 recv from sip2.cube0.pe1",
                                                      "sip2.cube1.pe0.dma_r 5200..5400 second",
                                                      "sip2.cube1.pe0.dma_r 5000..5800 second"}));
  EXPECT_EQ(heard.simulated.size(), 5U);
}

TEST_F(ReplayEventsTest, ARepeatsRecordsNameItsOwnLaunchTensorsAndPartners) {
  occur(1'400, [&] {
    OpRecord record = load(1'100, 1'200);
    record.queue = 5;
    record.message = 2;
    record.spent = {10, 0, 0, 0, 0, 60, 30};
    events.op(record);
    record.stage = "gemm";  // of the same composite
    events.op(record);
    record = load(1'200, 1'300);
    record.op = 78;
    record.launch = 0;  // a mark
    events.op(record);
  });
  for (int i = 0; i < 2; ++i) events.repeated(kLaunch, kSecond, 5'000, 5'200);  // half as long
  ASSERT_EQ(heard.ops.size(), 9U);
  const OpRecord &first = heard.ops[3], &stage = heard.ops[4], &mark = heard.ops[5], &again = heard.ops[6];
  EXPECT_EQ(first.params[0].text, "va:0x5010");
  EXPECT_EQ(first.params[1].text, "tcm:0x40");
  EXPECT_EQ(first.params[2].text, "sip2.cube0.pe1");
  EXPECT_EQ(first.params[3].number, 16);
  EXPECT_EQ(first.launch, 9U);
  EXPECT_EQ(first.message, 2U);
  EXPECT_NE(first.queue, 5U);
  EXPECT_EQ(first.queue, stage.queue);
  EXPECT_NE(first.queue, again.queue) << "messages of one repeat are not those of another";
  EXPECT_EQ(first.op, stage.op);
  EXPECT_NE(first.op, 77U);
  EXPECT_NE(first.op, mark.op);
  EXPECT_NE(first.op, again.op);
  EXPECT_EQ(mark.launch, 0U);
  EXPECT_EQ(mark.kernel, "second");
  EXPECT_EQ(first.spent, (std::vector<Ps>{5, 0, 0, 0, 0, 30, 15}));
}

TEST_F(ReplayEventsTest, PartsOfOneRepeatedCollectiveShareTheirQueues) {
  const auto send = [&](int sip, std::size_t part) {
    now = 1'000;
    const Batch batch{sip, false, {{7, "ring"}}, {}};
    const auto done = events.begin(batch);
    OpRecord record = load(1'100, 1'200);
    record.component = "sip" + std::to_string(sip) + ".cube0.pe0.ipcq_send";
    record.queue = 5;
    events.op(record);
    now = 1'400;
    events.end(sip, *done);
    events.simulated({1, part}, *done, 1'000, false);
  };
  send(0, 0);
  send(1, 1);
  for (Ps begin : {2'000, 3'000}) {
    events.repeated({1, 0}, {0, false, {{8, "ring"}}, {}}, begin, begin + 400);
    events.repeated({1, 1}, {1, false, {{9, "ring"}}, {}}, begin, begin + 400);
  }
  ASSERT_EQ(heard.ops.size(), 6U);
  EXPECT_EQ(heard.ops[2].queue, heard.ops[3].queue);
  EXPECT_EQ(heard.ops[4].queue, heard.ops[5].queue);
  EXPECT_NE(heard.ops[2].queue, heard.ops[4].queue);
  EXPECT_EQ(heard.ops[3].component, "sip1.cube0.pe0.ipcq_send");
}

TEST_F(ReplayEventsTest, RepeatsOfWorkThatIsBeingSimulatedComeWhenItHasEnded) {
  now = 1'000;
  const auto done = events.begin(kFirst);
  events.op(load(1'100, 1'200));
  events.repeated(kLaunch, kSecond, 1'000, 1'400);
  EXPECT_TRUE(heard.repeated.empty());
  now = 1'400;
  events.end(0, *done);
  events.simulated(kLaunch, *done, 1'000, false);
  EXPECT_EQ(heard.repeated, std::vector<std::string>{"sip2.cube1.pe0.dma_r 1100..1200 second"});
}

TEST_F(ReplayEventsTest, RepeatsTakeTheOccurrenceWhoseTimeIsNearestToTheMean) {
  for (const Ps length : {400, 600, 900, 500})  // mean 600
    occur(1'000 + length, [&] { events.op(load(1'000, 1'100)); });
  events.repeated(kLaunch, kSecond, 5'000, 5'600);
  EXPECT_EQ(heard.repeated, std::vector<std::string>{"sip2.cube1.pe0.dma_r 5000..5100 second"});
}

TEST_F(ReplayEventsTest, WhatIsOfOtherWorkIsNotRepeated) {
  const TrackId own = events.add_track("sip0.link", TrackKind::state, {}),
                other = events.add_track("sip1.link", TrackKind::state, {}),
                host = events.add_track("host.rank0", TrackKind::state, {});
  occur(
      1'100, [&] { events.interval(own, 1'000, 1'100, 9); }, false);  // met by other work
  events.interval(own, 1'200, 1'300, 9);
  heard.wanted = ".*(link|dma_r)";
  occur(1'400, [&] {
    events.interval(own, 900, 1'100, 1);  // begun before
    events.interval(other, 1'100, 1'200, 2);
    events.interval(host, 1'100, 1'200, 3);
    OpRecord filtered = load(1'100, 1'200);
    filtered.component = "sip0.cube1.pe0.math";
    events.op(filtered);
    events.interval(own, 1'100, 1'200, 4);
  });
  events.interval(own, 1'500, 1'600, 5);  // after it
  events.repeated(kLaunch, {0, false, {{9, "second"}}, {}}, 5'000, 5'400);
  EXPECT_EQ(heard.repeated, std::vector<std::string>{"sip0.link 5100..5200 = 4"});
}

// Refreshes go by time; what passes between SIPs is of a collective, whatever its members are at.
TEST_F(ReplayEventsTest, RefreshesAndLinksBetweenSipsAreNotTheWorkOfALaunch) {
  const TrackId row = events.add_track("sip0.cube0.hbm.ch0.pc0.row", TrackKind::state, {"idle", "activate", "refresh"}),
                link = events.add_track("sip0.io0.link1.wire0", TrackKind::state, {});
  const Batch links{0, true, {}, {}};
  constexpr ReplayRecord::Work passing{2, 1};
  now = 900;
  const auto done = events.begin(links);
  occur(1'400, [&] {
    events.interval(row, 1'000, 1'100, 1);
    events.interval(row, 1'100, 1'200, 2);
    events.interval(link, 1'100, 1'200, 1);
  });
  now = 1'500;
  events.end(0, *done);
  events.simulated(passing, *done, 900, false);
  events.repeated(kLaunch, {0, false, {{9, "second"}}, {}}, 5'000, 5'400);
  EXPECT_EQ(heard.repeated, std::vector<std::string>{"sip0.cube0.hbm.ch0.pc0.row 5000..5100 = 1"});
  heard.repeated.clear();
  events.repeated(passing, links, 6'000, 6'600);
  EXPECT_EQ(heard.repeated, std::vector<std::string>{"sip0.io0.link1.wire0 6200..6300 = 1"});
}

TEST_F(ReplayEventsTest, TheSwitchsLinkToASipIsOneOfThatSipsLinks) {
  std::vector<TrackId> links;
  for (int sip = 0; sip < 2; ++sip)
    links.push_back(events.add_track("fabric.link" + std::to_string(sip) + ".wire0", TrackKind::state, {}));
  events.add_track("fabric.link.wire0", TrackKind::state, {});  // of no SIP
  const auto done = events.begin({0, true, {}, {}});
  events.interval(links[0], 100, 200, 3);
  events.interval(links[1], 100, 200, 4);
  now = 1'000;
  events.end(0, *done);
  events.simulated({2, 1}, *done, 0, false);
  events.repeated({2, 1}, {1, true, {}, {}}, 5'000, 6'000);
  EXPECT_EQ(heard.repeated, std::vector<std::string>{"fabric.link1.wire0 5100..5200 = 3"});
}

TEST_F(ReplayEventsTest, KeepsNoMoreThanIsTold) {
  heard.coarse = 100;
  const TrackId link = events.add_track("sip0.link", TrackKind::state, {}),
                level = events.add_track("sip0.queue", TrackKind::level, {}),
                stall = events.add_track("sip0.cpu", TrackKind::text, {});
  occur(9'000, [&] {
    events.interval(link, 1'000, 1'200, 1);
    events.interval(link, 1'300, 1'400, 1);  // near
    events.interval(link, 1'501, 1'600, 1);
    events.interval(link, 1'600, 1'700, 0);  // idle
    events.change(level, 2'000, 5);
    events.change(level, 2'999, 6);
    events.change(level, 3'000, 7);
    events.interval(stall, 4'000, 4'099, std::string("short"));
    events.interval(stall, 4'100, 4'200, std::string("long"));
  });
  events.repeated(kLaunch, {0, false, {{9, "second"}}, {}}, 1'000, 9'000);
  EXPECT_EQ(heard.repeated,
            (std::vector<std::string>{"sip0.link 1000..1400 = 1", "sip0.link 1501..1600 = 1", "sip0.queue 2000 = 6",
                                      "sip0.queue 3000 = 7", "sip0.cpu 4100..4200 long"}));
}

TEST_F(ReplayEventsTest, WhatIsWantedOfOneSipIsKeptOfTheOneThatIsSimulated) {
  heard.wanted = "sip2.*(link|dma_r)";
  const TrackId link = events.add_track("sip0.link", TrackKind::state, {});
  EXPECT_NE(events.add_track("sip2.link", TrackKind::state, {}), kNoTrack);
  EXPECT_EQ(events.add_track("sip0.other", TrackKind::state, {}), kNoTrack);
  ASSERT_NE(link, kNoTrack);
  occur(1'400, [&] {
    events.interval(link, 1'100, 1'200, 4);
    events.op(load(1'100, 1'200));
  });
  EXPECT_EQ(heard.simulated, std::vector<std::string>{"sip0.cube1.pe0.dma_r 1100..1200 first"}) << "it filters itself";
  events.repeated(kLaunch, kSecond, 5'000, 5'400);
  EXPECT_EQ(heard.repeated,
            (std::vector<std::string>{"sip2.link 5100..5200 = 4", "sip2.cube1.pe0.dma_r 5100..5200 second"}));
  ReplayEvents without(heard, 3, false, [] { return Ps{0}; });
  EXPECT_EQ(without.add_track("sip0.link", TrackKind::state, {}), kNoTrack) << "nothing is repeated";
}

}  // namespace
}  // namespace kernbench
