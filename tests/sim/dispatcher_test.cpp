#include "tlm/sim/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/thrown.h"

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

/// Every queue reaches every other one in `latency`.
std::vector<std::vector<Dispatcher::Neighbour>> all_in(unsigned queues, Ps latency) {
  std::vector<std::vector<Dispatcher::Neighbour>> neighbours(queues);
  for (unsigned to = 0; to < queues; ++to) {
    for (unsigned from = 0; from < queues; ++from) {
      if (from != to) neighbours[to].push_back({from, latency});
    }
  }
  return neighbours;
}

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

/// What is executed of two SIPs that reach each other in `between`, and the host in `to_host`, in this order: 100 times
/// the SIP's number, plus the event's time. Until `silent` the host hears nothing.
std::vector<Ps> order_of_windows(Ps between, Ps to_host, const std::vector<Ps>& times, Ps silent = 0) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(all_in(2, between), to_host);
  std::vector<Ps> order;
  auto* log = &order;
  for (const unsigned sip : {1U, 0U}) {
    dispatcher.queue(sip).set_silent_until([silent] { return silent; });
    for (const Ps time : times) {
      dispatcher.queue(sip).at(time, [log, time, sip] { log->push_back(100 * sip + time); });
    }
  }
  sc_core::sc_start();
  EXPECT_EQ(dispatcher.now(), times.back());
  return order;
}

TEST(Dispatcher, NeighboursTakeTurnsThroughWindowsOfTwiceTheirDistance) {
  EXPECT_EQ(order_of_windows(10, 100, {0, 9, 10, 19, 20, 29, 30, 39}),
            (std::vector<Ps>{0, 9, 100, 109, 110, 119, 10, 19, 20, 29, 120, 129, 130, 139, 30, 39}));
}

TEST(Dispatcher, AWindowIsNoLongerThanTheWayToTheHostAndBack) {
  EXPECT_EQ(order_of_windows(100, 5, {0, 9, 10}), (std::vector<Ps>{0, 9, 100, 109, 10, 110}));
}

TEST(Dispatcher, AWindowIsLongerWhereTheHostHearsNothing) {
  EXPECT_EQ(order_of_windows(100, 5, {0, 9, 10, 19, 20}, 10),
            (std::vector<Ps>{0, 9, 10, 19, 100, 109, 110, 119, 20, 120}));
}

TEST(Dispatcher, ALatencyOfZeroBetweenSipsKeepsThemInStep) {
  EXPECT_EQ(order_of_windows(0, 5, {0, 9}), (std::vector<Ps>{0, 100, 9, 109}));
}

TEST(Dispatcher, ALatencyOfZeroToTheHostKeepsSipsInStep) {
  EXPECT_EQ(order_of_windows(5, 0, {0, 9}), (std::vector<Ps>{0, 100, 9, 109}));
}

TEST(Dispatcher, AnAnswerSoonerThanPromisedIsHeardWhenItsReactionReachesNobodysPast) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(all_in(2, 100), 5);
  std::vector<Ps> heard;
  auto* log = &heard;
  auto* d = &dispatcher;
  EventQueue* queue = &dispatcher.queue(1);
  for (const unsigned sip : {0U, 1U}) dispatcher.queue(sip).set_silent_until([] { return Ps{20}; });
  dispatcher.queue(0).at(0, [] {});
  dispatcher.queue(0).at(29, [] {});
  queue->at(0, [log, d, queue] {  // SIP 0 has been run to 30 by then
    for (const Ps at : {7, 6}) queue->at_host(at, [log, d, at] { log->insert(log->end(), {at, d->now()}); });
  });
  sc_core::sc_start();
  EXPECT_EQ(heard, (std::vector<Ps>{6, 25, 7, 25}));
}

/// Messages that go on from SIP to SIP of a ring: what each executes, in its order, as (time, message).
struct Relay {
  enum class Mode { step, windows, promises };
  static constexpr Ps kToHost = 5;  // windows of 10 without promises, of up to 25 with them
  /// `begin`: of its own time, so that no other relay of this simulation is at work and ends its windows.
  Relay(unsigned sips, Mode mode, Ps begin)
      : dispatcher(sc_core::sc_gen_unique_name("relay"), sips), begin(begin), executed(sips) {
    std::vector<std::vector<Dispatcher::Neighbour>> neighbours(sips);
    for (unsigned sip = 0; sip < sips; ++sip) {
      neighbours[sip] = {{(sip + 1) % sips, 10}, {(sip + sips - 1) % sips, 15}};
      const auto silent = [this, sip] { return answers_from(sip, dispatcher.queue(sip).now()); };
      if (mode == Mode::promises) dispatcher.queue(sip).set_silent_until(silent);
    }
    if (mode != Mode::step) dispatcher.set_lookahead(std::move(neighbours), kToHost);
    for (unsigned message = 0; message < 3 * sips; ++message) {
      dispatcher.queue(message % sips).at(begin + message % 4, [this, message, sips] {
        arrive(message % sips, message, 40);
      });
    }
  }
  /// When an answer may leave a SIP that stands at `now`: in the second half of each 100 ps; from each fourth SIP
  /// never.
  static Ps answers_from(unsigned sip, Ps now) { return sip % 4 == 3 ? kNever : std::max(now, now / 100 * 100 + 50); }
  void arrive(unsigned sip, std::uint32_t message, std::uint32_t left) {
    EventQueue& here = dispatcher.queue(sip);
    executed[sip].emplace_back(here.now() - begin, message);
    if (left == 0) return;
    const std::uint32_t next = message * 1664525U + 1013904223U, n = dispatcher.sips();
    const Ps more = next >> 16 & 15;
    const Ps answer = answers_from(sip, here.now());
    if (const unsigned way = next >> 20 & 3; way < 2) {
      const unsigned to = (sip + (way == 0 ? n - 1 : 1)) % n;
      dispatcher.queue(to).at_from(here, here.now() + (way == 0 ? 10 : 15) + more,
                                   [this, to, next, left] { arrive(to, next, left - 1); });
    } else if (way == 2 || answer == kNever) {
      here.at(here.now() + more, [this, sip, next, left] { arrive(sip, next, left - 1); });
    } else {  // the host answers another SIP, at once or after a timer of its own
      const unsigned to = (sip + 2) % n;
      here.at_host(answer + kToHost + more, [this, sip, to, next, left] {
        const Ps now = dispatcher.queue(sip).host_now();
        if ((next & 1) == 0) return reply(now, to, next, left);
        dispatcher.queue(to).host_at(
            now + (next >> 1 & 7), [this, to, next, left] { reply(dispatcher.queue(to).host_now(), to, next, left); });
      });
    }
  }
  void reply(Ps now, unsigned to, std::uint32_t message, std::uint32_t left) {
    dispatcher.queue(to).from_host(now + kToHost, [this, to, message, left] { arrive(to, message, left - 1); });
  }
  Dispatcher dispatcher;
  const Ps begin;
  std::vector<std::vector<std::pair<Ps, std::uint32_t>>> executed;
};

TEST(Dispatcher, EachSipExecutesTheSameInWindowsAsInStep) {
  constexpr Ps kEach = 1'000'000;
  std::deque<Relay> relays;  // by threes
  for (const unsigned sips : {2U, 3U, 4U, 5U, 8U, 13U}) {
    for (const Relay::Mode mode : {Relay::Mode::step, Relay::Mode::windows, Relay::Mode::promises})
      relays.emplace_back(sips, mode, relays.size() * kEach);
  }
  sc_core::sc_start();
  const auto passes = [](const Relay& relay) { return relay.dispatcher.published_instants(); };
  for (std::size_t i = 0; i < relays.size(); i += 3) {
    const Relay &step = relays[i], &windows = relays[i + 1], &promises = relays[i + 2];
    ASSERT_LT(step.dispatcher.latest(), step.begin + kEach);
    EXPECT_EQ(step.executed, windows.executed) << i;
    EXPECT_EQ(step.executed, promises.executed) << i;
    EXPECT_GT(step.dispatcher.executed(), 80U);
    EXPECT_LT(passes(windows), passes(step));
    EXPECT_LT(passes(promises), passes(windows)) << "windows are longer where the host hears nothing";
  }
}

/// The host hears something at 5 and sets a timer for 12, when SIP 0 tells it what that made at 6.
std::vector<std::string> heard_at_12(Ps to_host) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(all_in(2, 100), to_host);
  std::vector<std::string> order;
  auto* log = &order;
  EventQueue* queue = &dispatcher.queue(0);
  dispatcher.queue(1).at_host(5, [queue, log] { queue->host_at(12, [log] { log->push_back("timer"); }); });
  queue->at(0, [] {});  // in windows SIP 0 is run to 10 before the host hears what was at 5
  queue->at(6, [queue, log] { queue->at_host(12, [log] { log->push_back("answer"); }); });
  sc_core::sc_start();
  return order;
}

TEST(Dispatcher, ATimerComesBehindAnAnswerOfTheSameInstantInStep) {
  EXPECT_EQ(heard_at_12(0), (std::vector<std::string>{"answer", "timer"}));
}

TEST(Dispatcher, ATimerComesBehindAnAnswerOfTheSameInstantInWindows) {
  EXPECT_EQ(heard_at_12(5), (std::vector<std::string>{"answer", "timer"}));
}

TEST(Dispatcher, TellsTheHostInOrderOfTimeThenSipThoughQueuesAreAhead) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(all_in(2, 10), 8);
  struct Told {
    int sip;
    Ps at, host_now, models_now;
  };
  std::vector<Told> told;
  auto* log = &told;
  auto* d = &dispatcher;
  for (const Ps time : {0, 9}) {
    for (const unsigned sip : {0U, 1U}) dispatcher.queue(sip).at(time, [] {});
  }
  const auto tell = [&](int sip, Ps time) {
    EventQueue* queue = &dispatcher.queue(static_cast<unsigned>(sip));
    queue->at_host(time, [log, d, queue] {
      log->push_back({static_cast<int>(queue->sip()), d->now(), queue->host_now(), queue->now()});
    });
  };
  tell(0, 5);
  tell(1, 5);
  tell(1, 3);
  sc_core::sc_start();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].sip, 1);
  EXPECT_EQ(told[1].sip, 0);
  EXPECT_EQ(told[2].sip, 1);
  for (const Told& one : told) {
    EXPECT_EQ(one.at, &one == &told[0] ? 3u : 5u);
    EXPECT_EQ(one.host_now, one.at);
    EXPECT_EQ(one.models_now, 9u);
  }
  EXPECT_EQ(dispatcher.now(), 9u) << "nothing is left, and the host goes on behind all of it";
}

/// The host hears something at 7 and reaches a SIP no sooner than 5 later. What a run with a model's event at `last`
/// says.
std::vector<Ps> order_with(Ps last) {
  Dispatcher dispatcher("dispatcher", 1);
  dispatcher.set_lookahead(all_in(1, 100), 5);
  std::vector<Ps> order;
  auto* log = &order;
  dispatcher.queue(0).at(6, [] {});
  dispatcher.queue(0).at_host(7, [log] { log->push_back(7); });
  dispatcher.queue(0).at(last, [log, last] { log->push_back(last); });
  sc_core::sc_start();
  return order;
}

TEST(Dispatcher, AQueueMayRunAheadOfTheHostUpToWhereItsAnswerCanReach) {
  EXPECT_EQ(order_with(11), (std::vector<Ps>{11, 7}));
}

TEST(Dispatcher, NoQueuePassesWhereTheHostsAnswerCanReach) { EXPECT_EQ(order_with(12), (std::vector<Ps>{7, 12})); }

TEST(Dispatcher, AHostThreadActsAtItsOwnTimeOnAQueueThatIsAhead) {
  Dispatcher dispatcher("dispatcher", 1);
  dispatcher.set_lookahead(all_in(1, 10), 8);
  EventQueue* queue = &dispatcher.queue(0);
  Host host("host", [&](Host& self) {
    dispatcher.synchronise();
    auto* d = &dispatcher;
    auto* event = &self.done;
    queue->at(1, [] {});
    queue->at(8, [] {});
    queue->at_host(3, [d, event] { d->notify_host(*event); });
    sc_core::wait(self.done);
    EXPECT_EQ(kernel_now(), 3u);
    dispatcher.synchronise();
    EXPECT_EQ(dispatcher.now(), 3u);
    EXPECT_EQ(queue->host_now(), 3u);
    EXPECT_EQ(queue->now(), 8u);
  });
  sc_core::sc_start();
}

/// As a round's scheduling does, which goes on when nothing is left that it waits for.
TEST(Dispatcher, WhoGoesOnWhenNothingIsLeftActsBehindAllOfItThoughWindowsReachFurther) {
  Dispatcher dispatcher("dispatcher", 1);
  dispatcher.set_lookahead(all_in(1, 10), 8);
  EventQueue* queue = &dispatcher.queue(0);
  queue->at(3, [] {});
  sc_core::sc_start();
  EXPECT_EQ(dispatcher.now(), 3u);
  Ps ran = 0;
  auto* at = &ran;
  queue->from_host(dispatcher.now() + 8, [at, queue] { *at = queue->now(); });
  sc_core::sc_start();
  EXPECT_EQ(ran, 11u) << "and not where the window ended, 19";
}

TEST(Dispatcher, AnEventForAnotherSipBeforeItsPresentIsRefused) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(all_in(2, 10), 10);
  EventQueue *first = &dispatcher.queue(0), *second = &dispatcher.queue(1);
  first->at(5, [] {});
  second->at(1, [first, second] { first->at_from(*second, 4, [] {}); });
  EXPECT_THAT(thrown_by([] { sc_core::sc_start(); }),
              ::testing::HasSubstr("an event for SIP 0 at 4 ps, which has been run to 11 ps"));
}

TEST(Dispatcher, AnEventForAnotherSipThatHasBeenRunFurtherIsRefusedThoughNothingWasDueThere) {
  Dispatcher dispatcher("dispatcher", 2);
  dispatcher.set_lookahead(all_in(2, 10), 10);
  EventQueue *first = &dispatcher.queue(0), *second = &dispatcher.queue(1);
  second->at(1, [first, second] { first->at_from(*second, 10, [] {}); });
  EXPECT_THAT(thrown_by([] { sc_core::sc_start(); }),
              ::testing::HasSubstr("an event for SIP 0 at 10 ps, which has been run to 11 ps"));
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
