// GEMMs and layers on machines that lack PEs, whose SIPs are unlike, or that are very small.
#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <tuple>

#include "tests/workloads/small_transformer.h"
#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

/// Of a result of half the bytes much still waits to be written when the launch has ended. A run that beats its bound
/// ends with an error.
TEST(OddMachines, NoGemmBeatsItsBoundWhereWritesWait) {
  const Tool tool;
  for (const auto& [m, n, k, dtype] : {std::tuple("256", "64", "32", "f16"), std::tuple("256", "32", "32", "f16"),
                                       std::tuple("512", "32", "16", "f16"), std::tuple("512", "64", "16", "f16"),
                                       std::tuple("512", "32", "4", "f32")}) {
    for (const char* fidelity : {"fast", "accurate"}) {
      const auto row = rows_of(tool, {"run", "gemm", "--topology", "minimal", "--m", m, "--n", n, "--k", k, "--dtype",
                                      dtype, "--data", "off", "--fidelity", fidelity})
                           .at(0);
      EXPECT_GT(row["bound_share"].get<double>(), 0.75) << row;
      EXPECT_LE(row["bound_share"].get<double>(), 1) << row;
    }
  }
}

/// Places of shards are no numbers of cubes where a cube has no PEs.
TEST(OddMachines, EveryMappingOfAGemmIsRightWhereACubeHasNoPes) {
  const Tool tool;
  for (const char* missing : {"0", "1"}) {
    std::ofstream(tool.file("machine.yaml"))
        << "extends: minimal\nsip: {cube_mesh: {w: 3, h: 1}}\ncube: {pes: 2}\noverrides:\n  - {match: 'sip0.cube"
        << missing << ".pe*', missing: true}\n";
    for (const auto& [mapping, rows, operands] :
         {std::tuple("split", "8", "packed"), std::tuple("split", "8", "packed-row"), std::tuple("split", "8", "rows"),
          std::tuple("lanes", "1", "packed"), std::tuple("stream", "8", "packed"), std::tuple("stream", "8", "row")}) {
      const auto results = rows_of(tool, {"run", "gemm", "--topology", "machine.yaml", "--m", rows, "--n", "64", "--k",
                                          "128", "--mapping", mapping, "--operands", operands, "--fidelity", "fast"});
      ASSERT_EQ(results.size(), 1u);
      EXPECT_EQ(results[0]["check"], "ok") << mapping << operands << missing;
    }
  }
}

TEST(OddMachines, EveryRankOfATransformerAgreesWithTheHostsModelWhereACubeHasNoPes) {
  const Tool tool;
  std::ofstream(tool.file("small.yaml")) << small_model(1);
  std::ofstream(tool.file("machine.yaml"))
      << "extends: minimal\nsystem: {sips: {count: 2}}\nsip: {cube_mesh: {w: 3, h: 1}}\ncube: {pes: 2}\n"
      << "overrides:\n  - {match: 'sip*.cube0.pe*', missing: true}\n";
  for (const char* prompt : {"1", "52"}) {
    const auto rows =
        rows_of(tool, {"run", "tp_transformer", "--topology", "machine.yaml", "--model", "small.yaml", "--batch", "3",
                       "--prompt", prompt, "--decode", "1", "-w", "0", "--fidelity", "fast"});
    ASSERT_GE(rows.size(), 4u);
    for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i]["check"], "ok") << rows[i];
  }
}

/// Every rank has to cut the same chunks, whatever its own array.
TEST(OddMachines, ChunksThatOverlapAreAlikeWhereSipsHaveOtherArrays) {
  const Tool tool;
  std::ofstream(tool.file("machine.yaml")) << "extends: minimal\nsystem: {sips: {count: 2}}\n"
                                           << "overrides:\n  - {match: sip0.cube0.pe0, pe: {gemm: {rows: 8}}}\n";
  const auto rows = rows_of(
      tool, {"run", "tp_mlp", "--topology", "machine.yaml", "--batch", "20", "--overlap", "2", "--fidelity", "fast"});
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) EXPECT_EQ(row.value("check", "ok"), "ok") << row;
}

/// What a launch reads may be an element: its first answer is no packet of 256 B.
TEST(OddMachines, AnMlpOfAnElementTakesNoLessThanItsBoundOverNarrowPorts) {
  const Tool tool;
  const auto rows = rows_of(tool, {"run", "tp_mlp", "--topology", "minimal", "--set", "cube.noc.flit_size=8B", "--set",
                                   "cube.noc.clock=200MHz", "--in", "1", "--hidden", "1", "--out", "1"});
  ASSERT_GE(rows.size(), 2u);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LE(rows[i]["bound_share"], 1) << rows[i];  // behind set-up's
}

/// Elements of 64 bits take two lanes, and all of a single one.
TEST(OddMachines, AnMlpRunsInF64OnAMathEngineOfOneLane) {
  const Tool tool;
  const auto rows = rows_of(tool, {"run", "tp_mlp", "--topology", "minimal", "--set", "pe.math.lanes=1", "--dtype",
                                   "f64", "--in", "16", "--hidden", "16", "--out", "16"});
  EXPECT_FALSE(rows.empty());
}

/// The peak is that of the engine that does more: here a math engine beside an array of one cell.
TEST(OddMachines, AGemmReachesNoMoreThanItsPeakOnTheMathEngine) {
  const Tool tool;
  const auto rows = rows_of(tool, {"run",        "gemm",
                                   "--topology", "minimal",
                                   "--operands", "packed",
                                   "--m",        "8",
                                   "--n",        "8",
                                   "--k",        "512",
                                   "--mapping",  "vector",
                                   "--set",      "pe.gemm.rows=1",
                                   "--set",      "pe.gemm.cols=1",
                                   "--fidelity", "fast"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_LE(rows[0]["fraction_of_peak"], 1);
}

/// Tiles are cut to TCM, and gaps between them do not stop a kernel while what it only holds back lies there.
TEST(OddMachines, AGemmThatIsPlannedFitsTheTcm) {
  const Tool tool;
  const std::vector<std::string> four = {"--set", "cube.pes=4",         "--set", "cube.noc.rows=4",
                                         "--set", "cube.noc.cols=4",    "--set", "cube.hbm.channels=8",
                                         "--set", "cube.hbm.size=8 GiB"};
  struct Case {
    const char *tcm, *m, *n, *k, *operands, *dtype;
    bool four;
  };
  for (const Case& c : {Case{"256 KiB", "16", "512", "1024", "over-cubes-row", "f32", true},
                        Case{"256 KiB", "64", "512", "4096", "over-cubes-row", "f8e4m3", true},
                        Case{"256 KiB", "200", "267", "1024", "over-cubes-row", "f32", false},
                        Case{"512 KiB", "5", "4096", "4096", "grid", "f16", true},
                        Case{"1 MiB", "16", "14336", "1024", "packed", "f16", false},
                        Case{"16 MiB", "16", "4096", "14336", "packed", "f16", false}}) {
    std::vector<std::string> arguments = {
        "run",        "gemm",     "--topology", "minimal", "--fidelity", "fast",  "--m",
        c.m,          "--n",      c.n,          "--k",     c.k,          "--set", std::string("pe.tcm.size=") + c.tcm,
        "--operands", c.operands, "--dtype",    c.dtype};
    if (c.four) arguments.insert(arguments.end(), four.begin(), four.end());
    const auto rows = rows_of(tool, arguments);
    ASSERT_EQ(rows.size(), 1u) << c.tcm << " " << c.m << "x" << c.n << "x" << c.k;
    EXPECT_EQ(rows[0]["check"], "ok") << rows[0];
  }
}

const char* const kWideModel =
    "layers: 1\nwidth: 512\nheads: 8\nkv_heads: 2\nhead_dim: 64\nmlp_width: 512\n"
    "gated: true\nactivation: silu\nnorm: rms\nepsilon: 1e-5\nvocabulary: 512\n"
    "position: rotary\nrope_theta: 1000\npositions: 512\nbiases: false\n"
    "tied: false\n";

/// The least tile is a choice in any room, not only where nothing else fits: 384 KiB took 2.6 times as long as 256 KiB.
TEST(OddMachines, MoreTcmTakesNoGemmLonger) {
  const Tool tool;
  double before = 1e9;
  for (const char* size : {"256 KiB", "384 KiB", "768 KiB"}) {
    const auto row =
        rows_of(tool, {"run", "gemm", "--topology", "ring8", "--set", std::string("pe.tcm.size=") + size, "--m", "128",
                       "--n", "1024", "--k", "1024", "--operands", "column", "--data", "off", "--fidelity", "fast"})
            .at(0);
    EXPECT_LT(row["time_ns"].get<double>(), 1.05 * before) << size;
    before = row["time_ns"].get<double>();
  }
}

/// Elementwise, norm, rotary and attention kernels likewise.
TEST(OddMachines, ATransformerFitsASmallTcmAndAgreesWithTheHostsModel) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << kWideModel;
  for (const char* tcm : {"pe.tcm.size=256 KiB", "pe.tcm.size=1 MiB"}) {
    const auto rows = rows_of(tool, {"run", "tp_transformer", "--topology", "minimal", "--model", "m.yaml", "--prompt",
                                     "130", "--decode", "1", "-w", "0", "--fidelity", "fast", "--set", tcm});
    ASSERT_GE(rows.size(), 4u) << tcm;
    for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i]["check"], "ok") << rows[i];
  }
}

/// PEs that pass keys and values on to each other cut them alike, whatever a PE's own share of TCM.
TEST(OddMachines, AttentionIsRightWhereOnePeRunsMoreLaunchesAtOnce) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << kWideModel;
  std::ofstream(tool.file("machine.yaml"))
      << "extends: minimal\ncube: {pes: 4, noc: {rows: 4, cols: 4}, hbm: {channels: 8, size: 8 GiB}}\n"
      << "overrides:\n  - {match: sip0.cube0.pe1, pe: {cpu: {kernel_contexts: 24}}}\n";
  const auto rows = rows_of(tool, {"run", "tp_transformer", "--topology", "machine.yaml", "--model", "m.yaml",
                                   "--prompt", "300", "--decode", "1", "-w", "0", "--fidelity", "fast"});
  ASSERT_GE(rows.size(), 4u);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i]["check"], "ok") << rows[i];
}

}  // namespace
}  // namespace kernbench
