#include "tests/acceptance/train_band.h"

namespace kernbench {
namespace {

constexpr double kRefreshNs = 350;  // source: JESD238A, t_rfc_ab of preset HBM3-6400

/// Layers of a language model's size, on which trains were once 12 % wrong: minutes of CPU time.
TEST(TrainsComplete, LayersOfALanguageModelKeepToThePrintedBand) {
  EXPECT_GT(largest_error_within_the_printed(
                {"run", "tp_mlp", "--in", "4096", "--hidden", "14336", "--out", "4096", "--batch", "128"}, kRefreshNs),
            0)
      << "nothing was compared";
}

}  // namespace
}  // namespace kernbench
