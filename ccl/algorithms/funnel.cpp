#include <algorithm>

#include "ccl/schedule/plan.h"

/// reduce_scatter of small data in few steps and few messages.
///
/// Cubes hand their vectors straight up their column to the row next to the IO chiplet. From there bundles of all that
/// is to go to a row of SIPs go straight along the SIP's column, then bundles for each SIP straight along the row;
/// there each cube gets its part. Serves lines of up to 16 SIPs.
namespace kernbench::ccl {
namespace {

/// Owners of which a lane has a part, from which on messages are for a SIP and not for each owner.   assumed: a message
/// takes some 20 ns, a message less on the longest way, within a SIP, some 100 ns
constexpr std::int32_t kFewOwners = 4;

Plan funnel_plan(const PlanRequest& request) {
  const double lane = static_cast<double>(request.bytes) / std::max(request.lanes, 1);
  const Cut cut = cut_pieces(lane, message_limit(request, request.slot_bytes), 1);
  const bool to_columns = request.nodes() <= kFewOwners * std::max(request.lanes, 1) && request.cube_h <= request.slots;
  return plan_with("funnel", request, 0, cut.rounds * cut.pieces,
                   [&](int) { return funnel_schedule(request, to_columns); });
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(funnel) {
  static const Algorithm algorithm = schedule_algorithm(
      {"funnel", bit(CollectiveOp::reduce_scatter), bit(Scope::sip) | bit(Scope::cube), kAllTopologies}, &funnel_plan,
      &funnel_links);
  return &algorithm;
}

}  // namespace kernbench::ccl
