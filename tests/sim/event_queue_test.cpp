#include "tlm/sim/event_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace kernbench {
namespace {

TEST(EventQueue, RunsInOrderOfTimeThenOfCreation) {
  EventQueue queue;
  std::vector<int> order;
  auto* log = &order;
  queue.at(20, [log] { log->push_back(3); });
  queue.at(10, [log] { log->push_back(1); });
  queue.at(10, [log] { log->push_back(2); });
  queue.run_all();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(queue.now(), 20u);
}

TEST(EventQueue, OrdersAnotherSipsEventsBySourceNotByInsertion) {
  EventQueue target(0), low(1), high(2);
  std::vector<int> order;
  auto* log = &order;
  target.at_from(high, 5, [log] { log->push_back(2); });
  target.at_from(low, 5, [log] { log->push_back(1); });
  target.at(5, [log] { log->push_back(0); });
  target.run_all();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(EventQueue, WhatTheHostMakesForItselfComesBehindWhatTheSipTellsItThen) {
  EventQueue queue;
  std::vector<int> order;
  auto* log = &order;
  queue.host_at(5, [log] { log->push_back(2); });
  queue.at_host(5, [log] { log->push_back(1); });
  queue.host_at(5, [log] { log->push_back(3); });
  queue.run_all();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(EventQueue, WhatTheHostIsToHearLaterKeepsItsOrder) {
  EventQueue queue;
  std::vector<std::pair<Ps, int>> heard;
  auto* log = &heard;
  auto* q = &queue;
  const auto note = [log, q](int which) { return [log, q, which] { log->emplace_back(q->host_now(), which); }; };
  queue.host_at(6, note(5));
  queue.at_host(6, note(4));
  queue.at_host(5, note(3));
  queue.host_at(3, note(1));
  queue.at_host(4, note(2));
  queue.delay_host(5);
  queue.run_all();
  EXPECT_EQ(heard, (std::vector<std::pair<Ps, int>>{{5, 1}, {5, 2}, {5, 3}, {6, 4}, {6, 5}}));
}

TEST(EventQueue, AnEventMayAddEventsOfTheSameInstant) {
  EventQueue queue;
  int ran = 0;
  auto* count = &ran;
  auto* q = &queue;
  queue.at(7, [q, count] { q->at(7, [count] { ++*count; }); });
  queue.run_instant(7);
  EXPECT_EQ(ran, 1);
}

TEST(EventQueue, SortsRandomTimesLikeAStableSort) {
  EventQueue queue;
  std::mt19937 random(1);
  struct Seen {
    Ps time;
    int made;
  };
  std::vector<Seen> seen;
  auto* log = &seen;
  auto* q = &queue;
  for (int i = 0; i < 10'000; ++i) {
    const Ps time = random() % 500;
    queue.at(time, [log, q, i] { log->push_back({q->now(), i}); });
  }
  queue.run_all();
  ASSERT_EQ(seen.size(), 10'000u);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_TRUE(seen[i - 1].time < seen[i].time ||
                (seen[i - 1].time == seen[i].time && seen[i - 1].made < seen[i].made));
  }
}

TEST(Clock, HalfATickOfHbm3IsNotRoundedAway) {
  const Clock half_ck(3'200'000'000);
  EXPECT_EQ(half_ck.at(1), 312u);  // 312.5 ps, floor
  EXPECT_EQ(half_ck.at(2), 625u);
  EXPECT_EQ(half_ck.at(2'000'000), 625'000'000u);  // never accumulated
  EXPECT_EQ(half_ck.edge(313), 625u);
}

TEST(Rate, RoundsUpToThePicosecond) {
  EXPECT_EQ(Rate(256'000'000'000).time_for(256), 1000u);
  EXPECT_EQ(Rate(3).time_for(1), 333'333'333'334u);
}

}  // namespace
}  // namespace kernbench
