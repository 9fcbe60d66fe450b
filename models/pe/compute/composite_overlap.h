#pragma once
#include "tlm/kernel/tl.h"

namespace kernbench::pe {

/// The operand of which C overwrites an element while later tiles still read it: "a", "b" or "bias"; null: none. Rows
/// may stand between each other's.
const char* overwritten(const CompositeGemm& gemm);

}  // namespace kernbench::pe
