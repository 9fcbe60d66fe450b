#include <gmock/gmock.h>

#include <fstream>

#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

using ::testing::HasSubstr;
using Args = std::vector<std::string>;

/// Four SIPs of two cubes of two PEs.
Args small(Args arguments) {
  arguments.insert(arguments.end(), {"--topology", "ring8", "--set", "system.sips.count=4", "--set",
                                     "sip.cube_mesh.w=2", "--set", "sip.cube_mesh.h=1", "--set", "cube.pes=2"});
  return arguments;
}
Args with(Args arguments, const Args& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}
const Args kMlp = {"run", "tp_mlp", "--batch", "3", "--in", "40", "--hidden", "64", "--out", "24"};

TEST(TpMlp, EveryRankAgreesWithTheHostsModel) {
  const Tool tool;
  const auto rows = rows_of(tool, small(kMlp));
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["check"], "ok") << row;
    EXPECT_EQ(row["ranks"], 4);
    EXPECT_EQ(row["batch"], 3);
  }
  EXPECT_EQ(rows[0]["layer"], "fc1");
  EXPECT_EQ(rows[0]["launches"], 1);
  EXPECT_EQ(rows[0]["collectives"], 0);
  EXPECT_EQ(rows[1]["launches"], 2) << "GEMM, then bias after the all-reduce";
  EXPECT_EQ(rows[1]["collectives"], 1);
  EXPECT_EQ(rows[2]["launches"], 3);
  EXPECT_GE(rows[2]["time_ns"].get<double>(), rows[1]["time_ns"].get<double>());
}

TEST(TpMlp, DefaultsAreThoseOfTheSpecification) {
  const Tool tool;
  const auto rows = rows_of(tool, small({"run", "tp_mlp"}));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["batch"], 1);
  EXPECT_EQ(rows[0]["in"], 512);
  EXPECT_EQ(rows[0]["out"], 2048);
  EXPECT_EQ(rows[1]["out"], 512);
  EXPECT_EQ(rows[0]["dtype"], "f16");
  for (const auto& row : rows) EXPECT_EQ(row["check"], "ok") << row;
}

TEST(TpMlp, ServesTypesActivationsAndPlacements) {
  const Tool tool;
  for (const Args& more : {Args{"--dtype", "f32", "--activation", "silu"}, Args{"--dtype", "bf16", "--bias", "0"},
                           Args{"--weight-placement", "cube=row_wise,pe=tiled_row_major", "--output-placement",
                                "cube=replicate,pe=row_wise", "--activation", "none"},
                           Args{"--scheduling", "rounds"}, Args{"--host-io", "timed"}}) {
    for (const auto& row : rows_of(tool, small(with(kMlp, more)))) EXPECT_EQ(row["check"], "ok") << row << more[1];
  }
}

/// f32, f64 and bf16 with sums that grow with the input, in all of which the host's bounds have to hold.
TEST(TpMlp, ServesEveryTypeWithSmallAndLargeInputs) {
  const Tool tool;
  for (const char* dtype : {"f16", "bf16", "f32", "f64"}) {
    for (const char* input : {"0.1", "-3", "100"}) {
      for (const auto& row : rows_of(tool, small(with(kMlp, {"--dtype", dtype, "--input", input})))) {
        EXPECT_EQ(row["check"], "ok") << row << input;
        EXPECT_EQ(row["dtype"], dtype);
      }
    }
  }
}

TEST(TpMlp, RunsWithItsDefaultSizesOnAWholePreset) {
  const Tool tool;
  const auto rows = rows_of(tool, {"run", "tp_mlp", "--topology", "ring8", "--fidelity", "fast"});
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["check"], "ok") << row;
    EXPECT_EQ(row["ranks"], 8);
  }
}

TEST(TpMlp, RefusesRanksThatArePes) {
  const Tool tool;
  std::ofstream(tool.file("ccl.yaml"))
      << "algorithms: { ring: { module: kernbench.ccl.ring_allreduce, world_size: 8 } }\n";
  const Outcome outcome = tool(small(with(kMlp, {"--ccl", "ccl.yaml", "--algorithm", "ring"})));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "kernbench: error: --ccl gives a world_size of 8; a tensor-parallel rank is a SIP, of which there are 4\n");
}

TEST(TpMlp, TakesTheSameTimeWithoutData) {
  const Tool tool;
  for (const char* io : {"debug", "timed"}) {
    const auto on = rows_of(tool, small(with(kMlp, {"--host-io", io})));
    const auto off = rows_of(tool, small(with(kMlp, {"--host-io", io, "--data", "off"})));
    ASSERT_EQ(on.size(), off.size());
    for (std::size_t i = 0; i < on.size(); ++i) {
      EXPECT_EQ(off[i]["check"], "skipped");
      EXPECT_EQ(on[i]["time_ns"], off[i]["time_ns"]);
      EXPECT_EQ(on[i]["launch_ns"], off[i]["launch_ns"]);
      EXPECT_EQ(on[i]["collective_ns"], off[i]["collective_ns"]);
    }
  }
}

TEST(TpMlp, RefusesBadOptionsBeforeItRuns) {
  const Tool tool;
  const Outcome hidden = tool(small({"run", "tp_mlp", "--hidden", "30"}));
  EXPECT_EQ(hidden.code, 2);
  EXPECT_EQ(hidden.err, "kernbench: error: --hidden is 30; give a multiple of the machine's 4 SIPs\n");
  const Outcome type = tool(small({"run", "tp_mlp", "--dtype", "i8"}));
  EXPECT_EQ(type.code, 2);
  EXPECT_EQ(type.err, "kernbench: error: --dtype is 'i8'; give f16, bf16, f32 or f64\n");
  const Outcome activation = tool(small({"run", "tp_mlp", "--activation", "glu"}));
  EXPECT_EQ(activation.code, 2);
  EXPECT_THAT(activation.err, HasSubstr("--activation is 'glu'; did you mean"));
}

TEST(Placement, CommandLineNamesTheOptionAndWhatIsWrong) {
  const Tool tool;
  const auto error_of = [&](const std::string& option, const std::string& value) {
    const Outcome outcome = tool(small({"run", "tp_mlp", option, value}));
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  for (const char* option : {"--weight-placement", "--output-placement", "--input-placement", "--bias-placement"}) {
    EXPECT_EQ(error_of(option, "cube=row_wise,cube=row_wise"),
              std::string("kernbench: error: ") + option + " gives 'cube' twice\n");
  }
  EXPECT_EQ(error_of("--weight-placement", "pes=0"),
            "kernbench: error: --weight-placement pes is '0'; give a number of at least 1\n");
  EXPECT_EQ(error_of("--weight-placement", "cub=row_wise"),
            "kernbench: error: --weight-placement has no key 'cub'; did you mean 'cube'?\n");
}

TEST(Placement, AYamlFileSaysTheSameAsTheCommandLine) {
  const Tool tool;
  std::ofstream(tool.file("p.yaml")) << "cube: row_wise\npe: tiled_row_major\nnum_pes: 1\n";
  const auto from_file = rows_of(tool, small(with(kMlp, {"--weight-placement", "p.yaml"})));
  const auto from_line =
      rows_of(tool, small(with(kMlp, {"--weight-placement", "cube=row_wise,pe=tiled_row_major,pes=1"})));
  EXPECT_EQ(from_file, from_line);
}

TEST(Placement, AYamlFileWithASipAxisIsALocatedError) {
  const Tool tool;
  std::ofstream(tool.file("p.yaml")) << "cube: row_wise\nnum_sips: 2\n";
  for (const char* workload : {"tp_mlp", "va_offset_verify"}) {
    const std::string option = std::string(workload) == "tp_mlp" ? "--weight-placement" : "--placement";
    const Outcome outcome = tool(small({"run", workload, option, "p.yaml"}));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err,
              "p.yaml:2:1: error: unknown key 'num_sips' in 'policy'\n"
              "  hint: placement has no SIP axis: a tensor lives on its rank's SIP, chosen by set_device(rank); which "
              "rank owns what is tensor parallelism\n");
  }
}

TEST(Placement, CommandLineRefusesASipAxisAndAFlatIndex) {
  const Tool tool;
  const Outcome sip = tool(small({"run", "all_reduce", "--placement", "cube=row_wise,num_sips=2"}));
  EXPECT_EQ(sip.code, 2);
  EXPECT_EQ(
      sip.err,
      "kernbench: error: --placement has no key 'num_sips': placement has no SIP axis: a tensor lives on its rank's "
      "SIP, chosen by set_device(rank); which rank owns what is tensor parallelism\n");
  const Outcome flat = tool(small({"run", "tp_mlp", "--weight-placement", "pe_index=3"}));
  EXPECT_EQ(flat.code, 2);
  EXPECT_THAT(flat.err, HasSubstr("there is no flat PE index: give 'sip', 'cube' and 'pe'"));
}

TEST(Qkv, EveryRanksHeadsAgreeWithTheHost) {
  const Tool tool;
  const auto rows = rows_of(tool, small({"run", "qkv", "--tokens", "5", "--heads", "8", "--head-size", "6"}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["check"], "ok");
  EXPECT_EQ(rows[0]["hidden"], 48);
  const Outcome heads = tool(small({"run", "qkv", "--heads", "6"}));
  EXPECT_EQ(heads.code, 2);
  EXPECT_EQ(heads.err, "kernbench: error: --heads is 6; give a multiple of the machine's 4 SIPs\n");
}

TEST(VaOffsetVerify, EveryPlacementLeadsToItsOwnersMemory) {
  const Tool tool;
  const auto rows = rows_of(tool, small({"run", "va_offset_verify", "--bytes", "1000"}));
  EXPECT_EQ(rows.size(), 4u * 15 * 3);  // SIPs, placements, distances
  for (const auto& row : rows) EXPECT_EQ(row["check"], "ok") << row;
}

TEST(VaOffsetVerify, ServesShardsOfEightBytesOnTheDefaultMachine) {
  const Tool tool;
  const auto rows =
      rows_of(tool, {"run", "va_offset_verify", "--bytes", "1K", "--placement", "cube=column_wise,pe=column_wise"});
  ASSERT_EQ(rows.size(), 6u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["check"], "ok") << row;
    EXPECT_EQ(row["shards"], 128);
  }
}

TEST(VaOffsetVerify, AllPePlacementsWithFewerCubesAndPes) {
  const Tool tool;
  const auto rows = rows_of(
      tool, small({"run", "va_offset_verify", "--bytes", "96", "--placement", "cube=row_wise,pe=row_wise,pes=1"}));
  for (const auto& row : rows) EXPECT_EQ(row["shards"], 2) << row;
}

}  // namespace
}  // namespace kernbench
