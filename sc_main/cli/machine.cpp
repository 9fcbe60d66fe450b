#include "sc_main/cli/machine.h"

#include "tlm/config/problems.h"

namespace kernbench {

topology::Plan plan_of(const topology::SystemSpec& spec, const std::string& name) {
  try {
    return topology::make_plan(spec);
  } catch (const ConfigError& error) {
    Problems located;
    for (const Problem& problem : error.problems()) {
      Location where = problem.where;
      if (where.file.empty()) where.file = name;
      located.add(where, problem.text, problem.hint);
    }
    throw ConfigError(located);
  }
}

}  // namespace kernbench
