#include "sc_main/run/machine.h"

#include "topology/machine/machine_error.h"

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
    rethrow_at(resolved.place_of(error.key), error, name);
  } catch (const ConfigError& error) {
    rethrow_at({}, error, name);
  }
}

}  // namespace kernbench
