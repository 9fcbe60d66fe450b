#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/acceptance/run_json.h"

namespace kernbench {
namespace {
using nlohmann::ordered_json;

std::string name_of(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

void expect_checked(const ordered_json& json, std::size_t rows) {
  EXPECT_EQ(json["results"].size(), rows);
  for (const ordered_json& row : json["results"]) EXPECT_EQ(row["check"], "ok") << row.dump();
}

/// Sizes of 1, 4 and 16 KiB.
const std::vector<std::string> kSizes{"run", "all_reduce", "-b", "1K", "-e", "16K", "-f", "4", "-w", "0"};

/// The presets as they are, whose SIPs are larger than those of collective_matrix_test, which has all pairs of types,
/// operations and placements.
using Machine = std::tuple<const char*, std::pair<const char*, const char*>>;  // preset, dtype and scope

class AllReduceMachines : public testing::TestWithParam<Machine> {};

TEST_P(AllReduceMachines, IsRightInEveryElement) {
  const auto& [preset, form] = GetParam();
  const auto& [dtype, scope] = form;
  expect_checked(run_json(with(kSizes, {"--topology", preset, "--dtype", dtype, "--scope", scope})), 3);
}

INSTANTIATE_TEST_SUITE_P(Acceptance, AllReduceMachines,
                         testing::Combine(testing::Values("default", "ring8", "torus4x4", "mesh4x4"),
                                          testing::Values(std::pair("f16", "sip"), std::pair("i32", "cube"))),
                         [](const auto& info) {
                           return name_of(std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).first +
                                          "_" + std::get<1>(info.param).second);
                         });

class GemmTypes : public testing::TestWithParam<const char*> {};

TEST_P(GemmTypes, AreRightInEveryElement) {
  expect_checked(run_json({"run", "gemm_single_pe", "--topology", "minimal", "--dtype", GetParam()}), 2);
  expect_checked(
      run_json({"run", "gemm", "--topology", "minimal", "--m", "64", "--n", "48", "--k", "96", "--dtype", GetParam()}),
      1);
}

INSTANTIATE_TEST_SUITE_P(Acceptance, GemmTypes, testing::Values("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kernbench
