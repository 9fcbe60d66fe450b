#include "waves/trace_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_folder.h"

namespace kernbench {
namespace {

/// An op of a queue that takes the 10 ns from `start` ns on.
OpRecord through_queue(const char* component, std::uint64_t message, Ps start) {
  OpRecord record;
  record.component = component;
  record.kind = record.name = "ipcq_copy";
  record.queue = 5;
  record.message = message;
  record.start = start * 1000;
  record.end = record.start + 10'000;
  return record;
}

struct TraceWriterTest : ::testing::Test {
  const TestFolder folder;
  TraceWriter trace{folder.file("t.json"), {}, 10'000};

  nlohmann::json events() {
    trace.finish();
    return nlohmann::json::parse(read(folder.file("t.json")))["traceEvents"];
  }
  /// From and to, ns.
  using Arrows = std::vector<std::pair<double, double>>;
  Arrows arrows() { return arrows_of(events()); }
  static Arrows arrows_of(const nlohmann::json& events) {
    Arrows arrows;
    for (const auto& event : events) {
      if (event["ph"] == "s") arrows.emplace_back(event["ts"].get<double>() * 1000, 0);
      if (event["ph"] == "f") arrows.back().second = event["ts"].get<double>() * 1000;
    }
    return arrows;
  }
};

TEST_F(TraceWriterTest, AnArrowComesFromTheSendOfTheLastMessageThatAReceiveTook) {
  trace.op(through_queue("sip0.cube0.pe0.ipcq_send", 2, 0));
  trace.op(through_queue("sip0.cube0.pe0.ipcq_send", 5, 20));
  trace.op(through_queue("sip0.cube0.pe1.ipcq_recv", 3, 40));  // part of the second
  trace.op(through_queue("sip0.cube0.pe1.ipcq_recv", 5, 60));
  trace.op(through_queue("sip0.cube0.pe0.ipcq_send", 6, 80));
  trace.op(through_queue("sip0.cube0.pe1.ipcq_recv", 6, 90));
  EXPECT_EQ(arrows(), (Arrows{{20, 40}, {20, 60}, {80, 90}}));
}

// speedscope takes the first slice's beginning from all, adds lengths to that, and ends a slice where another begins
// before its end. Perfetto rounds beginnings and lengths to ns, and drops a slice that overlaps another one then.
TEST_F(TraceWriterTest, SlicesThatTouchDoNotOverlapInViewersThatRound) {
  constexpr int kSlices = 2'000;
  Ps end = 12'345;
  std::vector<Ps> lengths;
  std::mt19937_64 random(1);
  for (int i = 0; i < kSlices; ++i) {
    OpRecord record = through_queue("sip0.cube0.pe0.math", 1, 0);
    record.queue = 0;
    lengths.push_back(1 + random() % (i % 3 == 0 ? 10'000'000'000 : 3'000));
    record.start = end;
    record.end = end = end + lengths.back();
    trace.op(record);
  }
  std::size_t slices = 0, shorter = 0;
  double first = -1, in_doubles = 0;
  std::int64_t in_ns = 0;
  for (const auto& event : events()) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], length = event["dur"];
    if (first < 0) first = begin;
    EXPECT_GE(begin - first, in_doubles) << slices;
    in_doubles = begin - first + length;
    EXPECT_GE(std::llround(begin * 1000), in_ns) << slices;
    in_ns = std::llround(begin * 1000) + std::llround(length * 1000);
    const bool told = event["args"].contains("ps");
    shorter += told ? 1 : 0;
    EXPECT_EQ(event["args"].value("ps", lengths[slices]), lengths[slices]);
    EXPECT_NEAR(length * 1e6, static_cast<double>(lengths[slices]), told ? 501 : 0.02) << slices;
    ++slices;
  }
  EXPECT_EQ(slices, lengths.size());
  EXPECT_GT(shorter, slices / 10);
  EXPECT_LT(shorter, slices / 3);
}

TEST_F(TraceWriterTest, OfARepeatAReceiveMayComeBeforeItsSend) {
  trace.repeats(true);
  trace.op(through_queue("sip0.cube0.pe1.ipcq_recv", 1, 40));
  trace.op(through_queue("sip0.cube0.pe1.ipcq_recv", 2, 60));
  trace.op(through_queue("sip1.cube0.pe0.ipcq_send", 1, 0));
  trace.op(through_queue("sip1.cube0.pe0.ipcq_send", 2, 20));
  EXPECT_EQ(arrows(), (Arrows{{0, 40}, {20, 60}}));
}

TEST_F(TraceWriterTest, AnArrowWhoseOtherEndIsNotWrittenIsNotDrawnToAnother) {
  TraceWriter window(folder.file("w.json"), {{}, 30'000, 70'000}, 10'000);
  window.op(through_queue("sip0.cube0.pe0.ipcq_send", 1, 0));  // before it
  window.op(through_queue("sip0.cube0.pe1.ipcq_recv", 1, 40));
  window.op(through_queue("sip0.cube0.pe0.ipcq_send", 2, 50));
  window.op(through_queue("sip0.cube0.pe1.ipcq_recv", 2, 60));
  window.finish();
  EXPECT_EQ(arrows_of(nlohmann::json::parse(read(folder.file("w.json")))["traceEvents"]), (Arrows{{50, 60}}));
}

TEST_F(TraceWriterTest, SlicesOfRepeatsSayThatTheyAre) {
  const TrackId track = trace.add_track("sip0.cube0.link", TrackKind::state, {"idle", "busy"});
  trace.interval(track, 0, 1'000, 1);
  trace.repeats(true);
  trace.interval(track, 1'500, 2'000, 1);  // near, but not one slice with the other
  trace.op(through_queue("sip0.cube0.pe0.ipcq_send", 1, 0));
  trace.repeats(false);
  trace.op(through_queue("sip0.cube0.pe0.ipcq_send", 2, 20));
  std::vector<std::pair<std::string, bool>> slices;
  for (const auto& event : events()) {
    if (event["ph"] == "X") slices.emplace_back(event["name"], event["args"].value("repeat", false));
  }
  EXPECT_EQ(slices, (std::vector<std::pair<std::string, bool>>{
                        {"busy", false}, {"ipcq_copy", true}, {"ipcq_copy", false}, {"busy", true}}));
}

}  // namespace
}  // namespace kernbench
