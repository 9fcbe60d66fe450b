#pragma once
#include "runtime/process_group.h"
#include "runtime/runtime.h"
#include "sc_main/workloads/collective_case.h"

namespace kernbench {

/// Starts this rank's part of a collective of a group. `in` or `out` is empty where the rank has none. A barrier is an
/// all_reduce. REQUIRES: op is not send_recv.
Handle start_collective(Context& ctx, CollectiveOp op, const CollectiveCase& what, const CollectiveLayout& layout,
                        const Tensor& in, const Tensor& out, const Group& group);

}  // namespace kernbench
