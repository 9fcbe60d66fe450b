#include <algorithm>

#include "ccl/schedule/plan.h"

/// all_reduce, all_gather and reduce_scatter around a ring in one direction only: rank r sends to rank r + 1.
///
/// The textbook ring, 2(p-1) a + 2(p-1)/p S/B, half of what full-duplex links give: to compare with simulators and
/// libraries that do this. The data is cut no further than a slot asks for.
namespace kernbench::ccl {
namespace {

NodePairs ring_links(const PlanRequest& request) {
  NodePairs pairs;
  for (std::int32_t a = 0; a + 1 < request.ranks; ++a) pairs.emplace_back(a, a + 1);
  if (request.ranks > 2) pairs.emplace_back(0, request.ranks - 1);
  return pairs;
}

Plan ring_one_direction_plan(const PlanRequest& request) {
  const double part = static_cast<double>(request.bytes) / std::max(request.lanes, 1) / request.ranks;
  const Cut cut = cut_pieces(part, message_limit(request, request.slot_bytes), 16);
  return plan_with("ring_one_direction", request, choose_lambda(request, request.sip, part / cut.pieces), cut.rounds,
                   [&](int l) { return one_direction_schedule({request.op}, request.ranks, cut.pieces, l); });
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(ring_one_direction) {
  static const Algorithm algorithm = schedule_algorithm(
      {"ring_one_direction",
       bit(CollectiveOp::all_reduce) | bit(CollectiveOp::all_gather) | bit(CollectiveOp::reduce_scatter),
       bit(Scope::sip),
       topology_bit(kTopologyKinds.ring_1d) | topology_bit(kTopologyKinds.switch_star) |
           topology_bit(kTopologyKinds.fully_connected)},
      &ring_one_direction_plan, &ring_links);
  return &algorithm;
}

}  // namespace kernbench::ccl
