#pragma once
#include <string>

#include "topology/plan.h"

namespace kernbench {

/// Stages 3 to 5 of the machine that the user called `name`. Throws ConfigError; problems that have no place in a file
/// are located at `name`.
topology::Plan plan_of(const topology::SystemSpec& spec, const std::string& name);

}  // namespace kernbench
