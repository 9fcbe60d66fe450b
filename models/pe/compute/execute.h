#pragma once
#include "models/pe/op.h"
#include "models/pe/tcm/tcm.h"

namespace kernbench::pe {

/// Computes a GEMM or math op: reads its inputs from TCM, writes its result there. Takes no simulated time.
void execute(const Op& op, Tcm& tcm);

}  // namespace kernbench::pe
