#pragma once
#include <string>
#include <vector>

#include "runtime/placement.h"
#include "tlm/kernel/tile.h"

namespace kernbench {

/// "cube=column_wise,pe=replicate[,cubes=4][,pes=2]", or the name of a YAML file (load_dp_policy). Throws
/// Refused with all that is wrong, or ConfigError with the place in the file; for a SIP axis or a flat PE index it says
/// what to use instead.
DPPolicy parse_placement(const std::string& option, const std::string& text);

/// Those of the placements, and of the algorithms where an option takes one, that are names of files: YAML, schedules.
std::vector<std::string> named_files(const std::vector<std::string>& placements,
                                     const std::vector<std::string>& algorithms = {});

/// A shape of `count` elements that the policy can split: 1 x n for columns, n x 1 for rows, otherwise nearly square.
Shape shape_for(const DPPolicy& policy, std::int64_t count, int row_multiple);

}  // namespace kernbench
