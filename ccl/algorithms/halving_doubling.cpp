#include <algorithm>

#include "ccl/schedule/plan.h"

/// all_reduce by recursive halving and doubling over ranks, straight from rank to rank.
///
/// 2 lg p exchanges for p = 2^q: 2(p-1)/p S/B at a port of its own. Ranks beyond a power of two hand over to a partner
/// first and get the result last. Partners are 1, 2, 4, ... apart: on a ring, torus or mesh they share links.
namespace kernbench::ccl {
namespace {

Plan halving_doubling_plan(const PlanRequest& request) {
  const double part = static_cast<double>(request.bytes) / std::max(request.lanes, 1) / request.ranks;
  const Cut cut = cut_pieces(2 * part, message_limit(request, request.slot_bytes), 1);
  return plan_with("halving_doubling", request, choose_lambda(request, request.sip, part), cut.rounds * cut.pieces,
                   [&](int l) { return halving_doubling_schedule(request.ranks, l); });
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(halving_doubling) {
  static const Algorithm algorithm =
      schedule_algorithm({"halving_doubling", bit(CollectiveOp::all_reduce), bit(Scope::sip), kAllTopologies},
                         &halving_doubling_plan, &peer_links);
  return &algorithm;
}

}  // namespace kernbench::ccl
