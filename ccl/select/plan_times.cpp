#include <fmt/format.h>

#include <cmath>

#include "ccl/contract/error.h"
#include "ccl/run/request.h"
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
    if (candidate.between) return correct(algorithm, query, candidate);
    candidate.plan = planned(algorithm, query.request);
    const Plan& plan = candidate.plan;
    candidate.ns = plan.seconds * 1e9;
    candidate.known = true;
    candidate.at_least = plan.at_least;
    candidate.periodic = plan.schedule->period > 0;
    if (plan.schedule->bundles && plan.rounds > 1) candidate.little = "sends bundles";
  }

 private:
  Plan planned(const GroupAlgorithm& algorithm, const PlanRequest& request) const {
    Plan plan = algorithm.entry.plan(seen_as(algorithm.sips, request));
    check_transfer(*plan.schedule, request);
    return plan;
  }

  void correct(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) const {
    const TunedTable::Between& around = *candidate.between;
    const auto at = [&](std::uint64_t bytes) {
      PlanRequest request = query.request;
      request.bytes = std::llround(static_cast<double>(request.bytes) / static_cast<double>(query.bytes) *
                                   static_cast<double>(bytes));
      return planned(algorithm, request);
    };
    candidate.plan = at(query.bytes);
    candidate.ns = candidate.plan.seconds * 1e9 *
                   std::pow(around.low_ns / (at(around.low).seconds * 1e9), 1 - around.share) *
                   std::pow(around.high_ns / (at(around.high).seconds * 1e9), around.share);
  }
};

}  // namespace

std::unique_ptr<TimeSource> plan_times() { return std::make_unique<PlanTimes>(); }

}  // namespace kernbench::ccl
