#include <algorithm>

#include "tests/compare/throttled.h"

namespace kernbench {
namespace {

TEST(WhatIfComplete, NamesTheKeyThatIsThrottledInNineOfTenMachines) {
  int named = 0;
  std::string report;
  for (const Throttled& machine : throttled_machines()) {
    const Tool tool;
    write_machine(tool, machine);
    const auto found = what_if_of(tool, machine);
    if (found.is_null()) continue;
    const std::vector<std::string> first = named_first(found);
    const bool hit = std::find(first.begin(), first.end(), wanted(machine)) != first.end();
    named += hit ? 1 : 0;
    report += machine.name + ": " + (first.empty() ? "nothing" : first.front()) +
              (hit ? "\n" : ", not " + wanted(machine) + "\n");
  }
  RecordProperty("named", named);
  EXPECT_GE(named, 9) << report;
}

// What makes for smaller tiles is no wait: a small TCM is felt as short products (docs/critical_path.md).
TEST(CriticalPathComplete, NamesTheKeyThatIsThrottledInNineOfTenMachines) {
  int named = 0;
  std::string report;
  for (const Throttled& machine : throttled_machines()) {
    const Tool tool;
    write_machine(tool, machine);
    const std::string instead = named_instead(tool, machine);
    named += instead.empty() ? 1 : 0;
    report += machine.name + ": " + (instead.empty() ? wanted(machine) : instead + ", not " + wanted(machine)) + "\n";
  }
  RecordProperty("named", named);
  EXPECT_GE(named, 9) << report;
}

}  // namespace
}  // namespace kernbench
