#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/acceptance/run_json.h"

namespace kernbench {

/// A collective of large data in the fast grade, without data, and the fraction of its bound that it must reach.
struct LargeCase {
  const char* name;
  std::vector<std::string> machine;
  const char* op;
  const char* bytes;
  double least;              ///< of the bound
  const char* warmup = "0";  ///< calls before the one that is looked at
};

inline double fraction_of_bound(const LargeCase& large) {
  const nlohmann::ordered_json json = run_json(with(
      {"run", large.op, "-b", large.bytes, "--fidelity", "fast", "--data", "off", "-w", large.warmup}, large.machine));
  const nlohmann::ordered_json& row = json["results"].at(0);
  testing::Test::RecordProperty("fraction", std::to_string(row["bound_fraction"].get<double>()));
  return row["bound_fraction"];
}

inline std::string name_of(const testing::TestParamInfo<LargeCase>& info) {
  return std::string(info.param.name) + "_" + info.param.op;
}

}  // namespace kernbench
