#include "ccl/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernbench::ccl {
namespace {
using ::testing::ElementsAre;

Candidate rehearsed(const std::string& name, double ns) {
  Candidate candidate;
  candidate.name = name;
  candidate.ns = ns;
  candidate.known = candidate.rehearsed = true;
  return candidate;
}

std::vector<std::string> names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> list;
  for (const Candidate& c : candidates) list.push_back(c.name);
  return list;
}

/// Copies in which candidates take what is said, in the order in which they are tried; 0: the call never ends.
class Copies {
 public:
  explicit Copies(std::vector<double> ns) : ns_(std::move(ns)) {}
  std::function<Tried()> try_out() {
    return [this] {
      const double ns = ns_.at(made++);
      return Tried{false, ns > 0 ? std::optional(ns) : std::nullopt};
    };
  }
  std::size_t made = 0;

 private:
  const std::vector<double> ns_;
};

TEST(Candidates, WhatIsTriedGoesByWhatItTook) {
  std::vector<Candidate> list{rehearsed("a", 100), rehearsed("b", 105), rehearsed("c", 300)};
  Copies copies({140, 110});
  try_near(list, copies.try_out());
  EXPECT_EQ(copies.made, 2U);
  EXPECT_THAT(names(list), ElementsAre("b", "a", "c"));
  EXPECT_EQ(list[0].ns, 110);
  EXPECT_TRUE(list[0].tried && list[1].tried && !list[2].tried);
}

TEST(Candidates, NothingIsTriedWhereNoSecondOneIsWithinAQuarter) {
  Copies copies({100, 100});
  std::vector<Candidate> far{rehearsed("a", 100), rehearsed("b", 125.1)};
  try_near(far, copies.try_out());
  EXPECT_EQ(copies.made, 0U);
  std::vector<Candidate> near{rehearsed("a", 100), rehearsed("b", 124.9)};
  try_near(near, copies.try_out());
  EXPECT_EQ(copies.made, 1U);  // and that was enough: it took what was expected
  std::vector<Candidate> alone{rehearsed("a", 100)}, none;
  try_near(alone, copies.try_out());
  try_near(none, copies.try_out());
  EXPECT_EQ(copies.made, 1U);
}

/// The limit is 1.1 times the best, and twice as much more as what was tried was off.
TEST(Candidates, TheMoreTheFirstWereOffTheMoreAreTried) {
  const std::vector<Candidate> list{rehearsed("a", 100), rehearsed("b", 109), rehearsed("c", 125)};
  Copies right({100, 109});
  std::vector<Candidate> copy = list;
  try_near(copy, right.try_out());
  EXPECT_EQ(right.made, 2U);
  Copies off({110, 109, 125});  // 110 * (1.1 + 0.2) = 143
  copy = list;
  try_near(copy, off.try_out());
  EXPECT_EQ(off.made, 3U);
  EXPECT_THAT(names(copy), ElementsAre("b", "a", "c"));
}

TEST(Candidates, MeasuredOnesAreNotTriedButBetweenMeasuredSizes) {
  Candidate a = rehearsed("a", 100), b = rehearsed("b", 101);
  a.measured = b.measured = true;
  Copies copies({102, 101});
  std::vector<Candidate> at_a_size{a, b};
  try_near(at_a_size, copies.try_out());
  EXPECT_EQ(copies.made, 0U);
  a.between = b.between = true;
  std::vector<Candidate> between{a, b};
  try_near(between, copies.try_out());
  EXPECT_EQ(copies.made, 2U);
  EXPECT_THAT(names(between), ElementsAre("b", "a"));
}

TEST(Candidates, OneWhoseTrialDoesNotEndGoesBehindThoseThatDo) {
  std::vector<Candidate> list{rehearsed("a", 100), rehearsed("b", 105)};
  Copies copies({0, 105});
  try_near(list, copies.try_out());
  EXPECT_THAT(names(list), ElementsAre("b", "a"));
  EXPECT_FALSE(list[1].tried);
}

/// With what a trial said of one that is slow: it must not go before a fast one of which none could say anything.
TEST(Candidates, WhereTrialsTakeTooLongWhatWasExpectedStands) {
  std::vector<Candidate> list{rehearsed("fast", 100), rehearsed("near", 101), rehearsed("slow", 200)};
  int made = 0;
  try_near(list, [&] { return ++made == 1 ? Tried{false, {}, true} : Tried{false, 250}; });
  EXPECT_EQ(made, 1) << "no more are tried";
  EXPECT_THAT(names(list), ElementsAre("fast", "near", "slow"));
  EXPECT_FALSE(list[0].tried);
}

TEST(Candidates, WhatTakesTooLongToTryGoesByWhatWasExpectedBesideThoseThatWereTried) {
  const std::vector<Candidate> list{rehearsed("a", 100), rehearsed("b", 105), rehearsed("c", 106)};
  for (const auto& [took, best] : {std::pair(104, "a"), std::pair(106, "b")}) {
    std::vector<Candidate> copy = list;
    int made = 0;
    try_near(copy, [&, took = took] { return ++made == 1 ? Tried{false, took} : Tried{false, {}, true}; });
    EXPECT_EQ(made, 2);
    EXPECT_EQ(copy[0].name, best);
    EXPECT_EQ(copy[2].name, "c");
  }
}

TEST(Candidates, WhatSendsInNoOrderAndTakesTooLongToTryIsLeftOut) {
  Candidate p2p = rehearsed("p2p", 100);
  p2p.unordered = true;
  std::vector<Candidate> list{p2p, rehearsed("a", 140)};
  try_near(list, [] { return Tried{false, {}, true}; });
  EXPECT_THAT(names(list), ElementsAre("a", "p2p"));
  EXPECT_EQ(list[1].unfit, "sends in no order, which is for little data here");
}

/// A rehearsal is not right for it: it is tried though no other is near, and out if it was not.
TEST(Candidates, WhatSendsInNoOrderIsTriedOrLeftOut) {
  Candidate p2p = rehearsed("p2p", 100);
  p2p.unordered = true;
  Candidate last = rehearsed("last", 400);
  last.unordered = true;
  Copies copies({150, 140});
  std::vector<Candidate> list{p2p, rehearsed("a", 140), last};
  try_near(list, copies.try_out());
  EXPECT_THAT(names(list), ElementsAre("a", "p2p", "last"));
  EXPECT_EQ(list[1].unfit, "");
  EXPECT_EQ(list[2].unfit, "sends in no order, which is for little data here");
}

TEST(Candidates, InACopyTheOneThatIsTriedThereGoesFirst) {
  std::vector<Candidate> list{rehearsed("a", 100), rehearsed("b", 105), rehearsed("c", 106)};
  int made = 0;
  try_near(list, [&] { return ++made == 2 ? Tried{true, {}} : Tried{false, 100}; });
  EXPECT_EQ(made, 2);
  EXPECT_THAT(names(list), ElementsAre("b", "a", "c"));
}

TEST(Candidates, WhatTakesNoTimeOrIsOnlyKnownToTakeLongerIsNotTried) {
  Copies copies({});
  std::vector<Candidate> idle{rehearsed("a", 0), rehearsed("b", 0)};
  try_near(idle, copies.try_out());
  std::vector<Candidate> bounded{rehearsed("a", 100), rehearsed("b", 100)};
  for (Candidate& c : bounded) c.at_least = true;
  try_near(bounded, copies.try_out());
  std::vector<Candidate> unfit{rehearsed("a", 100), rehearsed("b", 100)};
  for (Candidate& c : unfit) c.unfit = "no";
  try_near(unfit, copies.try_out());
  EXPECT_EQ(copies.made, 0U);
}

}  // namespace
}  // namespace kernbench::ccl
