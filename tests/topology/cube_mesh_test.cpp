#include "topology/plan/cube_mesh.h"

#include <gmock/gmock.h>

#include "tests/topology/machines.h"
#include "tlm/config/problems.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {
namespace {

using ::testing::HasSubstr;

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

std::string error_of(const std::string& text, const CubeSpec& spec) {
  try {
    read_cube_mesh(text, "mesh.yaml", spec);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CubeMeshFile, ComesBackAsItWasExported) {
  for (const CubeSpec& spec : {CubeSpec{}, holey_cube()}) {
    const CubeMesh mesh = place(spec);
    EXPECT_EQ(read_cube_mesh(export_cube_mesh(spec, mesh), "mesh.yaml", spec), mesh);
  }
}

TEST(CubeMeshFile, TakesEdits) {
  const CubeSpec spec;
  const std::string text = replaced(export_cube_mesh(spec, place(spec)), "m_cpu: r1c1", "m_cpu: r0c0");
  EXPECT_EQ(to_string(read_cube_mesh(text, "mesh.yaml", spec).m_cpu), "r0c0");
}

TEST(CubeMeshFile, RefusesAStalePinWithTheReason) {
  const CubeSpec then;
  CubeSpec now = then;
  now.pes = 4;
  now.ucie.connections = 2;
  EXPECT_EQ(error_of(export_cube_mesh(then, place(then)), now),
            "mesh.yaml:3:7: error: this layout is stale: it was made for another cube\n"
            "    pes: '8 at []' there, '4 at []' now\n"
            "    hbm: '8 ports, zone []' there, '4 ports, zone []' now\n"
            "    ucie: '4 per side' there, '2 per side' now\n"
            "  hint: export it again with 'kernbench topology export --what cube-mesh', or remove it");
}

TEST(CubeMeshFile, RefusesPositionsWhereNothingMayBeAttached) {
  CubeSpec spec = holey_cube();
  const std::string text = export_cube_mesh(spec, place(spec));
  EXPECT_THAT(error_of(replaced(text, "pes: [r0c0", "pes: [r2c2"), spec),
              HasSubstr("'pes' names r2c2, where nothing may be attached"));
  EXPECT_THAT(error_of(replaced(text, "pes: [r0c0", "pes: [r6c0"), spec),
              HasSubstr("'pes' names r6c0, outside the mesh"));
  EXPECT_THAT(error_of(replaced(text, "pes: [r0c0, ", "pes: ["), spec), HasSubstr("'pes' has 7 positions"));
  EXPECT_THAT(error_of(replaced(text, "pes: [r0c0", "pes: [x"), spec), HasSubstr("'pes' holds 'x'"));
}

TEST(CubeMeshFile, APositionHasOneSpellingThatOfTheTopologyFile) {
  const CubeSpec spec;
  const std::string text = export_cube_mesh(spec, place(spec));
  for (const char* other : {"r00c1", "r0c01", "r0c 1", "r+0c1", "R0c1", "r0c1 x", "r0c99999999999", "[r0c1]"}) {
    const std::string found = other[0] == '[' ? "" : other;
    EXPECT_EQ(error_of(replaced(text, "m_cpu: r1c1", std::string("m_cpu: ") + other), spec),
              "mesh.yaml:12:8: error: 'm_cpu' holds '" + found + "'\n  hint: give a router position such as r0c1")
        << other;
    EXPECT_FALSE(parse_point(other)) << other;
  }
  EXPECT_EQ(parse_point("r0c1"), (GridPoint{0, 1}));
  EXPECT_EQ(parse_point("r65535c65535"), (GridPoint{65535, 65535}));
  EXPECT_FALSE(parse_point("r65536c0"));
}

TEST(CubeMeshFile, APinnedLayoutIsWhatTheMachineHas) {
  SystemSpec spec = small_machine(1, 1, 1);
  spec.cube_mesh = "mesh.yaml";
  spec.cube_mesh_text = replaced(export_cube_mesh(spec.cube, place(spec.cube)), "sram: r2c2", "sram: r3c3");
  const Plan plan(spec);
  EXPECT_EQ(to_string(plan.layouts.front().mesh.sram), "r3c3");
  EXPECT_EQ(plan.map.node(plan.map.sram_of({0, 0})).at.router, 15);
}

}  // namespace
}  // namespace kernbench::topology
