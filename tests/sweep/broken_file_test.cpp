#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sc_main/sweep/sweep_file.h"

namespace kernbench::sweep {
namespace {
namespace fs = std::filesystem;

fs::path folder() { return fs::path(KERNBENCH_SOURCE_DIR) / "tests" / "sweep" / "broken"; }

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

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

INSTANTIATE_TEST_SUITE_P(Files, BrokenSweepFile, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param; });

TEST(BrokenSweepFiles, AreAtLeastTwenty) { EXPECT_GE(cases().size(), 20U); }

}  // namespace
}  // namespace kernbench::sweep
