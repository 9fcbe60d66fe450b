#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/tool_runner.h"
#include "tests/support/files_with_texts.h"

namespace kernbench {
namespace {

namespace fs = std::filesystem;

/// Each tests/config/malformed/NAME.yaml is refused with exactly the text of NAME.txt.
TEST(MalformedTopology, IsRefusedByTheTool) {
  const fs::path folder = fs::path(KERNBENCH_SOURCE_DIR) / "tests" / "config" / "malformed";
  const std::vector<std::string> names = yaml_files(folder);
  ASSERT_GE(names.size(), 35U);
  const Tool tool;
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string expected = read((folder / (name + ".txt")).string());
    EXPECT_FALSE(expected.empty());
    const std::string enter = "cd " + quoted(folder.string()) + " && " + quoted(KERNBENCH_BINARY);
    for (const std::string& command : {std::string(" topology check "), std::string(" run probe --topology ")}) {
      const Outcome outcome = tool.shell(enter + command + quoted(name + ".yaml"));
      EXPECT_EQ(outcome.code, 2) << command;
      EXPECT_EQ(outcome.out, "") << command;
      EXPECT_EQ(outcome.err, expected) << command;
    }
  }
}

}  // namespace
}  // namespace kernbench
