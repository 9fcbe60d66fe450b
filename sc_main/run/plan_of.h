#pragma once
#include <string>

#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench {

/// Stages 3 to 5 of the machine that the user called `name`. Throws ConfigError, located where the value in question
/// was written, or at `name`.
topology::Plan plan_of(const topology::Resolved& resolved, const std::string& name);

/// Where everything of its cubes is attached by rule, whatever layout is pinned. Throws as plan_of().
topology::CubeMesh layout_by_rule(const topology::Resolved& resolved, const std::string& name);

/// What the machine throttles, as warnings with place, key, value found and value wanted; empty: nothing.
std::string throttle_warnings(const topology::Resolved& resolved, const topology::Plan& plan, const std::string& name);

}  // namespace kernbench
