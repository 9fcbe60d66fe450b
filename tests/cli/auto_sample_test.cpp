#include "tests/cli/auto_contest.h"

namespace kernbench {
namespace {

const std::vector<std::string> kRing8{"--topology", "ring8"},
    kRing5{"--topology", "ring8", "--set", "system.sips.count=5"};

TEST(Auto, IsCloseToTheBestOfARing) {
  for (const char* op : {"all_reduce", "all_gather"}) AutoContest(kRing8, op).expect_close({"2K", "128K", "8"}, "");
}

TEST(Auto, TakesATunedTableBetweenItsSizes) {
  const AutoContest contest(kRing5, "all_reduce");
  contest.tune({"4K", "64K", "4"}, "tuned.yaml");
  contest.expect_close({"8K", "32K", "4"}, "tuned.yaml");
}

}  // namespace
}  // namespace kernbench
