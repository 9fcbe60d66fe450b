#include "sc_main/run/replay_causes.h"

#include <gtest/gtest.h>

#include <string>

namespace kernbench {
namespace {

const ReplayRecord::Work kWork{1, 0};

/// A host whose clock is set by hand.
struct ReplayCausesTest : ::testing::Test {
  CauseLog log;
  Ps now = 0;
  ReplayCauses causes{log, [this] { return now; }};

  /// An occurrence on SIP 0 from 100 to 400, which counts from `from` on: 100 ps on a link, 200 ps in a memory.
  void occur(Ps from) {
    now = 100;
    const auto done = causes.begin({});
    log.current = log.step(Spent::memory, log.place(std::string("sip0.cube1.hbm.pe0")), 400,
                           log.step(Spent::wire, log.place(std::string("sip0.io0.link0.wire0")), 200,
                                    log.step(Spent::host, log.place(std::string("host")), 100, {})));
    causes.end(0, *done);
    causes.simulated(kWork, *done, from, false);
    log.host = log.current;
  }
  /// A repeat on `sip` from 1,000 to `end`; what its chain is from there on.
  std::vector<CauseLog::Segment> repeat(int sip, Ps end, ReplayRecord::Work work = kWork) {
    now = 1'000;
    causes.waits(7);
    now = end;
    causes.hears(7, work, sip);
    return log.chain(log.host, 1'000);
  }
  std::string place(const CauseLog::Segment& segment) const { return log.place_name(segment.place); }
};

TEST_F(ReplayCausesTest, ARepeatGoesOnWithThePartsOfTheOccurrenceTheLargestFirstInItsOwnTime) {
  occur(100);
  const auto chain = repeat(0, 1'600);  // twice as long
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[0].spent, Spent::memory);
  EXPECT_EQ(chain[0].end, 1'400u);
  EXPECT_EQ(chain[1].spent, Spent::wire);
  EXPECT_EQ(chain[1].end, 1'600u);
  const auto before = log.chain(log.host);
  ASSERT_EQ(before.size(), 6u);
  EXPECT_EQ(before[3].spent, Spent::host) << "from what the host has heard last until it began to wait";
  EXPECT_EQ(before[3].begin, 400u);
  EXPECT_EQ(before[3].end, 1'000u);
}

TEST_F(ReplayCausesTest, PlacesAreThoseOfTheRepeatsOwnSip) {
  occur(100);
  const auto chain = repeat(12, 1'300);
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(place(chain[0]), "sip12.cube1.hbm.pe0");
  EXPECT_EQ(place(chain[1]), "sip12.io0.link0.wire0");
}

TEST_F(ReplayCausesTest, OfACollectiveThePartsCountFromTheComingOfItsLastMember) {
  occur(300);
  const auto chain = repeat(0, 1'300);
  ASSERT_EQ(chain.size(), 1u) << "the link was before that";
  EXPECT_EQ(chain[0].spent, Spent::memory);
  EXPECT_EQ(chain[0].end, 1'300u);
}

TEST_F(ReplayCausesTest, WorkOfWhichNoOccurrenceIsKnownIsSpentOnNothingKnown) {
  occur(100);
  const auto chain = repeat(0, 1'300, {2, 0});
  ASSERT_EQ(chain.size(), 1u);
  EXPECT_EQ(chain[0].spent, Spent::other);
  EXPECT_EQ(chain[0].end, 1'300u);
}

}  // namespace
}  // namespace kernbench
