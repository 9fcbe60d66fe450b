#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sc_main/explore/sweep/sweep_file.h"
#include "tests/support/files_with_texts.h"

namespace kernbench::sweep {
namespace {
namespace fs = std::filesystem;

fs::path folder() { return fs::path(KERNBENCH_SOURCE_DIR) / "tests" / "sweep" / "broken"; }

class BrokenSweepFile : public ::testing::TestWithParam<std::string> {};

/// The file's errors, word for word and with their places; beside each file stands what is expected.
TEST_P(BrokenSweepFile, IsRefusedWithAllItsProblemsAtTheirPlaces) {
  fs::current_path(folder());
  std::string found;
  try {
    load_sweep(GetParam() + ".yaml");
  } catch (const ConfigError& error) {
    found = std::string(error.what()) + "\n";
  }
  if (std::getenv("KERNBENCH_REGENERATE") != nullptr) std::ofstream(GetParam() + ".txt") << found;
  EXPECT_EQ(found, text_of(folder() / (GetParam() + ".txt")));
  EXPECT_NE(found, "");
}

INSTANTIATE_TEST_SUITE_P(Files, BrokenSweepFile, ::testing::ValuesIn(yaml_files(folder())),
                         [](const auto& info) { return info.param; });

TEST(BrokenSweepFiles, AreAtLeastTwenty) { EXPECT_GE(yaml_files(folder()).size(), 20U); }

}  // namespace
}  // namespace kernbench::sweep
