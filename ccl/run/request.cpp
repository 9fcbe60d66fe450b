#include "ccl/run/request.h"

#include <algorithm>
#include <utility>

#include "ccl/run/group_queues.h"
#include "ccl/schedule/level_cost.h"
#include "ccl/schedule/ways.h"

namespace kernbench::ccl {

PlanRequest machine_request(const MachineMap& map, const Group& group) {
  const SipShape sips = sip_shape(map, group);
  PlanRequest request;
  request.ranks = sips.ranks;
  describe_machine(map, request);
  if (!group.ranks_are_pes()) {
    request.sip_ways = sip_ways(map, group.sips);
    request.cube_ways = cube_ways(map, group.sips);
  }
  return sips.put_into(std::move(request));
}

PlanRequest call_request(const MachineMap& map, const Group& group, PlanRequest machine, const CallMaps& maps,
                         std::size_t lanes, std::size_t item, std::int32_t root, std::int32_t peer) {
  PlanRequest request = std::move(machine);
  request.op = maps.op;
  set_nodes(request, maps.node_w, maps.node_h);
  request.root = maps.op == CollectiveOp::send_recv ? root : root * request.cubes();
  request.peer = peer;
  request.bytes = maps.elements * static_cast<std::int64_t>(std::max(maps.in[0].size(), maps.out[0].size()) * item);
  if (maps.level != NodeLevel::cube || request.cubes() != map.cubes_per_sip()) request.cube_ways = nullptr;
  request.lanes = static_cast<std::int32_t>(std::max<std::size_t>(lanes, 1));
  request.slots = group.queue.slots;
  request.slot_bytes = group.queue.slot_bytes;
  if (request.cubes() == 1 && !group.ranks_are_pes()) spread_regions(map, request);
  return request;
}

}  // namespace kernbench::ccl
