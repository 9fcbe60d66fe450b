#include "ccl/run/request.h"

#include <algorithm>
#include <utility>

#include "ccl/data/layout.h"
#include "ccl/schedule/level_cost.h"

namespace kernbench::ccl {

PlanRequest machine_request(const MachineMap& map, const SipShape& shape) {
  PlanRequest request;
  request.ranks = shape.ranks;
  describe_machine(map, request);
  return seen_as(shape, std::move(request));
}

namespace {
/// Node pairs that an algorithm's schedules use.
NodeLinks node_links(const AlgorithmEntry& entry, const MachineMap& map, PlanRequest request, Scope scope) {
  NodeLinks links;
  links.ranks = entry.links(request);
  if (entry.algorithm->kind() == AlgorithmKind::kernel) return links;
  if (scope != Scope::sip) {
    request.cube_w = map.cube_w;
    request.cube_h = map.cube_h;
    links.cubes = entry.links(request);
  }
  if (scope == Scope::pe && map.pes_per_cube > 1) {
    request.cube_w *= map.pes_per_cube;
    links.pes = entry.links(request);
  }
  return links;
}
}  // namespace

QueueNeeds queue_needs(const AlgorithmEntry& entry, const SipShape& shape, const MachineMap& map, const Group& group,
                       const PlanRequest& machine, Scope scope) {
  QueueNeeds needs;
  needs.directions = entry.algorithm->directions;
  if (!group.ranks_are_pes()) {
    if (map.cubes_per_sip() > 1) needs.directions |= kCubeGrid;                               // copies over cubes
    if (map.pes_per_cube > 1) needs.directions |= lacks_pes(map) ? kLocalPeers : kLocalLine;  // and over PEs
  }
  if (entry.algorithm->links != nullptr)
    needs.links = node_links(entry, map, seen_as(shape, machine), tiles_of(group, scope));
  return needs;
}

CallShape call_shape(const CallMaps& maps, std::size_t lanes, std::size_t item) {
  CallShape shape;
  shape.op = maps.op;
  shape.node_w = maps.node_w;
  shape.node_h = maps.node_h;
  const std::size_t regions = std::max(maps.in[0].size(), maps.out[0].size());
  shape.bytes = maps.elements * static_cast<std::int64_t>(regions * item);
  shape.lanes = static_cast<std::int32_t>(std::max<std::size_t>(lanes, 1));
  return shape;
}

PlanRequest call_request(const MachineMap& map, const Group& group, PlanRequest machine, const CallShape& shape,
                         std::int32_t root, std::int32_t peer) {
  PlanRequest request = std::move(machine);
  request.op = shape.op;
  set_nodes(request, shape.node_w, shape.node_h);
  request.root = shape.op == CollectiveOp::send_recv ? root : root * request.cubes();
  request.peer = peer;
  request.bytes = shape.bytes;
  request.lanes = shape.lanes;
  request.slots = group.queue.slots;
  request.slot_bytes = group.queue.slot_bytes;
  if (request.cubes() == 1 && !group.ranks_are_pes()) spread_regions(map, request);
  return request;
}

}  // namespace kernbench::ccl
