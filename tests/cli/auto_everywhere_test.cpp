#include "tests/cli/auto_contest.h"
#include "tests/cli/pe_contest.h"

namespace kernbench {
namespace {

using Machine = std::vector<std::string>;

/// Sizes that lie midway between those of the tables that ship.
const AutoContest::Sizes kMidway{"2K", "512K", "4"};

void expect_close(const Machine& machine, const std::string& scope = "sip") {
  for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    if (scope == "sip" || std::string(op) == "all_reduce") AutoContest(machine, op, scope).expect_close(kMidway, "");
  }
}

TEST(AutoEverywhere, OfTheDefaultMachine) { expect_close({"--topology", "default"}); }
TEST(AutoEverywhere, OfTheCubesOfTheDefaultMachine) { expect_close({"--topology", "default"}, "cube"); }
TEST(AutoEverywhere, OfARing) { expect_close({"--topology", "ring8"}); }
TEST(AutoEverywhere, OfTheCubesOfARing) { expect_close({"--topology", "ring8"}, "cube"); }
TEST(AutoEverywhere, OfATorus) { expect_close({"--topology", "torus4x4"}); }
TEST(AutoEverywhere, OfTheCubesOfATorus) { expect_close({"--topology", "torus4x4"}, "cube"); }
TEST(AutoEverywhere, OfAMesh) { expect_close({"--topology", "mesh4x4"}); }
TEST(AutoEverywhere, OfTheCubesOfAMesh) { expect_close({"--topology", "mesh4x4"}, "cube"); }
TEST(AutoEverywhere, OfLinksBetweenAll) { expect_close({"--topology", "fc8"}); }

TEST(AutoEverywhere, OfAMeshThatWasNeverTuned) { expect_close(resized("mesh4x4", 4, 2)); }
TEST(AutoEverywhere, OfATorusThatWasNeverTuned) { expect_close(resized("torus4x4", 3, 3)); }
TEST(AutoEverywhere, OfARingThatWasNeverTuned) { expect_close(resized("ring8", 5, 1)); }

TEST(AutoEverywhere, ByATableOfItsOwn) {
  const Machine machine = resized("ring8", 5, 1);
  for (const char* op : {"all_reduce", "all_to_all"}) {
    const AutoContest contest(machine, op);
    contest.tune({"1K", "1M", "4"}, "tuned.yaml");
    contest.expect_close(kMidway, "tuned.yaml");
  }
}

const char* const kAllOperations[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                      "reduce",     "broadcast",  "gather",         "scatter"};

TEST(AutoEverywhere, OfRanksThatAreThePesOfACube) {
  for (const int ranks : {4, 8}) {
    const PeContest contest({"--topology", "default"}, ranks);
    for (const char* op : kAllOperations) {
      contest.expect_close(op, kMidway);
      contest.expect_close(op, {"1536", "384K", "4"});
    }
  }
}

}  // namespace
}  // namespace kernbench
