#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/tool_runner.h"

namespace kernbench {

inline const std::string kExamples = std::string(KERNBENCH_SOURCE_DIR) + "/docs/examples/pipeline/";
inline const std::vector<std::string> kTwoSips{"--topology", "minimal", "--set", "system.sips.count=2"};

inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The only row of a kind in the results.
inline nlohmann::json row_of(const Outcome& outcome, const char* key, const char* value) {
  const nlohmann::json all = nlohmann::json::parse(outcome.out);
  for (const nlohmann::json& row : all["results"]) {
    if (row.value(key, "") == value) return row;
  }
  return {};
}

}  // namespace kernbench
