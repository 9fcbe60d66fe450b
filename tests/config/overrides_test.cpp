#include <gtest/gtest.h>

#include "topology/spec/resolve.h"

namespace kernbench::topology {
namespace {

Resolved with(const std::string& overrides, const std::string& preset = "default") {
  return resolve_text("extends: " + preset + "\noverrides:\n" + overrides, "own.yaml");
}

TEST(Overrides, PatchOneCube) {
  const SystemSpec spec = with("- {match: sip1.cube3, cube: {noc: {clock: 2 GHz}}, pe: {gemm: {clock: 1 GHz}}}\n").spec;
  ASSERT_EQ(spec.cubes.size(), 1u);
  EXPECT_EQ(spec.cube_at({1, 3}).noc.clock_hz, 2'000'000'000u);
  EXPECT_EQ(spec.pe_at({1, 3, 7}).gemm.clock_hz, 1'000'000'000u);
  EXPECT_EQ(spec.cube_at({0, 3}).noc.clock_hz, 4'000'000'000u);
  EXPECT_EQ(spec.pe_at({0, 3, 7}).gemm.clock_hz, 1'600'000'000u);
}

TEST(Overrides, ASipStandsForItsCubes) {
  const SystemSpec spec = with("- {match: sip1, cube: {m_cpu: {command: 9 ns}}}\n").spec;
  EXPECT_EQ(spec.cubes.size(), 16u);
  EXPECT_EQ(spec.cube_at({1, 15}).m_cpu.command, 9'000u);
}

TEST(Overrides, GlobsMatchNames) {
  EXPECT_EQ(with("- {match: \"sip*.cube?.pe3\", pe: {cpu: {dispatch: 5 ns}}}\n").spec.pes.size(), 2u * 10);
  EXPECT_EQ(with("- {match: \"**.pe3\", pe: {cpu: {dispatch: 5 ns}}}\n").spec.pes.size(), 2u * 16);
  EXPECT_EQ(with("- {match: \"sip*\", cube: {m_cpu: {command: 9 ns}}}\n").spec.cubes.size(), 2u * 16);
}

TEST(Overrides, PesWinOverTheirCubeAndLaterOverEarlier) {
  const SystemSpec spec = with(
                              "- {match: sip0.cube0.pe1, pe: {cpu: {dispatch: 7 ns}}}\n"
                              "- {match: sip0.cube0, pe: {cpu: {dispatch: 5 ns, command: 4 ns}}}\n"
                              "- {match: sip0.cube0, pe: {cpu: {dispatch: 6 ns}}}\n")
                              .spec;
  EXPECT_EQ(spec.pe_at({0, 0, 0}).cpu.dispatch, 6'000u);
  EXPECT_EQ(spec.pe_at({0, 0, 0}).cpu.command, 4'000u);
  EXPECT_EQ(spec.pe_at({0, 0, 1}).cpu.dispatch, 7'000u);
  EXPECT_EQ(spec.pe_at({0, 0, 1}).cpu.command, 4'000u);
}

TEST(Overrides, MissingPesAndBrokenLinks) {
  const SystemSpec spec = with(
                              "- {match: \"sip0.cube1.pe*\", missing: true}\n"
                              "- link: [sip1, sip0]\n"
                              "- link: [sip0.cube5, sip0.cube1]\n"
                              "- link: [sip0.cube2, sip0.cube3]\n")
                              .spec;
  EXPECT_EQ(spec.missing_pes.size(), 8u);
  EXPECT_EQ(spec.missing_pes.count({0, 1, 7}), 1u);
  EXPECT_EQ(spec.broken_sip_links.count({0, 1}), 1u);
  EXPECT_EQ(spec.broken_cube_links.count({CubeCoord{0, 1}, 5}), 1u);
  EXPECT_EQ(spec.broken_cube_links.count({CubeCoord{0, 2}, 3}), 1u);
}

TEST(Overrides, TorusLinksWrap) {
  const SystemSpec spec = with("- link: [sip0, sip3]\n- link: [sip2, sip14]\n- link: [sip4, sip8]\n", "torus4x4").spec;
  EXPECT_EQ(spec.broken_sip_links.size(), 3u);
  EXPECT_THROW(with("- link: [sip0, sip3]\n", "mesh4x4"), ConfigError);
  EXPECT_THROW(with("- link: [sip3, sip4]\n", "torus4x4"), ConfigError);
}

TEST(Overrides, ACubeMayHaveAnotherGenerationOfTheSameSize) {
  const Resolved resolved = with("- {match: sip1.cube0, cube: {hbm: {generation: HBM2-2000, size: 16 GiB}}}\n");
  const HbmConfig& hbm = resolved.spec.cube_at({1, 0}).hbm;
  EXPECT_EQ(hbm.timing.t_cl, 14u);
  EXPECT_EQ(hbm.total_pseudo_channels(), 16u);
  EXPECT_EQ(resolve_json(resolved.config, "again").config, resolved.config);
}

TEST(Overrides, ReadBackFromTheCanonicalForm) {
  const Resolved first = with(
      "- {match: \"sip*.cube0\", cube: {noc: {clock: 2 GHz}, hbm: {timing: {t_cl: 21}}}, pe: {cpu: {dispatch: 5 ns}}}\n"
      "- {match: sip0.cube0.pe0, pe: {dma: {outstanding: 4}}}\n"
      "- {match: sip0.cube1.pe2, missing: true}\n"
      "- link: [sip0, sip1]\n"
      "- link: [sip0.cube0, sip0.cube1]\n");
  EXPECT_EQ(first.config["overrides"][0].dump(),
            R"({"match":"sip0.cube0","cube":{"noc":{"clock":"2 GHz"},"hbm":{"timing":{"t_cl":21}}},)"
            R"("pe":{"cpu":{"dispatch":"5 ns"}}})");
  EXPECT_EQ(first.config["overrides"][2].dump(), R"({"match":"sip0.cube0.pe0","pe":{"dma":{"outstanding":4}}})");
  const Resolved again = resolve_json(first.config, "again");
  EXPECT_EQ(again.config, first.config);
  EXPECT_EQ(again.hash, first.hash);
}

TEST(Overrides, ThatChangeNothingLeaveNoTrace) {
  const Resolved resolved = with("- {match: sip0, cube: {noc: {clock: 4 GHz}}, pe: {tcm: {size: 16 MiB}}}\n");
  EXPECT_TRUE(resolved.spec.cubes.empty());
  EXPECT_EQ(resolved.hash, resolve("default").hash);
}

}  // namespace
}  // namespace kernbench::topology
