#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tlm/observe/cause.h"
#include "tlm/observe/stretch.h"

namespace kernbench {

namespace topology {
struct Plan;
}

/// What the time of a run that ended at `end` was spent on: the object of docs/critical_path.md. `stretches`: what the
/// program named, in order of time. Throws std::logic_error if the segments do not add up to the run, or to a stretch.
nlohmann::ordered_json critical_path_of(CauseLog& log, const topology::Plan& plan, Ps end,
                                        const std::vector<Stretch>& stretches);

/// It in some lines for people, each a comment of the results.
std::string critical_path_text(const nlohmann::ordered_json& path);

}  // namespace kernbench
