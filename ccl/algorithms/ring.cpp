#include "ccl/schedule/plan.h"

/// All operations on a ring, both directions at once.
///
/// all_gather and reduce_scatter: each rank's part goes both ways round at once, on a tree of shortest paths; the
/// message with the longest way left first. all_reduce is both: 2 floor(p/2) dependent steps, (p-1)/p S/B, its bound.
/// all_to_all: p/8 S/B for even p. broadcast and reduce: half of the data each way round, S/2B. With cubes that
/// contribute on their own: as `hierarchical`.
namespace kernbench::ccl {
namespace {

Plan plan(const PlanRequest& request) { return plan_grid("ring", request); }

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm = schedule_algorithm(
      {"ring", kAllOperations, kAllScopes, topology_bit(kTopologyKinds.ring_1d), &plan, &machine_links});
  return &algorithm;
}
