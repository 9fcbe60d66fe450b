#pragma once
#include <nlohmann/json.hpp>

#include "topology/spec/check.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

/// Reads `overrides` of the merged tree into `spec`, whose other values are read. Reports everything that is wrong.
///
/// More specific ones win: a PE's over its cube's; of the same kind the later one.
void apply_overrides(SystemSpec& spec, const CheckContext& context);

/// The canonical list of overrides: one entry per cube, PE and link that differs. Empty if there are none.
nlohmann::ordered_json overrides_to_json(const SystemSpec& spec);

}  // namespace kernbench::topology
