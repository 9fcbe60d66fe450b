#include "tests/acceptance/train_band.h"

namespace kernbench {
namespace {

constexpr double kRefreshNs = 350;  // source: JESD238A, t_rfc_ab of preset HBM3-6400

/// Layers of a language model's size, on which trains were once 12 % wrong: minutes of CPU time.
TEST(TrainsComplete, MlpsOfALanguageModelsSizeKeepToThePrintedBand) {
  EXPECT_GT(largest_error_within_the_printed(
                {"run", "tp_mlp", "--in", "4096", "--hidden", "14336", "--out", "4096", "--batch", "128"}, kRefreshNs),
            0)
      << "nothing was compared";
}

/// docs/fidelity.md has what each is off by.
TEST(TrainsComplete, LayersOfLanguageModelsKeepToTheirPrintedBand) {
  const std::vector<std::vector<std::string>> runs{
      {"--topology", "ring8", "--layers", "2", "--prompt", "128", "--decode", "1"},
      {"--topology", "ring8", "--layers", "1", "--prompt", "512", "--decode", "0"},
      {"--topology", "ring8", "--layers", "2", "--prompt", "0", "--context", "2048", "--batch", "8", "--decode", "2"},
      {"--tp", "1", "--layers", "1", "--prompt", "128", "--decode", "1"},
      {"--tp", "1", "--layers", "1", "--prompt", "512", "--decode", "0"},
      {"--tp", "1", "--layers", "2", "--prompt", "0", "--context", "2048", "--batch", "8", "--decode", "1"},
      {"--model", "mixtral-8x7b", "--topology", "ring8", "--layers", "2", "--prompt", "64", "--decode", "1"},
      {"--model", "gpt3-175b", "--topology", "ring8", "--layers", "1", "--prompt", "32", "--decode", "1"}};
  for (const std::vector<std::string>& run : runs) EXPECT_GT(largest_error_of_layers_within_the_printed(run), 0);
}

}  // namespace
}  // namespace kernbench
