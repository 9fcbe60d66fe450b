#include <algorithm>
#include <stdexcept>

#include "ccl/schedule/plan.h"

/// reduce_scatter of small data in few steps, where combs add up from hop to hop.
///
/// Cubes hand their vectors straight up their column to the row next to the IO chiplet, whose crossbar leads to any
/// column of any SIP: from there each part goes straight to the column of its owner, and down to it. Parts are added at
/// most three times on their way. Serves lines of up to 16 SIPs, 512 nodes in all.
namespace kernbench::ccl {
namespace {

constexpr std::int32_t kMostNodes = 512;

Plan plan(const PlanRequest& request) {
  if (request.nodes() > kMostNodes) throw std::invalid_argument("algorithm 'funnel' serves at most 512 contributors");
  const double part = static_cast<double>(request.bytes) / std::max(request.lanes, 1) / request.nodes();
  const Cut cut = cut_pieces(part, message_limit(request, request.slot_bytes), 1);
  return plan_with("funnel", request, choose_lambda(request, request.sip, part), cut.rounds * cut.pieces,
                   [&](int l) { return funnel_schedule(request, l); });
}

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm =
      schedule_algorithm({"funnel", bit(CollectiveOp::reduce_scatter), bit(Scope::sip) | bit(Scope::cube),
                          kAllTopologies, &plan, &funnel_links});
  return &algorithm;
}
