#include "sc_main/run/plan_of.h"

#include <fmt/format.h>

#include "topology/plan/machine_error.h"
#include "topology/plan/throttles.h"

namespace kernbench {

topology::Plan plan_of(const topology::Resolved& resolved, const std::string& name) {
  const auto found_or_whole = [&](Location place) { return place.file.empty() ? Location{name, 0, 0} : place; };
  Problems located;
  try {
    return topology::make_plan(resolved.spec);
  } catch (const topology::MachineError& error) {
    for (const topology::Mismatch& one : error.mismatches)
      located.add(found_or_whole(resolved.place_of(one.keys)), one.text, one.hint);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems())
      located.add(found_or_whole(problem.where), problem.text, problem.hint);
  }
  throw ConfigError(located);
}

std::string throttle_warnings(const topology::Resolved& resolved, const topology::Plan& plan, const std::string& name) {
  std::string text;
  for (const topology::Throttle& throttle : topology::throttles(plan)) {
    Location place = resolved.place_of(throttle.key);
    if (place.file.empty()) place = {name, 0, 0};
    text += fmt::format("{}: warning: {}\n  hint: {}\n", place.str(), throttle.text, throttle.hint);
  }
  return text;
}

}  // namespace kernbench
