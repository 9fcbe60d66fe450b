#include "sc_main/run/plan_of.h"

#include <fmt/format.h>

#include "topology/plan/layout.h"
#include "topology/plan/machine_error.h"
#include "topology/plan/throttles.h"

namespace kernbench {

namespace {
/// What `stage` makes of the machine; what it throws is located.
template <class Stage>
auto located(const topology::Resolved& resolved, const std::string& name, const Stage& stage) {
  const auto found_or_whole = [&](Location place) { return place.file.empty() ? Location{name, 0, 0} : place; };
  Problems problems;
  try {
    return stage(resolved.spec);
  } catch (const topology::MachineError& error) {
    for (const topology::Mismatch& one : error.mismatches)
      problems.add(found_or_whole(resolved.place_of(one.keys)), one.text, one.hint);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems())
      problems.add(found_or_whole(problem.where), problem.text, problem.hint);
  }
  throw ConfigError(problems);
}
}  // namespace

topology::Plan plan_of(const topology::Resolved& resolved, const std::string& name) {
  return located(resolved, name, [](const topology::SystemSpec& spec) { return topology::make_plan(spec); });
}

topology::CubeMesh layout_by_rule(const topology::Resolved& resolved, const std::string& name) {
  return located(resolved, name, [](const topology::SystemSpec& spec) { return topology::layout(spec.cube).mesh; });
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
