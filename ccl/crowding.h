#pragma once
#include "ccl/collective.h"
#include "ccl/schedule/schedule.h"

namespace kernbench::ccl {

/// Whether the messages of an operation, in no order and straight from the PEs that hold data, crowd the columns of
/// cubes behind an IO chiplet, so that a rehearsal takes them for faster than they are: it takes the cubes' networks as
/// free. `request`: the machine; `bytes`: of the call, as a rank counts them. Ranks that are PEs have no such columns.
bool crowds_columns(const MachineMap& map, const PlanRequest& request, CollectiveOp op, double bytes,
                    const CallTensors* tensors);

}  // namespace kernbench::ccl
