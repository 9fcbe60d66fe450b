#pragma once
#include <cstdint>

#include "ccl/contract/plan_request.h"
#include "ccl/data/region_map.h"
#include "ccl/run/queues.h"
#include "tlm/machine/machine_map.h"

/// What a schedule is asked for: the one place that says so, for choosing an algorithm and for running it.
namespace kernbench::ccl {

/// What does not depend on the call: SIPs as they are, links, memories.
PlanRequest machine_request(const MachineMap& map, const Group& group);

/// The whole request. `lanes`: of a node. `item`: bytes of an element. `root`, `peer`: as in Schedule, but the root of
/// all but a send_recv is a rank.
PlanRequest call_request(const MachineMap& map, const Group& group, PlanRequest machine, const CallMaps& maps,
                         std::size_t lanes, std::size_t item, std::int32_t root, std::int32_t peer);

}  // namespace kernbench::ccl
