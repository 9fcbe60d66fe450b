#pragma once
#include <string>

namespace kernbench::topology {

struct Plan;

/// `topology show --stage N`, N from 3 to 6: layouts, components and edges, routing tables with what follows from them,
/// and the modules that the elaborator would make. What repeats is shown once. Throws std::invalid_argument for another
/// stage.
std::string show(const Plan& plan, int stage);

}  // namespace kernbench::topology
