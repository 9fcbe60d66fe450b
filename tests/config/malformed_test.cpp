#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/files_with_texts.h"
#include "topology/spec/resolve.h"

namespace kernbench::topology {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(KERNBENCH_SOURCE_DIR) / "tests" / "config" / "malformed"; }

std::string error_of(const std::string& preset_or_file, const std::vector<std::string>& sets = {}) {
  try {
    resolve(preset_or_file, sets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

/// Each malformed/NAME.yaml ends with exactly the text of malformed/NAME.txt.
class Malformed : public testing::TestWithParam<std::string> {};

TEST_P(Malformed, EndsWithTheExactMessage) {
  fs::current_path(folder());
  const std::string expected = text_of(GetParam() + ".txt");
  ASSERT_FALSE(expected.empty()) << "no expected text";
  EXPECT_EQ(error_of(GetParam() + ".yaml") + "\n", expected);
}

INSTANTIATE_TEST_SUITE_P(Topology, Malformed, testing::ValuesIn(yaml_files(folder())),
                         [](const auto& info) { return info.param; });

TEST(MalformedInput, ThereAreEnoughCases) { EXPECT_GE(yaml_files(folder()).size(), 35u); }

TEST(MalformedInput, NamesThatAreNeitherPresetNorFile) {
  EXPECT_EQ(
      error_of("defualt"),
      "defualt: error: is neither a preset nor a file\n  hint: did you mean 'default'? presets: minimal, default, "
      "ring8, torus4x4, torus8x8, torus16x16, mesh4x4, fc8, kernbench-py, rebel100, astra, huge");
  EXPECT_EQ(error_of("nothing.yaml"), "nothing.yaml: error: cannot be read: No such file or directory");
  EXPECT_EQ(error_of("/tmp"), "/tmp: error: is a directory\n  hint: give a YAML file");
  EXPECT_EQ(error_of(""),
            ": error: is neither a preset nor a file\n  hint: presets: minimal, default, ring8, torus4x4, "
            "torus8x8, torus16x16, mesh4x4, fc8, kernbench-py, rebel100, astra, huge");
}

TEST(MalformedInput, BytesThatAreNoText) {
  const std::string nul = std::string("extends: default\ncube: {pes: ") + '\0' + "}\n";
  EXPECT_THROW(
      {
        try {
          resolve_text(nul, "nul.yaml");
        } catch (const ConfigError& error) {
          EXPECT_STREQ(
              error.what(),
              "nul.yaml:2:13: error: byte 0x00 is a control character\n  hint: this is probably not a text file");
          throw;
        }
      },
      ConfigError);
}

TEST(MalformedSet, HasTheSameQualityOfErrors) {
  EXPECT_EQ(error_of("default", {"cube.noc.rwos=4"}),
            "--set cube.noc.rwos=4: error: unknown key 'rwos' in 'cube.noc'\n  hint: did you mean 'rows'?");
  EXPECT_EQ(error_of("default", {"cube.pes=eight"}),
            "--set cube.pes=eight: error: cube.pes is 'eight'\n  hint: give an integer from 1 to 256");
  EXPECT_EQ(error_of("default", {"pe.tcm.size=16"}),
            "--set pe.tcm.size=16: error: pe.tcm.size is '16', which has no unit\n"
            "  hint: give a size from 64 KiB to 8 GiB, such as '16 MiB'");
  EXPECT_EQ(error_of("default", {"cube.pes"}),
            "--set cube.pes: error: is not of the form key=value\n  hint: write for example --set cube.noc.rows=8");
  EXPECT_EQ(error_of("default", {"cube..pes=4"}),
            "--set cube..pes=4: error: is not of the form key=value\n  hint: write for example --set cube.noc.rows=8");
  EXPECT_EQ(
      error_of("default", {"extends=minimal"}),
      "--set extends=minimal: error: 'extends' cannot be set here\n  hint: name the preset or file with --topology");
  EXPECT_EQ(error_of("default", {"cube.placement.pes=[r0c0"}),
            "--set cube.placement.pes=[r0c0: error: not valid YAML: end of sequence flow not found");
  EXPECT_EQ(error_of("default", {"cube.pes="}),
            "--set cube.pes=: error: cube.pes has no value\n  hint: give an integer from 1 to 256");
  EXPECT_EQ(error_of("default", {"cube=4"}),
            "--set cube=4: error: cube is '4', not a map\n"
            "  hint: give a map of these keys: pes, noc, placement, m_cpu, sram, hbm, ucie");
}

TEST(MalformedSet, EveryProblemOfEveryEntryIsReported) {
  EXPECT_EQ(error_of("default", {"cube.pes=6", "a=b", "pe.dma.burst_size=100 B"}),
            "--set a=b: error: unknown key 'a'\n"
            "  hint: valid keys: extends, system, sip, cube, pe, cube_mesh, overrides\n"
            "--set pe.dma.burst_size=100 B: error: pe.dma.burst_size is '100 B'\n"
            "  hint: give a size that is a power of two, from 32 B to 256 B\n"
            "--set cube.pes=6: error: cube.hbm has 16 * 2 = 32 pseudo channels, which cannot be dealt evenly to 6 PEs\n"
            "  hint: make channels * pseudo_channels a multiple of cube.pes");
}

}  // namespace
}  // namespace kernbench::topology
