#include <gtest/gtest.h>

#include "tests/acceptance/run_json.h"

// The table of docs/collectives.md, Small data: what `auto` takes needs at most 1.5 times the latency bound. Means of
// eight iterations: how refreshes of the HBM fall is chance.
namespace kernbench {
namespace {

using Words = std::vector<std::string>;

class SmallData : public testing::TestWithParam<std::pair<const char*, Words>> {};

TEST_P(SmallData, TakesAtMostOneAndAHalfTimesTheBound) {
  for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather",
                         "scatter", "send_recv"}) {
    for (const char* scope : {"sip", "cube"}) {
      for (const char* fidelity : {"fast", "accurate"}) {
        const auto json =
            run_json(with({"run", op, "-b", "1K", "-n", "8", "--scope", scope, "--fidelity", fidelity, "--data", "off"},
                          GetParam().second));
        const auto& row = json["results"][0];
        EXPECT_EQ(row["bound_name"], "latency") << row.dump();
        EXPECT_LE(row["time_ns"].get<double>(), 1.5 * row["bound_ns"].get<double>()) << fidelity << ": " << row.dump();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, SmallData,
    testing::Values(std::pair<const char*, Words>{"ring4", {"--topology", "ring8", "--set", "system.sips.count=4"}},
                    std::pair<const char*, Words>{"ring8", {"--topology", "ring8"}},
                    std::pair<const char*, Words>{"ring16", {"--topology", "ring8", "--set", "system.sips.count=16"}},
                    std::pair<const char*, Words>{"torus4x4", {"--topology", "torus4x4"}},
                    std::pair<const char*, Words>{"torus8x8", {"--topology", "torus8x8"}},
                    std::pair<const char*, Words>{"mesh4x4", {"--topology", "mesh4x4"}},
                    std::pair<const char*, Words>{
                        "pairs8", {"--topology", "ring8", "--set", "system.sips.topology=fully_connected"}},
                    std::pair<const char*, Words>{"default", {"--topology", "default"}},
                    std::pair<const char*, Words>{"fc8", {"--topology", "fc8"}}),
    [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace kernbench
