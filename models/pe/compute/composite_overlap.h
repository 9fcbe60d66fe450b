#pragma once
#include "tlm/kernel/tl.h"

namespace kernbench::pe {

/// The operand of which C overwrites an element while later tiles still read it: "a", "b", "bias" or "the residual";
/// null: none. Rows may stand between each other's. A residual that is C itself is read before it is overwritten.
const char* overwritten(const CompositeGemm& gemm);

}  // namespace kernbench::pe
