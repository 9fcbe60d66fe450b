#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

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

using Machine = std::tuple<const char*, const char*, const char*>;  // preset, dtype, scope

class AllReduceMachines : public testing::TestWithParam<Machine> {};

TEST_P(AllReduceMachines, IsRightInEveryElement) {
  const auto& [preset, dtype, scope] = GetParam();
  expect_checked(run_json(with(kSizes, {"--topology", preset, "--dtype", dtype, "--scope", scope})), 3);
}

INSTANTIATE_TEST_SUITE_P(Acceptance, AllReduceMachines,
                         testing::Combine(testing::Values("default", "ring8", "torus4x4", "mesh4x4"),
                                          testing::Values("f16", "bf16", "f32", "i32"), testing::Values("sip", "cube")),
                         [](const auto& info) {
                           return name_of(std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param) + "_" +
                                          std::get<2>(info.param));
                         });

using Placement = std::tuple<const char*, const char*, const char*>;  // cubes, PEs, scope

class AllReducePlacements : public testing::TestWithParam<Placement> {};

TEST_P(AllReducePlacements, AreRightInEveryElement) {
  const auto& [cubes, pes, scope] = GetParam();
  const std::string placement = std::string("cube=") + cubes + ",pe=" + pes;
  expect_checked(run_json(with(kSizes, {"--placement", placement, "--scope", scope})), 3);
}

INSTANTIATE_TEST_SUITE_P(Acceptance, AllReducePlacements,
                         testing::Combine(testing::Values("row_wise", "column_wise", "replicate"),
                                          testing::Values("row_wise", "column_wise", "replicate"),
                                          testing::Values("sip", "cube")),
                         [](const auto& info) {
                           return name_of(std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param) + "_" +
                                          std::get<2>(info.param));
                         });

class AllReduceOperations : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(AllReduceOperations, AreRightInEveryElement) {
  const auto& [op, dtype] = GetParam();
  expect_checked(
      run_json({"run", "all_reduce", "--topology", "ring8", "-b", "1K", "-w", "0", "--op", op, "--dtype", dtype}), 1);
}

INSTANTIATE_TEST_SUITE_P(Acceptance, AllReduceOperations,
                         testing::Combine(testing::Values("sum", "avg", "max", "min", "prod"),
                                          testing::Values("f16", "f8e4m3", "f8e5m2")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
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
