#include <algorithm>

#include "ccl/schedule/plan.h"

/// all_reduce of small data: every node's whole vector floods one dimension after the other.
///
/// As many dependent hops as the longest way has, which nothing can beat: D (h + S/B). Each node adds in the order of
/// places, so all end with the same bits. Dimensions: columns and rows of cubes, then those of the SIPs; where every
/// pair of SIPs is joined, one hop. With larger data half of it takes the dimensions in the opposite order.
namespace kernbench::ccl {
namespace {

Plan plan(const PlanRequest& request) {
  const std::int64_t limit = message_limit(request, request.slot_bytes);
  const double lane = static_cast<double>(request.bytes) / std::max(request.lanes, 1);
  const auto make = [&](int colours) {
    const Cut cut = cut_pieces(lane / colours, limit, 1);
    const std::int64_t rounds = cut.rounds * cut.pieces;
    return plan_with("flood", request, choose_lambda(request, request.sip, lane / colours), rounds,
                     [&](int l) { return flood_schedule(request, colours, l); });
  };
  if (dimensions(request).size() < 2) return make(1);
  return shorter(make(1), make(2));
}

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm =
      schedule_algorithm({"flood", bit(CollectiveOp::all_reduce), kAllScopes, kAllTopologies, &plan, &machine_links});
  return &algorithm;
}
