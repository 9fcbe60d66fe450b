#include <algorithm>

#include "tests/compare/throttled.h"

namespace kernbench {
namespace {

// What makes for smaller tiles is no wait: a small TCM is felt as short products (docs/critical_path.md).
TEST(WhatIfComplete, AndTheCriticalPathNameTheKeyThatIsThrottledInNineOfTenMachines) {
  int named = 0;
  std::string report;
  for (const Throttled& machine : throttled_machines()) {
    const Tool tool;
    write_machine(tool, machine);
    const std::string instead = named_instead(tool, machine);
    const auto found = what_if_of(tool, machine);
    const std::vector<std::string> first = found.is_null() ? std::vector<std::string>() : named_first(found);
    const bool hit = std::find(first.begin(), first.end(), wanted(machine)) != first.end();
    named += hit && instead.empty() ? 1 : 0;
    report += machine.name + ": " + wanted(machine) + (instead.empty() ? "" : "; the path: " + instead) +
              (hit ? "" : "; what-if: " + (first.empty() ? "nothing" : first.front())) + "\n";
  }
  RecordProperty("named", named);
  EXPECT_GE(named, 9) << report;
}

}  // namespace
}  // namespace kernbench
