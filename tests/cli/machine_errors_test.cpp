#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(MachineErrors, ErrorsOfTheWholeMachineNameItsFile) {
  const Tool tool;
  std::ofstream(tool.file("cut.yaml")) << "extends: default\noverrides:\n  - link: [sip0.cube12, sip0.cube13]\n"
                                          "  - link: [sip0, sip1]\n";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"topology", "check", "cut.yaml"}, {"run", "all_reduce", "--topology", "cut.yaml"}}) {
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, StartsWith("cut.yaml:4:11: error: sip0 cannot reach sip1"));
  }
}

/// Of each SIP, and of the links between SIPs.
TEST(MachineErrors, AllThatMakesTheMachineImpossibleIsToldAtOnce) {
  const Tool tool;
  std::ofstream(tool.file("cut.yaml"))
      << "extends: default\noverrides:\n  - link: [sip0.cube12, sip0.cube13]\n  - link: [sip0.cube1, sip0.cube5]\n"
         "  - link: [sip1.cube2, sip1.cube6]\n  - link: [sip0, sip1]\n";
  const Outcome cut = tool({"topology", "check", "cut.yaml"});
  EXPECT_EQ(cut.code, 2);
  EXPECT_THAT(cut.err, HasSubstr("cut.yaml:4:11: error: sip0.io0 cannot reach sip0.cube5"));
  EXPECT_THAT(cut.err, HasSubstr("cut.yaml:5:11: error: sip1.io0 cannot reach sip1.cube6"));
  EXPECT_THAT(cut.err, HasSubstr("cut.yaml:6:11: error: sip0 cannot reach sip1"));
}

TEST(MachineErrors, WhatIsWrongWithTheMachineIsToldWithTheOptions) {
  const Tool tool;
  std::ofstream(tool.file("ccl.yaml")) << "algorithms: 7\n";
  const Outcome outcome =
      tool({"run", "all_reduce", "-b", "1x", "--topology", "ring9", "--ccl", "ccl.yaml", "--data", "maybe"});
  EXPECT_EQ(outcome.code, 2);
  for (const char* part :
       {"-b is '1x'", "ring9: error: is neither a preset nor a file", "--data is 'maybe'", "ccl.yaml:1:13: error: "})
    EXPECT_THAT(outcome.err, HasSubstr(part));
}

TEST(MachineErrors, TopologyNamesBothEndsOfUcieConnectionsThatDiffer) {
  const Tool tool;
  const Outcome outcome = tool({"topology", "check", "ring8", "--set", "sip.io.ucie.connections=1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "--set sip.io.ucie.connections=1: error: 1 UCIe connections of the IO chiplet of sip0 face 4 UCIe "
            "connections of sip0.cube0\n  hint: give both the same ucie.connections\n");
}

TEST(MachineErrors, WhatDoesNotGoTogetherIsLocatedWhereTheUserGaveIt) {
  const Tool tool;
  std::ofstream(tool.file("u.yaml")) << "extends: default\ncube:\n  ucie:\n    connections: 1\n";
  const std::string text =
      "error: 4 UCIe connections of the IO chiplet of sip0 face 1 UCIe connections of sip0.cube0\n"
      "  hint: give both the same ucie.connections\n";
  const Outcome file = tool({"topology", "check", "u.yaml"});
  EXPECT_EQ(file.code, 2);
  EXPECT_EQ(file.err, "u.yaml:4:18: " + text);
  const Outcome set = tool({"topology", "check", "default", "--set", "cube.ucie.connections=1"});
  EXPECT_EQ(set.code, 2);
  EXPECT_EQ(set.err, "--set cube.ucie.connections=1: " + text);
}

TEST(MachineErrors, ALayoutThatCannotBeIsLocatedByExportAsByCheck) {
  const Tool tool;
  const std::string set = "cube.placement.exclusion=[r0c0, r0c1, r0c2, r0c3]";
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"topology", "check", "default", "--set", set},
                                             {"topology", "export", "default", "--what", "cube-mesh", "--set", set}}) {
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err,
              "--set " + set +
                  ": error: no router of a cube's n edge can take its UCIe connections\n"
                  "  hint: leave a router of that edge out of cube.placement's holes and exclusion zone\n");
  }
}

TEST(MachineErrors, AStaleLayoutIsExportedAgainOverItself) {
  const Tool tool;
  const std::vector<std::string> again = {"topology",  "export", "machine.yaml",  "--what",
                                          "cube-mesh", "-o",     "cube_mesh.yaml"};
  std::ofstream(tool.file("machine.yaml")) << "extends: minimal\n";
  ASSERT_EQ(tool(again).code, 0);
  std::ofstream(tool.file("machine.yaml")) << "extends: minimal\ncube: {pes: 4}\n";
  const Outcome stale = tool({"topology", "check", "machine.yaml"});
  EXPECT_EQ(stale.code, 2);
  EXPECT_THAT(stale.err, StartsWith("cube_mesh.yaml:3:7: error: this layout is stale: it was made for another cube\n"));
  EXPECT_THAT(stale.err, HasSubstr("  hint: export it again with 'kernbench topology export --what cube-mesh', or "));
  const Outcome exported = tool(again);
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(tool({"topology", "check", "machine.yaml"}).code, 0);
}

TEST(MachineErrors, AClockThatAHintAsksForIsShortAndEnough) {
  const Tool tool;
  const auto check = [&](const std::string& clock) {
    return tool({"topology", "check", "default", "--set", "cube.noc.clock=" + clock});
  };
  EXPECT_THAT(check("1 GHz").err, HasSubstr("hint: give at least 1.736 GHz, or larger flits\n"));
  const Outcome given = check("1.736 GHz");
  EXPECT_EQ(given.code, 0);
  EXPECT_EQ(given.err, "");
}

}  // namespace
}  // namespace kernbench
