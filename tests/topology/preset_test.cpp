#include <gtest/gtest.h>

#include "topology/deadlock.h"
#include "topology/plan.h"
#include "topology/resolve.h"

namespace kernbench::topology {
namespace {

class EveryPreset : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPreset, HasNoCycleOfChannels) {
  const Plan plan(resolve(GetParam()).spec);
  const DeadlockStats stats = check_deadlock(plan, Coverage::everything);
  EXPECT_GT(stats.dependencies, 0u);
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const PresetInfo& preset : presets()) names.push_back(preset.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Presets, EveryPreset, ::testing::ValuesIn(preset_names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace kernbench::topology
