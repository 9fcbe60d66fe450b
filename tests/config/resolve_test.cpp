#include "topology/spec/resolve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/test_folder.h"
#include "topology/spec/embedded_presets.h"
#include "topology/spec/parse.h"
#include "topology/spec/schema.h"

namespace kernbench::topology {
namespace {

namespace fs = std::filesystem;

class Presets : public testing::TestWithParam<std::string> {};

TEST_P(Presets, ResolveAndReadBackFromTheirOwnConfiguration) {
  const Resolved first = resolve(GetParam());
  EXPECT_EQ(first.spec.name, GetParam());
  EXPECT_EQ(first.hash.size(), 32u);
  const Resolved again = resolve_json(first.config, "result.json");
  EXPECT_EQ(again.config, first.config);
  EXPECT_EQ(again.hash, first.hash);
  EXPECT_EQ(show_resolved(first).substr(0, 3), "# " + GetParam().substr(0, 1));
}

/// Every line of a preset that gives a value carries its source, itself or through the comment of a line above that it
/// is nested under.
TEST_P(Presets, EveryValueHasASource) {
  std::istringstream text(embedded_preset(GetParam()));
  std::string line;
  std::vector<std::pair<std::size_t, bool>>
      open;  // indent of the sections around the line, and whether they have a comment
  const bool all =
      embedded_preset(GetParam()).find("# Source of every value without another note:") != std::string::npos;
  while (std::getline(text, line)) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos || line[indent] == '#' || line.rfind("extends:", 0) == 0) continue;
    const bool noted = line.find(" # ") != std::string::npos;
    while (!open.empty() && open.back().first >= indent) open.pop_back();
    const std::string body = line.substr(0, line.find(" #"));
    if (body[body.find_last_not_of(' ')] == ':') {
      open.emplace_back(indent, noted || (!open.empty() && open.back().second));
    } else {
      EXPECT_TRUE(all || noted || (!open.empty() && open.back().second)) << line;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Topology, Presets, testing::ValuesIn(preset_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Resolve, DefaultIsTheMachineOfTheSpecification) {
  const SystemSpec spec = resolve("default").spec;
  EXPECT_EQ(spec.sips, 2);
  EXPECT_EQ(spec.topology, SipTopology::ring_1d);
  EXPECT_EQ(spec.links.link.rate().bytes_per_second(), 128'000'000'000u);
  EXPECT_EQ(spec.links.link.latency, 400'000u);
  EXPECT_EQ(spec.sip.cube_w * spec.sip.cube_h, 16);
  EXPECT_EQ(spec.sip.io.pcie.bytes_per_second, 63'015'384'615u);
  EXPECT_EQ(spec.cube.pes, 8);
  EXPECT_EQ(spec.cube.noc.rows * spec.cube.noc.cols, 16);
  EXPECT_EQ(spec.cube.noc.link_rate().bytes_per_second(), 256'000'000'000u);
  EXPECT_EQ(spec.cube.hbm.total_pseudo_channels(), 4u * spec.cube.pes);
  EXPECT_EQ(spec.cube.hbm.pseudo_channel_peak().bytes_per_second(), 25'600'000'000u);
  EXPECT_EQ(spec.cube.hbm.timing.t_rcd_rd, 31u);
  EXPECT_EQ(spec.cube.ucie.connections * spec.cube.ucie.lanes * spec.cube.ucie.transfers_per_second / 8,
            512'000'000'000u);
  EXPECT_EQ(2 * spec.cube.ucie.latency_per_side, 35'000u);
  EXPECT_EQ(spec.cube.pe.tcm.bytes, 16u << 20);
  EXPECT_EQ(spec.cube.pe.ipcq.slots, 4u);
}

TEST(Resolve, KernbenchPyHasThePublishedFigures) {
  const SystemSpec spec = resolve("kernbench-py").spec;
  EXPECT_EQ(spec.cube.placement.holes.size(), 4u);
  EXPECT_EQ(spec.cube.placement.pes.at(2), (GridPoint{1, 4}));
  EXPECT_EQ(spec.cube.hbm.total_pseudo_channels(), 8u * spec.cube.pes);
  EXPECT_EQ(spec.cube.hbm.pseudo_channel_peak().bytes_per_second(), 32'000'000'000u);
  EXPECT_EQ(spec.cube.hbm.bytes / spec.cube.pes, std::uint64_t{6} << 30);
  EXPECT_EQ(spec.cube.noc.link_rate().bytes_per_second(), 256'000'000'000u);
  EXPECT_EQ(spec.cube.ucie.flit, UcieFlit::raw);
  EXPECT_EQ(spec.cube.ucie.lanes * spec.cube.ucie.transfers_per_second / 8, 128'000'000'000u);
  EXPECT_EQ(spec.cube.ucie.latency_per_side, 10'000u);
}

TEST(Resolve, LinksFollowFromLanesAndEndsUnlessTheFileSaysOtherwise) {
  const auto link = [](const std::vector<std::string>& sets) { return resolve("default", sets).spec.links.link; };
  EXPECT_EQ(link({"system.links.lanes=16"}).bytes_per_second, 64'000'000'000u);
  EXPECT_EQ(link({"system.links.lanes=16", "system.links.bandwidth=100 GB/s"}).bytes_per_second, 100'000'000'000u);
  EXPECT_EQ(link({"system.links.serdes=100 ns"}).latency, 210'000u);
  EXPECT_EQ(link({"system.links.latency=300 ns"}).latency, 300'000u);
  EXPECT_EQ(link({"system.links.flit_size=256 B"}).check_bytes, 256u);
  EXPECT_EQ(resolve("default", {"sip.io.pcie.generation=6"}).spec.sip.io.pcie.bytes_per_second, 118'000'000'000u);
}

TEST(Resolve, BitErrorsNeedFlitsThatAreChecked) {
  const auto error = [](const std::vector<std::string>& sets) -> std::string {
    try {
      resolve("default", sets);
      return "none";
    } catch (const ConfigError& problem) {
      return problem.what();
    }
  };
  EXPECT_NE(error({"cube.ucie.flit=raw", "cube.ucie.bit_errors=5"})
                .find("cube.ucie.bit_errors is 5, but cube.ucie.flit is raw, which has no check"),
            std::string::npos);
  EXPECT_NE(error({"system.links.bit_errors=5"}).find("system.links.bit_errors is 5, but there are no flits to check"),
            std::string::npos);
  EXPECT_EQ(error({"system.links.bit_errors=5", "system.links.flit_size=256 B"}), "none");
}

TEST(Resolve, SetsWinAndAreTyped) {
  const Resolved resolved = resolve("default", {"cube.noc.rows=6", "pe.tcm.size=8 MiB", "cube.noc.rows=8",
                                                "cube.placement.pes=[r0c0, r0c1, r0c2, r0c3, r1c0, r1c1, r1c2, r7c3]",
                                                "system.links.efficiency=0.5", "pe.gemm={rows: 64, cols: 16}"});
  EXPECT_EQ(resolved.spec.cube.noc.rows, 8);
  EXPECT_EQ(resolved.spec.cube.pe.tcm.bytes, 8u << 20);
  EXPECT_EQ(resolved.spec.cube.placement.pes.back(), (GridPoint{7, 3}));
  EXPECT_EQ(resolved.spec.links.link.rate().bytes_per_second(), 64'000'000'000u);
  EXPECT_EQ(resolved.spec.cube.pe.gemm.rows, 64u);
  EXPECT_EQ(resolved.spec.cube.pe.gemm.queue_depth, 16u);
  EXPECT_EQ(resolve("default").spec.cube.noc.rows, 4);
}

TEST(Resolve, AnHbmGenerationGivesTheDevice) {
  const SystemSpec spec = resolve("default", {"cube.hbm.generation=HBM2-2000"}).spec;
  EXPECT_EQ(spec.cube.hbm.generation, "HBM2-2000");
  EXPECT_EQ(spec.cube.hbm.ck_hz, 1'000'000'000u);
  EXPECT_EQ(spec.cube.hbm.total_pseudo_channels(), 16u);
  EXPECT_EQ(spec.cube.hbm.timing.t_cl, 14u);
  EXPECT_EQ(spec.cube.hbm.bytes, std::uint64_t{8} << 30);
}

TEST(Resolve, KeysBesideAGenerationWin) {
  const SystemSpec spec = resolve("default", {"cube.hbm.generation=HBM2-1600", "cube.hbm.timing.t_cl=11"}).spec;
  EXPECT_EQ(spec.cube.hbm.timing.t_cl, 11u);
  EXPECT_EQ(spec.cube.hbm.timing.t_cwl, 4u);
}

TEST(Resolve, AGenerationReplacesTheDeviceOfLowerLayers) {
  // kernbench-py spells its device out; a generation on top of it must not keep parts of that.
  const SystemSpec spec = resolve("kernbench-py", {"cube.hbm.generation=HBM3-6400"}).spec;
  EXPECT_EQ(spec.cube.hbm.channels, 16u);
  EXPECT_EQ(spec.cube.hbm.timing.t_cl, 20u);
  EXPECT_EQ(spec.cube.hbm.refresh, RefreshPolicy::none);  // not part of the device
}

TEST(Resolve, EveryGenerationIsAValidDevice) {
  for (const char* name : {"HBM3-6400", "HBM3-5200", "HBM2E-3200", "HBM2-2400", "HBM2-2000", "HBM2-1600"}) {
    EXPECT_NO_THROW(resolve("default", {std::string("cube.hbm.generation=") + name})) << name;
    EXPECT_NO_THROW(resolve("default", {std::string("cube.hbm.generation=") + name, "cube.hbm.refresh=per_bank"}))
        << name;
  }
}

TEST(Resolve, PcieRateFollowsGenerationAndLanes) {
  EXPECT_EQ(resolve("default", {"sip.io.pcie.generation=3", "sip.io.pcie.lanes=1"}).spec.sip.io.pcie.bytes_per_second,
            984'615'384u);
  EXPECT_EQ(resolve("default", {"sip.io.pcie.bandwidth=10 GB/s"}).spec.sip.io.pcie.bytes_per_second, 10'000'000'000u);
}

TEST(Resolve, OnlyGridsKeepTheirSize) {
  EXPECT_EQ(resolve("torus4x4").spec.sip_w, 4);
  const Resolved ring = resolve("torus4x4", {"system.sips.topology=ring_1d"});
  EXPECT_EQ(ring.spec.sip_w, 0);
  EXPECT_FALSE(ring.config["system"]["sips"].contains("w"));
}

TEST(Resolve, AFileThatExtendsNothingTakesTheRestFromDefault) {
  const char* text =
      "system: {sips: {count: 1, topology: ring_1d}}\n"
      "sip: {cube_mesh: {w: 1, h: 2}}\n"
      "cube: {pes: 2, noc: {rows: 2, cols: 2}}\n";
  const SystemSpec spec = resolve_text(text, "own.yaml").spec;
  EXPECT_EQ(spec.cube.pes, 2);
  EXPECT_EQ(spec.sip.cube_h, 2);
  EXPECT_EQ(spec.cube.pe.tcm.bytes, 16u << 20);
}

TEST(Resolve, HashDependsOnTheMachineAndNothingElse) {
  const std::string hash = resolve("default").hash;
  EXPECT_EQ(resolve_text("extends: default\n", "a.yaml").hash, hash);
  EXPECT_EQ(resolve_text("# comment\npe: {tcm: {size: 16384 KiB}}\nextends: default\n", "b.yaml").hash, hash);
  EXPECT_EQ(resolve("default", {"cube.noc.clock=4000 MHz"}).hash, hash);
  EXPECT_NE(resolve("default", {"cube.noc.clock=4001 MHz"}).hash, hash);
  EXPECT_NE(resolve_text("extends: default\noverrides: [{match: sip0.cube0.pe0, missing: true}]\n", "c.yaml").hash,
            hash);
}

TEST(Resolve, ConfigurationIsCanonical) {
  const auto config = resolve("default", {"cube.noc.clock=4000000 kHz", "system.links.efficiency=118/128"}).config;
  EXPECT_EQ(config["cube"]["noc"]["clock"], "4 GHz");
  EXPECT_EQ(config["system"]["links"]["efficiency"], "59/64");
  EXPECT_EQ(config["cube"]["noc"]["rows"], 4);
  std::vector<std::string> keys;
  for (const auto& [key, value] : config.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"system", "sip", "cube", "pe"}));
}

TEST(Resolve, SourcesNameThePlaceOfEachValue) {
  const Resolved resolved =
      resolve_text("extends: minimal\npe: {tcm: {size: 8 MiB}}\n", "own.yaml", {"cube.noc.rows=3"});
  const auto source = [&](const std::string& path) {
    for (const auto& [name, where] : resolved.sources) {
      if (name == path) return where.str();
    }
    return std::string("none");
  };
  EXPECT_EQ(source("pe.tcm.size"), "own.yaml:2:18");
  EXPECT_EQ(source("cube.noc.rows"), "--set cube.noc.rows=3");
  EXPECT_EQ(source("cube.pes").substr(0, 21), "presets/minimal.yaml:");
  EXPECT_EQ(source("cube.noc.clock").substr(0, 21), "presets/default.yaml:");
  EXPECT_EQ(source("cube.hbm.timing.t_cl").substr(0, 29), "presets/hbm_generations.yaml:");
  EXPECT_EQ(source("sip.io.pcie.bandwidth"), "derived");
}

class ResolveFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.file("sub"));
    fs::current_path(folder_.path());
  }
  void TearDown() override { fs::current_path(fs::temp_directory_path()); }
  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  TestFolder folder_;
};

TEST_F(ResolveFiles, ExtendsIsRelativeToTheFile) {
  write("sub/base.yaml", "extends: minimal\ncube: {noc: {rows: 3}}\n");
  write("sub/middle.yaml", "extends: base.yaml\npe: {tcm: {size: 4 MiB}}\n");
  write("top.yaml", "extends: sub/middle.yaml\ncube: {noc: {cols: 5}}\n");
  const SystemSpec spec = resolve("top.yaml").spec;
  EXPECT_EQ(spec.name, "top.yaml");
  EXPECT_EQ(spec.cube.noc.rows, 3);
  EXPECT_EQ(spec.cube.noc.cols, 5);
  EXPECT_EQ(spec.cube.pe.tcm.bytes, 4u << 20);
  EXPECT_EQ(spec.sips, 1);
}

TEST_F(ResolveFiles, APresetsNameWinsOverAFile) {
  fs::create_directory("default");
  EXPECT_EQ(resolve("default").spec.sips, 2);
}

TEST_F(ResolveFiles, AResultsConfigurationIsATopologyFile) {
  const Resolved first = resolve("torus4x4", {"pe.tcm.size=8 MiB"});
  write("config.json", first.config.dump(2));
  EXPECT_EQ(resolve("config.json").hash, first.hash);
  EXPECT_EQ(resolve_text(show_resolved(first), "shown.yaml").hash, first.hash);
}

TEST_F(ResolveFiles, PinnedLayoutLiesBesideTheFile) {
  write("sub/machine.yaml", "extends: minimal\n");
  const Resolved without = resolve("sub/machine.yaml");
  EXPECT_EQ(without.spec.cube_mesh, "");
  write("sub/cube_mesh.yaml", "pinned: 1\n");
  const Resolved with = resolve("sub/machine.yaml");
  EXPECT_EQ(with.spec.cube_mesh, "sub/cube_mesh.yaml");
  EXPECT_NE(with.hash, without.hash);
  fs::create_directories("sub/layouts");
  write("sub/layouts/mine.yaml", "pinned: 1\n");
  write("sub/other.yaml", "extends: minimal\ncube_mesh: layouts/mine.yaml\n");
  EXPECT_EQ(resolve("sub/other.yaml").spec.cube_mesh, "sub/layouts/mine.yaml");
  EXPECT_EQ(resolve("minimal").spec.cube_mesh, "");
  fs::current_path("sub");
  EXPECT_EQ(resolve("machine.yaml").spec.cube_mesh, "cube_mesh.yaml");
  EXPECT_EQ(resolve_text("extends: minimal\n", "text").spec.cube_mesh, "");
}

TEST_F(ResolveFiles, AnEmptyNameNamesNoPinnedLayout) {
  for (const char* file : {"machine.yaml", "sub/machine.yaml"}) {
    fs::create_directories("sub");
    write(file, "extends: minimal\ncube_mesh: ''\n");
    EXPECT_EQ(resolve(file).spec.cube_mesh, "");
    EXPECT_EQ(resolve(file).hash, resolve("minimal").hash);
  }
  EXPECT_EQ(resolve("minimal", {"cube_mesh=''"}).spec.cube_mesh, "");
  write("sub/cube_mesh.yaml", "pinned: 1\n");
  EXPECT_EQ(resolve("sub/machine.yaml").spec.cube_mesh, "sub/cube_mesh.yaml");  // as without the key
}

TEST_F(ResolveFiles, APinnedLayoutThatIsNotThereIsAProblemOfItsKey) {
  write("machine.yaml", "extends: minimal\ncube_mesh: gone.yaml\n");
  const auto error_of = [](const std::string& machine, const std::vector<std::string>& sets) -> std::string {
    try {
      resolve(machine, sets);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(error_of("machine.yaml", {}),
            "machine.yaml:2:12: error: cube_mesh: 'gone.yaml' cannot be read: No such file or directory\n"
            "  hint: paths are relative to the file that names them");
  EXPECT_EQ(error_of("minimal", {"cube_mesh=gone.yaml"}),
            "--set cube_mesh=gone.yaml: error: cube_mesh: 'gone.yaml' cannot be read: No such file or directory");
}

TEST_F(ResolveFiles, StageOneShowsTheFileAlone) {
  write("own.yaml", "extends: minimal\ncube: {noc: {rows: 3}}\n");
  EXPECT_EQ(show_parsed("own.yaml"), "extends = minimal  # own.yaml:1:10\ncube.noc.rows = 3  # own.yaml:2:20\n");
}

}  // namespace
}  // namespace kernbench::topology
