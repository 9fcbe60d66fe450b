#pragma once
#include <cstdint>
#include <memory>

#include "ccl/contract/plan_request.h"
#include "ccl/run/bound_call.h"
#include "ccl/run/group_algorithm.h"
#include "ccl/select/candidates.h"
#include "ccl/select/registry.h"

/// Where the times come from by which `auto` chooses: one file a source.
namespace kernbench::ccl {

/// The call whose time is asked for.
struct TimeQuery {
  BoundCall& call;
  std::uint64_t bytes = 0;  ///< S as in nccl-tests
  double most_seconds = 0;  ///< what surely takes longer than this is not estimated (PlanRequest::most_seconds)
};

class TimeSource {
 public:
  virtual ~TimeSource() = default;
  /// Puts into `candidate` what the algorithm should take for the call, and leaves it alone where this source does not
  /// know it. Throws Error if the algorithm does not serve the call.
  virtual void predict(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) = 0;
};

// What they are given outlives them.

/// Measured times: those of ccl.yaml, if its parameters hold (`measured_so`), else those that ship.
std::unique_ptr<TimeSource> tuned_times(const Registry& registry, const CallBinder& calls, bool measured_so);
/// Of schedules: what estimate() makes of their plan.
std::unique_ptr<TimeSource> plan_times();
/// Of calls that run PE to PE: the latency of the farthest message (load, way, store), and what the busiest of the PEs,
/// columns of cubes and links between SIPs does meanwhile.
std::unique_ptr<TimeSource> message_times(const CallBinder& calls);

}  // namespace kernbench::ccl
