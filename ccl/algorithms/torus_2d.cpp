#include "ccl/schedule/plan.h"

/// All operations on a torus, both dimensions and both directions at once.
///
/// Every rank's part travels half (or the share that loads all links alike) on a tree that goes along the rows first,
/// the rest on one that goes along the columns first. all_reduce: (p-1)/(2p) S/B on a torus with sides of at least 3,
/// its bound; D dependent hops in each half. all_to_all: max(w, h)/8 S/B for even sides. With cubes that contribute on
/// their own: as `hierarchical`.
namespace kernbench::ccl {
namespace {

Plan plan(const PlanRequest& request) { return plan_grid("torus_2d", request); }

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm = schedule_algorithm(
      {"torus_2d", kAllOperations, kAllScopes, topology_bit(kTopologyKinds.torus_2d), &plan, &machine_links});
  return &algorithm;
}
