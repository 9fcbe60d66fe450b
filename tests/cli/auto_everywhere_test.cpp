#include "tests/cli/auto_contest.h"

namespace kernbench {
namespace {

const std::vector<std::string> kRing8{"--topology", "ring8"}, kTorus4x4{"--topology", "torus4x4"},
    kMesh4x4{"--topology", "mesh4x4"}, kDefault{"--topology", "default"},
    kRing5{"--topology", "ring8", "--set", "system.sips.count=5"},
    kTorus3x3{"--topology", "torus4x4",        "--set", "system.sips.count=9",
              "--set",      "system.sips.w=3", "--set", "system.sips.h=3"};
const char* const kOps[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};

TEST(AutoEverywhere, ByItsModels) {
  for (const auto& machine : {kRing8, kTorus4x4, kMesh4x4, kDefault, kRing5, kTorus3x3}) {
    for (const char* op : kOps) {
      SCOPED_TRACE(machine.at(1) + (machine.size() > 2 ? " " + machine.at(3) : ""));
      AutoContest(machine, op).expect_close({"2K", "2M", "4"}, "");
    }
  }
}

TEST(AutoEverywhere, ByTunedTables) {
  for (const auto& machine : {kRing8, kTorus4x4}) {
    for (const char* op : kOps) {
      SCOPED_TRACE(machine.at(1));
      const AutoContest contest(machine, op);
      contest.tune({"1K", "1M", "4"}, "tuned.yaml");
      contest.expect_close({"2K", "512K", "4"}, "tuned.yaml");
    }
  }
}

}  // namespace
}  // namespace kernbench
