#include "runtime/deadlock.h"

#include <gtest/gtest.h>

namespace kernbench {
namespace {

Blocked blocked(PeCoord pe, const char* op, const char* waits_for, PeCoord peer, Ps since) {
  Blocked entry;
  entry.pe = pe;
  entry.kernel = "ring";
  entry.op = op;
  entry.waits_for = waits_for;
  entry.has_peer = true;
  entry.peer = peer;
  entry.since = since;
  return entry;
}

TEST(DeadlockReport, ShowsRanksPesAndTheCycle) {
  const std::vector<Blocked> list = {
      blocked({0, 3, 1}, "recv(W, 1x8 f16)", "data from W <- sip0.cube2.pe1", {0, 2, 1}, 12'345),
      blocked({0, 2, 1}, "send(E, 1x8 f16)", "credit from E <- sip0.cube3.pe1", {0, 3, 1}, 1'000'000)};
  const std::vector<BlockedRank> ranks = {{0, 0, "launch 'ring' on sip0, submitted at 5.000 ns"}, {11, 1, "barrier"}};
  EXPECT_EQ(deadlock_report(list, ranks, 2'000'500),
            R"(deadlock at 2000.500 ns: nothing is left to happen, and 2 ranks have not finished

  rank waits for
  0    launch 'ring' on sip0, submitted at 5.000 ns
  11   barrier

  rank PE             kernel op               since       waits for
  0    sip0.cube3.pe1 ring   recv(W, 1x8 f16) 12.345 ns   data from W <- sip0.cube2.pe1
  0    sip0.cube2.pe1 ring   send(E, 1x8 f16) 1000.000 ns credit from E <- sip0.cube3.pe1

wait cycle of 2 PEs:
  sip0.cube3.pe1 waits for data from W <- sip0.cube2.pe1
  <- sip0.cube2.pe1 waits for credit from E <- sip0.cube3.pe1
  <- sip0.cube3.pe1
)");
}

TEST(DeadlockReport, NamesThePeThatHasNothingLeftToSend) {
  const std::vector<Blocked> list = {blocked({0, 0, 1}, "recv(W, 1x8 f16)", "data from W", {0, 0, 0}, 0)};
  EXPECT_EQ(deadlock_report(list, {{0, 0, "launch 'ring' on sip0, submitted at 0.000 ns"}}, 1'000),
            R"(deadlock at 1.000 ns: nothing is left to happen, and 1 rank has not finished

  rank waits for
  0    launch 'ring' on sip0, submitted at 0.000 ns

  rank PE             kernel op               since    waits for
  0    sip0.cube0.pe1 ring   recv(W, 1x8 f16) 0.000 ns data from W

no wait cycle; where the chain ends:
  sip0.cube0.pe1 waits for data from W, and sip0.cube0.pe0 is not blocked: its kernel has ended or was never launched
)");
}

TEST(DeadlockReport, ShowsTheCycleOfTheHostWhereThatOfPesEnds) {
  const std::vector<Blocked> list = {blocked({0, 0, 1}, "recv(W, 1x8 f16)", "data from W", {0, 0, 0}, 0)};
  const std::vector<std::string> cycle = {"rank 0 waits for launch 'a' on sip0, submitted at 1.000 ns",
                                          "launch 'a' on sip0, submitted at 1.000 ns waits for rank 0"};
  const std::string of_host = R"(
wait cycle of ranks and what they submitted:
  rank 0 waits for launch 'a' on sip0, submitted at 1.000 ns
  <- launch 'a' on sip0, submitted at 1.000 ns waits for rank 0
  <- rank 0
)";
  const std::string text = deadlock_report(list, {}, 1'000, cycle);
  const std::string end = of_host + R"(
where the chain of PEs ends:
  sip0.cube0.pe1 waits for data from W, and sip0.cube0.pe0 is not blocked: its kernel has ended or was never launched
)";
  EXPECT_EQ(text.substr(text.size() - std::min(text.size(), end.size())), end);
  EXPECT_EQ(
      deadlock_report({}, {}, 1'000, cycle),
      "deadlock at 1.000 ns: nothing is left to happen, and 0 ranks have not finished\n\nno PE is blocked\n" + of_host);
}

TEST(DeadlockReport, LimitsItsLength) {
  std::vector<Blocked> list;
  for (std::uint16_t pe = 0; pe < 200; ++pe) {
    list.push_back(
        blocked({0, 0, pe}, "recv(W, 1x8 f16)", "data", {0, 0, static_cast<std::uint16_t>((pe + 1) % 200)}, 0));
  }
  const std::string text = deadlock_report(list, {}, 0, {}, 3);
  EXPECT_NE(text.find("  ... and 197 more blocked ops\n"), std::string::npos);
  EXPECT_NE(text.find("wait cycle of 200 PEs:\n"), std::string::npos);
  EXPECT_NE(text.find("  <- ... 185 more\n"), std::string::npos);
  EXPECT_LT(text.size(), 3000u);
}

TEST(DeadlockReport, FindsACycleBehindABranchThatEnds) {
  const std::vector<Blocked> list = {blocked({0, 0, 0}, "recv(N)", "data from N", {0, 0, 9}, 0),
                                     blocked({0, 0, 0}, "recv(E)", "data from E", {0, 0, 1}, 0),
                                     blocked({0, 0, 1}, "recv(E)", "data from E", {0, 0, 2}, 0),
                                     blocked({0, 0, 2}, "recv(W)", "data from W", {0, 0, 1}, 0)};
  const std::string text = deadlock_report(list, {}, 0);
  EXPECT_NE(
      text.find("wait cycle of 2 PEs:\n  sip0.cube0.pe1 waits for data from E\n  <- sip0.cube0.pe2 waits for data "
                "from W\n  <- sip0.cube0.pe1\n"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace kernbench
