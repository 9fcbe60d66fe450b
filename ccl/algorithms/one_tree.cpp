#include "ccl/schedule/plan.h"

/// Operations with a root, and all_reduce of small data, on one tree of shortest paths over SIPs and cubes.
///
/// As few messages as can be: p - 1, each edge once each way. Large data is pipelined: S/B for broadcast and reduce.
namespace kernbench::ccl {
namespace {

Plan one_tree_plan(const PlanRequest& request) {
  // What a gather becomes where the cubes of a SIP hide their data behind one address (docs/collective_algorithms.md,
  // Lanes).
  if (request.op == CollectiveOp::all_gather && request.cubes() > 1) return plan_hierarchical("one_tree", request);
  return plan_rooted("one_tree", request, true);
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(one_tree) {
  static const Algorithm algorithm =
      schedule_algorithm({"one_tree",
                          bit(CollectiveOp::all_reduce) | bit(CollectiveOp::reduce) | bit(CollectiveOp::broadcast) |
                              bit(CollectiveOp::gather) | bit(CollectiveOp::scatter) | bit(CollectiveOp::send_recv),
                          kAllScopes, kAllTopologies},
                         &one_tree_plan, &machine_links);
  return &algorithm;
}

}  // namespace kernbench::ccl
