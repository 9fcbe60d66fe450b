#include <algorithm>

#include "ccl/schedule/plan.h"

/// all_reduce of small data: every node's whole vector floods one dimension after the other.
///
/// As many dependent hops as the longest way has, D (h + S/B), or one message straight to each node of a line. Each
/// node adds in the order of places, so all end with the same bits. Dimensions: columns and rows of cubes, then those
/// of the SIPs. With larger data half of it takes the dimensions in the opposite order. Or the cubes of a SIP first add
/// up their vectors at the row next to the IO chiplet, and only the sums flood: S once over each link between SIPs, not
/// once for each cube.
namespace kernbench::ccl {
namespace {

/// From here on estimates of several shapes take longer than the difference is worth.
constexpr std::int32_t kManyNodes = 512;

Plan flood_plan(const PlanRequest& request) {
  const std::int64_t limit = message_limit(request, request.slot_bytes);
  const double lane = static_cast<double>(request.bytes) / std::max(request.lanes, 1);
  Plan best;
  const auto consider = [&](const FloodShape& shape) {
    const Cut cut = cut_pieces(lane / shape.units, limit, 1);
    const std::int64_t rounds = cut.rounds * cut.pieces;
    const int lambda = choose_lambda(request, request.sip, lane / shape.units);
    Plan plan = plan_with("flood", request, lambda, rounds, [&](int l) { return flood_schedule(request, shape, l); });
    best = best.schedule ? shorter(std::move(best), std::move(plan)) : std::move(plan);
  };
  const bool lines = request.ranks > 2 && !all_pairs(request);
  const auto dims = static_cast<std::int32_t>(dimensions(request).size());
  for (const bool straight_sips : {true, false}) {
    if (straight_sips && !lines) continue;
    for (const std::int32_t units : {1, 2}) {
      const bool queues = !straight_sips || request.cubes() == 1;  // straight ones only at the top row
      if (units <= dims && queues && request.nodes() <= kManyNodes) consider({units, false, straight_sips});
    }
    if (request.cubes() == 1) continue;
    for (const bool straight_cubes : {true, false}) {
      if (straight_cubes && std::max(request.cube_w, request.cube_h) > kMostStraight) continue;
      consider({1, true, straight_sips, straight_cubes});
      if (request.cube_w > 1) consider({request.cube_w, true, straight_sips, straight_cubes});
    }
  }
  if (!best.schedule) consider({});
  return best;
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(flood) {
  static const Algorithm algorithm = schedule_algorithm(
      {"flood", bit(CollectiveOp::all_reduce), kAllScopes, kAllTopologies}, &flood_plan, &flood_links);
  return &algorithm;
}

}  // namespace kernbench::ccl
