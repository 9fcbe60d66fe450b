#pragma once
#include <cstdint>

#include "ccl/data/region_map.h"
#include "ccl/import/entry.h"
#include "ccl/run/group_queues.h"

/// What a schedule is asked for: the one place that says so, for choosing an algorithm and for running it.
namespace kernbench::ccl {

/// What does not depend on the call: SIPs, links, memories.
PlanRequest machine_request(const MachineMap& map, const SipShape& shape);
/// The request with the SIPs as an algorithm sees them.
inline PlanRequest seen_as(const SipShape& shape, PlanRequest request) {
  request.kind = shape.kind;
  request.sip_w = shape.w;
  request.sip_h = shape.h;
  return request;
}

/// What all calls of an algorithm need of GroupQueues; a call that runs PE to PE needs more.
struct QueueNeeds {
  std::uint32_t directions = 0;
  NodeLinks links;
};
/// `shape`: the SIPs as the algorithm sees them. `machine`: CallBinder::machine().
QueueNeeds queue_needs(const AlgorithmEntry& entry, const SipShape& shape, const MachineMap& map, const Group& group,
                       const PlanRequest& machine, Scope scope);

/// A call's data on each rank, as far as a schedule depends on them.
struct CallShape {
  CollectiveOp op = CollectiveOp::all_reduce;  ///< of the schedule: see CallMaps::op
  std::int32_t node_w = 1, node_h = 1;         ///< nodes of a rank
  std::int64_t bytes = 0;                      ///< of the larger of in and out of one node, over all lanes
  std::int32_t lanes = 1;
};
/// `item`: bytes of an element.
CallShape call_shape(const CallMaps& maps, std::size_t lanes, std::size_t item);

/// The whole request. `root`, `peer`: as in Schedule, but the root of all but a send_recv is a rank.
PlanRequest call_request(const MachineMap& map, const Group& group, PlanRequest machine, const CallShape& shape,
                         std::int32_t root, std::int32_t peer);

}  // namespace kernbench::ccl
