#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/tool_runner.h"

namespace kernbench {

/// A machine that is slow in one place on purpose, and a run that feels it.
struct Throttled {
  std::string name;
  std::vector<std::string> run;  ///< what follows `kernbench run`
  std::string overrides;         ///< of machine.yaml, which `run` names; empty: there is none
  std::string key, place;        ///< what is slow: as what-if has to say it
  std::string measure = "rows";
};

/// Writes machine.yaml: SIPs of 2 x 2 cubes of 4 PEs, and these overrides.
inline void write_machine(const Tool& tool, const Throttled& machine, int sips) {
  std::ofstream(tool.file("machine.yaml"))
      << "extends: ring8\nsystem:\n  sips:\n    count: " << sips << "\noverrides:\n"
      << machine.overrides;
}

/// The block that `kernbench what-if` adds to the result; null, and a failed test, if it does not end well.
inline nlohmann::ordered_json what_if_of(const Tool& tool, const Throttled& machine) {
  std::vector<std::string> run = machine.run;
  run.insert(run.begin(), "run");
  run.insert(run.end(), {"--json", "run.json", "-q"});
  const Outcome first = tool(run);
  EXPECT_EQ(first.code, 0) << machine.name << ": " << first.err;
  const Outcome tried = tool({"what-if", "run.json", "--measure", machine.measure, "--json", "tried.json", "-q"});
  EXPECT_TRUE(tried.code == 0 || tried.code == 6) << machine.name << ": " << tried.err;  // 6: some values failed
  if (first.code != 0 || (tried.code != 0 && tried.code != 6)) return nullptr;
  return nlohmann::ordered_json::parse(read(tool.file("tried.json")))["what_if"];
}

/// "key of place" of all that share the first rank.
inline std::vector<std::string> named_first(const nlohmann::ordered_json& what_if) {
  std::vector<std::string> names;
  for (const auto& change : what_if["changes"]) {
    if (change["rank"] != 1) continue;
    const std::string place = change["place"];
    names.push_back(change["key"].get<std::string>() + (place.empty() ? "" : " of " + place));
  }
  return names;
}
inline std::string wanted(const Throttled& machine) {
  return machine.key + (machine.place.empty() ? "" : " of " + machine.place);
}

}  // namespace kernbench
