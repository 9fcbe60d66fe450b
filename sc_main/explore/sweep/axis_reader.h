#pragma once
#include <optional>

#include "sc_main/explore/sweep/axis.h"
#include "sc_main/explore/sweep/vocabulary.h"

namespace kernbench::sweep {

/// Reads one entry of `axes`: a list of values, a list of maps, or a range. Reports what is wrong.
/// `needs_values`: the method cannot do with a range that says no step.
std::optional<Axis> read_axis(const ConfigNode::Entry& entry, bool needs_values, Vocabulary& vocabulary,
                              Problems& problems);

}  // namespace kernbench::sweep
