#include "ccl/schedule/plan.h"

/// All operations straight from rank to rank.
///
/// all_reduce: part j of everybody goes to rank j, is added there and goes back: 2 steps, 2/p S/B where every pair has
/// a link. Behind a switch rank i sends to i + d in step d, so that every port has one message at a time: 2(p-1)/p S/B.
/// Elsewhere messages are routed and share links: for few ranks or small data. With cubes that contribute on their own:
/// as `hierarchical`.
namespace kernbench::ccl {
namespace {

NodePairs direct_links(const PlanRequest& request) {
  return request.cubes() > 1 ? machine_links(request) : peer_links(request);
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(direct) {
  static const Algorithm algorithm = schedule_algorithm(
      {"direct", kAllOperations, kAllScopes, kAllTopologies},
      [](const PlanRequest& request) { return plan_direct("direct", request); }, &direct_links);
  return &algorithm;
}

}  // namespace kernbench::ccl
