#include <gtest/gtest.h>

#include <optional>

#include "topology/plan/deadlock.h"
#include "topology/plan/plan.h"
#include "topology/plan/throttles.h"
#include "topology/spec/embedded_presets.h"
#include "topology/spec/resolve.h"

namespace kernbench::topology {
namespace {

class EveryPreset : public ::testing::TestWithParam<std::string> {};

// All pairs of 784 SIPs would be 10^10 walks: a plan of many SIPs walks representatives only, which
// Deadlock's tests compare with all pairs.
TEST_P(EveryPreset, HasNoCycleOfChannels) {
  std::optional<Plan> plan;
  ASSERT_NO_THROW(plan.emplace(resolve(GetParam()).spec));  // throws on a cycle among representatives
  EXPECT_TRUE(throttles(*plan).empty()) << throttles(*plan).front().text;
  if (plan->map.sips > 64) return;
  EXPECT_GT(check_deadlock(*plan, Coverage::everything).dependencies, 0u);
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
