#include "ccl/schedule/plan.h"

/// All operations on a mesh without wrap-around.
///
/// Large all_reduce on a packing of comb trees, up and down at once and pipelined: (p-1)/E S/B, its bound, where a
/// reduce-scatter and an all-gather pay the corners twice; below some size these two are shorter, and are taken.
/// all_gather and reduce_scatter: (p-1)/(2p) S/B, the bound of a corner. all_to_all: max(w, h)/4 S/B for even sides.
/// With cubes that contribute on their own: as `hierarchical`.
namespace kernbench::ccl {
namespace {

Plan plan(const PlanRequest& request) { return plan_grid("mesh_2d", request); }

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm = schedule_algorithm(
      {"mesh_2d", kAllOperations, kAllScopes, topology_bit(kTopologyKinds.mesh_2d_no_wrap), &plan, &machine_links});
  return &algorithm;
}
