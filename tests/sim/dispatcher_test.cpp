#include "tlm/sim/dispatcher.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace kernbench {
namespace {

struct Host : sc_core::sc_module {
  SC_HAS_PROCESS(Host);
  Host(const sc_core::sc_module_name& name, std::function<void(Host&)> body) : sc_module(name), body_(std::move(body)) {
    SC_THREAD(run);
  }
  sc_core::sc_event done{"done"};
  std::function<void(Host&)> body_;
  void run() { body_(*this); }
};

Ps kernel_now() { return sc_core::sc_time_stamp().value(); }

TEST(Dispatcher, RunsQueuesInOrderOfTimeThenSip) {
  Dispatcher dispatcher("dispatcher", 2);
  std::vector<int> order;
  auto* log = &order;
  dispatcher.queue(1).at(10, [log] { log->push_back(2); });
  dispatcher.queue(0).at(10, [log] { log->push_back(1); });
  dispatcher.queue(1).at(5, [log] { log->push_back(0); });
  sc_core::sc_start();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(dispatcher.now(), 10u);
}

TEST(Dispatcher, WithALookaheadRunsEachQueueThroughItsWindow) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(10);
  std::vector<int> order;
  auto* log = &order;
  for (const Ps time : {0, 9, 10}) {
    dispatcher.queue(1).at(time, [log, time] { log->push_back(100 + static_cast<int>(time)); });
    dispatcher.queue(0).at(time, [log, time] { log->push_back(static_cast<int>(time)); });
  }
  sc_core::sc_start();
  EXPECT_EQ(order, (std::vector<int>{0, 9, 100, 109, 10, 110}));
  EXPECT_EQ(dispatcher.now(), 10u);
}

TEST(Dispatcher, AnEventForAllFindsNoQueueAheadOrBehind) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(10);
  std::vector<Ps> others;
  auto* log = &others;
  EventQueue* other = &dispatcher.queue(1);
  for (const Ps time : {1, 6, 8, 9}) other->at(time, [] {});
  dispatcher.queue(0).at_for_all(7, [log, other] { log->push_back(other->now()); });
  sc_core::sc_start();
  EXPECT_EQ(others, (std::vector<Ps>{6}));
}

TEST(Dispatcher, AnEventForAnotherSipBeforeItsPresentIsRefused) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(10);
  EventQueue *first = &dispatcher.queue(0), *second = &dispatcher.queue(1);
  first->at(5, [] {});
  second->at(1, [first, second] { first->at_from(*second, 4, [] {}); });
  try {
    sc_core::sc_start();
    FAIL() << "went unnoticed";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("an event for SIP 0 at 4 ps, which has been run to 11 ps"),
              std::string::npos)
        << error.what();
  }
}

TEST(Dispatcher, AHostThreadResumesAtTheModelsInstantAndActsBeforeLaterEvents) {
  Dispatcher dispatcher("dispatcher", 1);
  EventQueue* queue = &dispatcher.queue(0);
  std::vector<Ps> times;
  auto* log = &times;
  Host host("host", [&](Host& self) {
    dispatcher.synchronise();
    auto* d = &dispatcher;
    auto* event = &self.done;
    queue->at(100, [d, event] { d->notify_host(*event); });
    queue->at(300, [log, queue] { log->push_back(queue->now()); });
    sc_core::wait(self.done);
    EXPECT_EQ(kernel_now(), 100u);
    dispatcher.synchronise();
    EXPECT_EQ(queue->now(), 100u);
    queue->at(200, [log, queue] { log->push_back(queue->now()); });
  });
  sc_core::sc_start();
  EXPECT_EQ(times, (std::vector<Ps>{200, 300}));
}

TEST(Dispatcher, DoesNotRunPastAnotherProcessThatIsDue) {
  Dispatcher dispatcher("dispatcher", 1);
  EventQueue* queue = &dispatcher.queue(0);
  std::vector<Ps> seen;
  for (Ps time = 10; time <= 100; time += 10) queue->at(time, [] {});
  Host host("host", [&](Host&) {
    for (int i = 0; i < 3; ++i) {
      sc_core::wait(sc_core::sc_time::from_value(25));
      seen.push_back(queue->now());
    }
  });
  sc_core::sc_start();
  EXPECT_EQ(seen, (std::vector<Ps>{20, 50, 70}));
}

TEST(Dispatcher, AThreadOfTheSameInstantNeverFindsTheModelsAhead) {
  Dispatcher dispatcher("dispatcher", 1);
  EventQueue* queue = &dispatcher.queue(0);
  queue->at(50, [] {});
  queue->at(60, [] {});
  Host host("host", [&](Host&) {
    sc_core::wait(sc_core::sc_time::from_value(50));
    EXPECT_LE(queue->now(), 50u);
    for (int delta = 0; delta < 3; ++delta) {
      sc_core::wait(sc_core::SC_ZERO_TIME);
      EXPECT_EQ(queue->now(), 50u);
    }
  });
  sc_core::sc_start();
  EXPECT_EQ(dispatcher.now(), 60u);
}

TEST(Dispatcher, StopsBeforeTheLimit) {
  Dispatcher dispatcher("dispatcher", 1);
  int ran = 0;
  auto* count = &ran;
  dispatcher.queue(0).at(1000, [count] { ++*count; });
  dispatcher.queue(0).at(1001, [count] { ++*count; });
  dispatcher.set_limit(1000);
  sc_core::sc_start();
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(dispatcher.limit_reached());
}

TEST(Dispatcher, AnIdleMachineExecutesNothing) {
  Dispatcher dispatcher("dispatcher", 4);
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_SEC));
  EXPECT_EQ(dispatcher.executed(), 0u);
}

}  // namespace
}  // namespace kernbench
