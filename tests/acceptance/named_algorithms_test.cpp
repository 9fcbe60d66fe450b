#include "tests/acceptance/named_algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "ccl/select/registry.h"

namespace kernbench {
namespace {

class NamedAlgorithms : public ::testing::TestWithParam<named::Run> {};
INSTANTIATE_TEST_SUITE_P(Acceptance, NamedAlgorithms, ::testing::ValuesIn(named::runs()),
                         [](const auto& info) { return named::name(info.param); });

TEST_P(NamedAlgorithms, AreRightInEveryElementWhereverTheySayTheyServe) {
  EXPECT_EQ(named::wrong_with(GetParam()), "");
}

class PublishedAlgorithm : public NamedAlgorithms {};
INSTANTIATE_TEST_SUITE_P(Acceptance, PublishedAlgorithm, ::testing::ValuesIn(named::published()),
                         [](const auto& info) { return named::name(info.param); });

TEST_P(PublishedAlgorithm, IsRightInEveryElementOnSipsOf4x4Cubes) { EXPECT_EQ(named::wrong_with(GetParam()), ""); }

TEST(NamedAlgorithmsTable, HoldsEveryAlgorithmOfTheRegistryOnEveryTopologyOfItsModule) {
  std::set<std::pair<std::string, std::string>> rows;
  for (const named::Run& run : named::runs()) rows.emplace(run.algorithm, run.machine.kind);
  std::size_t count = 0;
  for (const std::string& name : ccl::Registry().names()) {
    const auto algorithm = ccl::Registry().load(name).algorithm;
    for (const char* kind : {"ring_1d", "torus_2d", "mesh_2d_no_wrap", "switch", "fully_connected"}) {
      if ((algorithm->topologies & ccl::topology_bit(ccl::standard_topology_kind(kind))) == 0) continue;
      EXPECT_EQ(rows.count({name, kind}), 1u) << name << " on " << kind;
      ++count;
    }
  }
  EXPECT_EQ(count, rows.size());
  EXPECT_GE(ccl::Registry().names().size(), 14u) << "those of docs/collectives.md";
}

}  // namespace
}  // namespace kernbench
