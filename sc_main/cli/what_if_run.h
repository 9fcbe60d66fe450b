#pragma once
#include <nlohmann/json.hpp>

#include "sc_main/explore/compare/what_if.h"
#include "topology/spec/resolve.h"

namespace kernbench {

class Run;

/// What `run --what-if` tries on `resolved`, the machine of `run`, before that itself runs. Throws as
/// compare::what_if(), and RunEnded when it is interrupted.
nlohmann::ordered_json try_what_if(const Run& run, const topology::Resolved& resolved);

}  // namespace kernbench
