#include "ccl/contract/error.h"
#include "ccl/select/source.h"

namespace kernbench::ccl {
namespace {

/// Throws Error where a schedule of two ranks needs others, which make no call.
void check_transfer(const Schedule& schedule, const PlanRequest& request) {
  if (request.op != CollectiveOp::send_recv || request.root < 0) return;
  for (std::int32_t node = 0; node < schedule.nodes; ++node) {
    if (node != request.root && node != request.peer && !schedule.lists(0)[static_cast<std::size_t>(node)].empty())
      throw Error("passes ranks that make no call");
  }
}

class PlanTimes final : public TimeSource {
 public:
  void predict(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) override {
    candidate.known = true;
    if (!query.call.lanes) return;  // nothing is moved
    PlanRequest request = query.call.request;
    request.most_seconds = query.most_seconds;
    candidate.plan = algorithm.plan(request);
    const Plan& plan = candidate.plan;
    check_transfer(*plan.schedule, request);
    candidate.ns = plan.seconds * 1e9;
    candidate.at_least = plan.at_least;
    candidate.periodic = plan.schedule->period > 0;
    if (plan.schedule->bundles && plan.rounds > 1) candidate.little = "sends bundles";
  }
};

}  // namespace

std::unique_ptr<TimeSource> plan_times() { return std::make_unique<PlanTimes>(); }

}  // namespace kernbench::ccl
