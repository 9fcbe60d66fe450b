#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {

/// Rows of a run that has to succeed and to follow the schema.
inline std::vector<nlohmann::ordered_json> rows_of(const Tool& tool, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const Outcome outcome = tool(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = json_of(outcome.out);
  EXPECT_FALSE(json.is_discarded()) << outcome.out;
  if (json.is_discarded()) return {};
  EXPECT_EQ(schema_errors(json), "");
  return json["results"].get<std::vector<nlohmann::ordered_json>>();
}

/// Two SIPs of 3 x 2 cubes.
inline std::vector<std::string> on_six_cubes(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--set", "sip.cube_mesh.w=3", "--set", "sip.cube_mesh.h=2"});
  return arguments;
}
/// Two SIPs of one cube of eight PEs.
inline std::vector<std::string> on_one_cube(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--set", "sip.cube_mesh.w=1", "--set", "sip.cube_mesh.h=1"});
  return arguments;
}

}  // namespace kernbench
