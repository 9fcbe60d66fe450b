#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {

inline std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The result of a run that has to succeed: the one JSON document on standard output, with rows, and no other output
/// but what it `warns` of.
inline nlohmann::ordered_json run_json(const std::vector<std::string>& arguments, const char* warns = nullptr) {
  const Tool tool;
  const Outcome outcome = tool(with(arguments, {"--json", "-"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  if (warns == nullptr) {
    EXPECT_EQ(outcome.err, "");
  } else {
    EXPECT_NE(outcome.err.find(warns), std::string::npos) << outcome.err;
  }
  // The parser takes the whole text: what stands before or after the document is an error.
  nlohmann::ordered_json json = json_of(outcome.out);
  if (json.is_discarded()) {
    ADD_FAILURE() << "not one JSON document: " << outcome.out;
    return nlohmann::ordered_json::object({{"results", nlohmann::ordered_json::array()}});
  }
  EXPECT_EQ(schema_errors(json), "");
  EXPECT_FALSE(json["results"].empty());
  return json;
}

}  // namespace kernbench
