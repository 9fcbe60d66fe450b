#include "ccl/schedule/plan.h"

/// all_reduce on two binary trees over ranks, straight from rank to rank.
///
/// Half of the data on each tree, up and down in a pipeline; who is inside one tree is a leaf of the other, so a port
/// carries about 2 S. 2 ceil(lg p) dependent steps. On a ring, torus or mesh its messages share links.
namespace kernbench::ccl {
namespace {

Plan double_binary_tree_plan(const PlanRequest& request) {
  return plan_rounds("double_binary_tree", request, 1, [&](int l) { return double_tree_schedule(request.ranks, l); });
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(double_binary_tree) {
  static const Algorithm algorithm =
      schedule_algorithm({"double_binary_tree", bit(CollectiveOp::all_reduce), bit(Scope::sip), kAllTopologies},
                         &double_binary_tree_plan, &peer_links);
  return &algorithm;
}

}  // namespace kernbench::ccl
