#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "sc_main/explore/compare/changes.h"

namespace kernbench::topology {
struct Plan;
}

namespace kernbench::compare {

/// Of every two of `changes` that make the same key of the two ends of a UCIe link better, one change that makes both:
/// a link has the lower rate of its two ends, and an exchange the time of its slower direction, so that neither alone
/// may help. `config`, `plan`: of the machine that `changes` are of.
std::vector<Change> changes_of_both_ends(const nlohmann::ordered_json& config, const std::vector<Change>& changes,
                                         const topology::Plan& plan);

}  // namespace kernbench::compare
