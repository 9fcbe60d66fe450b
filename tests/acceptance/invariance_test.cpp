#include <gtest/gtest.h>

#include "tests/acceptance/run_json.h"

namespace kernbench {
namespace {
using nlohmann::ordered_json;

struct Run {
  const char* name;
  std::vector<std::string> arguments;
};

/// What a run says of the simulated machine: all but the host's figures.
std::string machine_part(ordered_json json) {
  json.erase("host");
  return json.dump(1);
}

/// Simulated time and rows, without the fields that tell of the check of the data.
std::string times(const ordered_json& json) {
  ordered_json rows = json["results"];
  for (ordered_json& row : rows) {
    for (const char* key : {"check", "mismatches", "max_abs_err"}) row.erase(key);
  }
  return json["sim_time_ps"].dump() + "\n" + rows.dump(1);
}

class Invariance : public testing::TestWithParam<Run> {};

TEST_P(Invariance, TwoRunsAreByteIdentical) {
  EXPECT_EQ(machine_part(run_json(GetParam().arguments)), machine_part(run_json(GetParam().arguments)));
}

TEST_P(Invariance, DataChangeNoTime) {
  const ordered_json on = run_json(with(GetParam().arguments, {"--data", "on"})),
                     off = run_json(with(GetParam().arguments, {"--data", "off"}));
  EXPECT_EQ(on["data"], true);
  EXPECT_EQ(off["data"], false);
  EXPECT_GT(on["sim_time_ps"], 0);
  EXPECT_EQ(times(on), times(off));
}

TEST_P(Invariance, TheRecordersWindowChangesNothing) {
  EXPECT_EQ(machine_part(run_json(with(GetParam().arguments, {"--recorder-window", "1"}))),
            machine_part(run_json(with(GetParam().arguments, {"--recorder-window", "4096"}))));
}

/// `arguments` on two SIPs of two cubes.
std::vector<std::string> small(const std::vector<std::string>& arguments) {
  return with(arguments, {"--set", "sip.cube_mesh.w=2", "--set", "sip.cube_mesh.h=1"});
}

INSTANTIATE_TEST_SUITE_P(
    Acceptance, Invariance,
    testing::Values(Run{"all_reduce", small({"run", "all_reduce", "-b", "1K", "-e", "16K", "-f", "4"})},
                    Run{"all_reduce_cubes", small({"run", "all_reduce", "-b", "4K", "--scope", "cube"})},
                    Run{"gemm_single_pe", {"run", "gemm_single_pe", "--topology", "minimal"}},
                    Run{"gemm", small({"run", "gemm", "--m", "64", "--n", "64", "--k", "64"})},
                    Run{"p2p", small({"run", "p2p", "-b", "64", "-e", "4K"})},
                    Run{"stream", {"run", "stream", "--topology", "minimal", "--bytes", "32K"}},
                    Run{"probe", small({"run", "probe", "--bytes", "4K"})}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kernbench
