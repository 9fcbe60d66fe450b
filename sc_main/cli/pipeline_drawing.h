#pragma once
#include <string>

#include "runtime/pipeline/check.h"

namespace kernbench {

/// The supertasks of each slot, a column a slot, in the order in which they run; members of an exchange stand side by
/// side. Lines: tensors. `format`: svg or dot. REQUIRES: a document without problems.
std::string draw_pipeline(const pipeline::Pipeline& pipeline, const pipeline::Checked& checked,
                          const std::string& format);

}  // namespace kernbench
