#include "sc_main/run/plan_of.h"

#include <fmt/format.h>

#include "topology/plan/machine_error.h"
#include "topology/plan/throttles.h"

namespace kernbench {

namespace {

[[noreturn]] void rethrow_at(Location place, const ConfigError& error, const std::string& name) {
  if (place.file.empty()) place = {name, 0, 0};
  Problems located;
  for (const Problem& problem : error.problems()) {
    located.add(problem.where.file.empty() ? place : problem.where, problem.text, problem.hint);
  }
  throw ConfigError(located);
}

}  // namespace

topology::Plan plan_of(const topology::Resolved& resolved, const std::string& name) {
  try {
    return topology::make_plan(resolved.spec);
  } catch (const topology::MachineError& error) {
    rethrow_at(resolved.place_of(error.keys), error, name);
  } catch (const ConfigError& error) {
    rethrow_at({}, error, name);
  }
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
