#include "ccl/run/group_algorithm.h"

#include <utility>

#include "ccl/data/layout.h"

namespace kernbench::ccl {

GroupAlgorithm::GroupAlgorithm(AlgorithmEntry entry, const MachineMap& map, const Group& group)
    : entry_(std::move(entry)), sips_(sip_shape(entry_, map, group)) {}

QueueNeeds GroupAlgorithm::needs(const MachineMap& map, const Group& group, Scope scope,
                                 const PlanRequest& machine) const {
  QueueNeeds needs;
  needs.directions = entry_.algorithm->directions;
  if (!group.ranks_are_pes()) {
    if (map.cubes_per_sip() > 1) needs.directions |= kCubeGrid;                               // copies over cubes
    if (map.pes_per_cube > 1) needs.directions |= lacks_pes(map) ? kLocalPeers : kLocalLine;  // and over PEs
  }
  if (entry_.algorithm->links == nullptr) return needs;
  PlanRequest request = machine;
  needs.links.ranks = links(request);
  if (kind() == AlgorithmKind::kernel) return needs;
  const Scope tiles = tiles_of(group, scope);
  if (tiles != Scope::sip) {
    request.cube_w = map.cube_w;
    request.cube_h = map.cube_h;
    needs.links.cubes = links(request);
  }
  if (tiles == Scope::pe && map.pes_per_cube > 1) {
    request.cube_w *= map.pes_per_cube;
    needs.links.pes = links(request);
  }
  return needs;
}

}  // namespace kernbench::ccl
