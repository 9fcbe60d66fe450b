#include "runtime/placement_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/test_folder.h"

namespace kernbench {
namespace {

std::string file_error(const std::string& text) {
  Problems problems;
  const ConfigNode root = parse_config(text, "p.yaml");
  read_dp_policy(*root.find("policy"), "policy", problems);
  return problems.str();
}

TEST(PlacementFile, ReadsEveryField) {
  const TestFolder folder;
  std::ofstream(folder.file("p.yaml")) << "cube: row_wise\npe: tiled_row_major\nnum_cubes: 2\nnum_pes: 4\n";
  const DPPolicy policy = load_dp_policy(folder.file("p.yaml"));
  EXPECT_EQ(policy.cube(), CubeSplit::row_wise);
  EXPECT_EQ(policy.pe(), PeSplit::tiled_row_major);
  EXPECT_EQ(policy.num_cubes(), 2);
  EXPECT_EQ(policy.num_pes(), 4);
}

TEST(PlacementFile, ASipAxisIsALocatedErrorThatSaysWhatToUse) {
  const std::string hint =
      "\n  hint: placement has no SIP axis: a tensor lives on its rank's SIP, chosen by set_device(rank); which rank "
      "owns what is tensor parallelism";
  EXPECT_EQ(file_error("policy:\n  cube: replicate\n  sip: 1\n"),
            "p.yaml:3:3: error: unknown key 'sip' in 'policy'" + hint);
  EXPECT_EQ(file_error("policy: {num_sips: 2}\n"), "p.yaml:1:10: error: unknown key 'num_sips' in 'policy'" + hint);
}

TEST(PlacementFile, AFlatIndexIsALocatedErrorThatSaysWhatToUse) {
  EXPECT_EQ(file_error("policy:\n  cube: replicate\n  pe_index: 25\n"),
            "p.yaml:3:3: error: unknown key 'pe_index' in 'policy'\n"
            "  hint: there is no flat PE index: give 'sip', 'cube' and 'pe'");
}

TEST(PlacementFile, UnknownNamesGetTheNearest) {
  EXPECT_EQ(file_error("policy: {pe: row_wize}\n"),
            "p.yaml:1:14: error: policy.pe is 'row_wize'\n  hint: did you mean 'row_wise'? valid values: replicate, "
            "column_wise, "
            "row_wise, tiled_column_major, tiled_row_major");
  EXPECT_EQ(file_error("policy: {num_pe: 2}\n"),
            "p.yaml:1:10: error: unknown key 'num_pe' in 'policy'\n  hint: did you mean 'num_pes'?");
}

/// No identifier and no key of that name, except where it is refused or tested.
TEST(PlacementSources, NoFlatPeIndexAnywhere) {
  namespace fs = std::filesystem;
  const fs::path root = KERNBENCH_SOURCE_DIR;
  const std::string word = std::string("pe_") + "index";
  int files = 0;
  for (const char* folder : {"tlm", "models", "topology", "ccl", "runtime", "waves", "sc_main", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".json" && extension != ".yaml" &&
          extension != ".in" && extension != ".inc")
        continue;
      ++files;
      if (entry.path() == root / "runtime" / "placement_file.cpp") continue;  // the refusal itself
      if (entry.path() == root / "runtime" / "placement_file.h") continue;    // and what is said of it
      EXPECT_EQ(read(entry.path().string()).find(word), std::string::npos) << entry.path();
    }
  }
  EXPECT_GT(files, 200) << "not the sources";
}

}  // namespace
}  // namespace kernbench
