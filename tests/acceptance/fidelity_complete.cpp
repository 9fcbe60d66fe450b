#include "tests/acceptance/train_band.h"

namespace kernbench {
namespace {

constexpr double kRefreshNs = 350;  // source: JESD238A, t_rfc_ab of preset HBM3-6400

/// The layer in which trains are most wrong (docs/fidelity.md): three minutes of CPU time.
TEST(TrainsComplete, TheWorstLayerKeepsToThePrintedBand) {
  EXPECT_GT(largest_error_within_the_printed(
                {"run", "tp_mlp", "--in", "4096", "--hidden", "14336", "--out", "4096", "--batch", "128"}, kRefreshNs),
            0.1)
      << "the band may be narrower";
}

}  // namespace
}  // namespace kernbench
