#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"

/// Calls of the tool on two of the smallest SIPs.
namespace kernbench {

inline void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

inline nlohmann::ordered_json parsed(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  nlohmann::ordered_json json = json_of(outcome.out);
  EXPECT_FALSE(json.is_discarded()) << outcome.out;
  return json;
}

inline const std::vector<std::string> kTwo{"--topology", "minimal", "--set", "system.sips.count=2"};

inline std::vector<std::string> all_reduce(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"run", "all_reduce"};
  arguments.insert(arguments.end(), kTwo.begin(), kTwo.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace kernbench
