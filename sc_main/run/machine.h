#pragma once
#include <string>

#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench {

/// Stages 3 to 5 of the machine that the user called `name`. Throws ConfigError, located where the value in question
/// was written, or at `name`.
topology::Plan plan_of(const topology::Resolved& resolved, const std::string& name);

}  // namespace kernbench
