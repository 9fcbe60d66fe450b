#include "ccl/schedule/plan.h"

/// Keeps the links between SIPs and those between cubes busy at once: every cube's (PE's) tile is a contribution.
///
/// A packing of spanning trees over the SIPs is combined with one over the cubes of a SIP: each united tree carries its
/// part of the data up and down in a pipeline, so that every level's links are loaded alike:
/// max((G-1)/(E_sips B_sips), (n-1)/(E_cubes B_cubes)) S. reduce_scatter: inside the SIPs to the owner's cube, then
/// between SIPs there. With one contribution per SIP it is the packing of the SIPs alone.
namespace kernbench::ccl {

KERNBENCH_CCL_BUILT_IN(hierarchical) {
  static const Algorithm algorithm = schedule_algorithm(
      {"hierarchical",
       bit(CollectiveOp::all_reduce) | bit(CollectiveOp::reduce) | bit(CollectiveOp::broadcast) |
           bit(CollectiveOp::reduce_scatter) | bit(CollectiveOp::all_gather),
       kAllScopes, kAllTopologies},
      [](const PlanRequest& request) { return plan_hierarchical("hierarchical", request); }, &machine_links);
  return &algorithm;
}

}  // namespace kernbench::ccl
