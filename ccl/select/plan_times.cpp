#include "ccl/select/source.h"

namespace kernbench::ccl {
namespace {

class PlanTimes final : public TimeSource {
 public:
  void predict(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) override {
    candidate.known = !query.call.lanes;
    if (candidate.known) return;  // nothing is moved
    PlanRequest request = query.call.request;
    request.most_seconds = query.most_seconds;
    candidate.plan = algorithm.plan(request);
    const Plan& plan = candidate.plan;
    candidate.known = plan.seconds > 0 || plan.schedule->links.empty();
    candidate.ns = plan.seconds * 1e9;
    candidate.at_least = plan.at_least;
    candidate.periodic = plan.schedule->period > 0;
    if (plan.schedule->bundles && plan.rounds > 1) candidate.little = "sends bundles";
  }
};

}  // namespace

std::unique_ptr<TimeSource> plan_times() { return std::make_unique<PlanTimes>(); }

}  // namespace kernbench::ccl
