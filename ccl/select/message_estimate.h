#pragma once
#include "ccl/run/pe_to_pe.h"
#include "ccl/schedule/plan_request.h"

namespace kernbench::ccl {

/// Seconds that a call that runs PE to PE should take: the latency of its farthest message (load, way, store), and what
/// the busiest of the PEs, columns of cubes and links between SIPs does meanwhile. `machine`: what a plan would be
/// asked for. `tensors`: of the call that all ranks make. Throws Error where it cannot run PE to PE.
struct MessageEstimate {
  double seconds = 0;
  bool crowded = false;  ///< its messages, which nothing orders, stand in line for longer than the longest way takes
};
MessageEstimate estimate_messages(const MachineMap& map, const Group& group, Scope scope, const PlanRequest& machine,
                                  const CallTensors& tensors);

}  // namespace kernbench::ccl
