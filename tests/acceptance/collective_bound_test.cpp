#include "tests/acceptance/collective_bound.h"

namespace kernbench {
namespace {

/// Sizes at which the start and end of a schedule still count, so that runs stay short: what is asked is a little less
/// than what was reached. The sizes of the promise are in collective_bound_complete.cpp.
class LargeMessages : public testing::TestWithParam<LargeCase> {};

TEST_P(LargeMessages, KeepTheirFractionOfTheBound) {
  const double fraction = fraction_of_bound(GetParam());
  EXPECT_GE(fraction, GetParam().least);
  EXPECT_LE(fraction, 1);
}

const std::vector<std::string> kDefault{};
/// Eight SIPs with a link for each pair: seven links leave a SIP at one IO chiplet.
const std::vector<std::string> kConnected8{"--topology", "fc8"};
/// Four SIPs as those of ring8: 16 PEs share a link, and a region lies on four of them.
const std::vector<std::string> kRing4{"--topology", "ring8", "--set", "system.sips.count=4"};
/// Nine SIPs of 128 PEs, which carry one of six trees each (decision 0370).
const std::vector<std::string> kMesh3{"--set", "system.sips.topology=mesh_2d_no_wrap",
                                      "--set", "system.sips.count=9",
                                      "--set", "system.sips.w=3",
                                      "--set", "system.sips.h=3"};

/// Blocks that do not divide by the lanes (docs/collective_algorithms.md, Lanes).
const std::vector<std::string> kRing3{"--topology", "ring8", "--set", "system.sips.count=3"};
const std::vector<std::string> kTorus3x3{
    "--topology", "ring8",           "--set", "system.sips.count=9", "--set", "system.sips.topology=torus_2d",
    "--set",      "system.sips.w=3", "--set", "system.sips.h=3"};

INSTANTIATE_TEST_SUITE_P(
    Collectives, LargeMessages,
    testing::Values(
        LargeCase{"pair", kDefault, "all_reduce", "4M", 0.93}, LargeCase{"pair", kDefault, "all_gather", "4M", 0.91},
        LargeCase{"pair", kDefault, "reduce_scatter", "4M", 0.92},
        LargeCase{"pair", kDefault, "all_to_all", "4M", 0.90},
        // A second call: the first, behind its program, meets one refresh more (0.920).
        LargeCase{"connected8", kConnected8, "all_reduce", "8M", 0.92, "1"},
        LargeCase{"connected8", kConnected8, "reduce_scatter", "16M", 0.91},
        LargeCase{"ring4", kRing4, "all_reduce", "16M", 0.89}, LargeCase{"ring4", kRing4, "all_gather", "16M", 0.86},
        LargeCase{"ring4", kRing4, "reduce_scatter", "16M", 0.86},
        LargeCase{"ring4", kRing4, "all_to_all", "16M", 0.90}, LargeCase{"ring3", kRing3, "all_to_all", "16M", 0.90},
        LargeCase{"torus3x3", kTorus3x3, "reduce_scatter", "16M", 0.85},
        LargeCase{"mesh4x4", {"--topology", "mesh4x4"}, "all_reduce", "16M", 0.89},
        LargeCase{"mesh3x3", kMesh3, "all_reduce", "8M", 0.88}),
    name_of);

}  // namespace
}  // namespace kernbench
