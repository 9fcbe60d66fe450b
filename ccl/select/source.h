#pragma once
#include <memory>
#include <string>

#include "ccl/contract/plan_request.h"
#include "ccl/import/entry.h"
#include "ccl/run/bound_call.h"
#include "ccl/run/group_queues.h"
#include "ccl/select/candidates.h"
#include "ccl/select/registry.h"

/// Where the times come from by which `auto` chooses: one file a source.
namespace kernbench::ccl {

/// An entry of ccl.yaml as a process group sees it.
struct GroupAlgorithm {
  std::string name;
  AlgorithmEntry entry{};
  SipShape sips{};
  bool as_shipped = false;  ///< what ships of measured times holds for it
  std::string unfit{};      ///< why it serves no call of the group; empty: it does
};

/// The call whose time is asked for.
struct TimeQuery {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::uint64_t bytes = 0;               ///< S as in nccl-tests
  const CallTensors* tensors = nullptr;  ///< null: over all PEs
  std::shared_ptr<BoundCall> call;       ///< null: there are no tensors, or they do not suit it
  PlanRequest request;                   ///< what a schedule is asked for, SIPs as they are
};

class TimeSource {
 public:
  virtual ~TimeSource() = default;
  /// Puts into `candidate` what the algorithm should take for the call, and leaves it alone where this source does not
  /// know it. Throws Error if the algorithm does not serve the call.
  virtual void predict(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) = 0;
};

// What they are given outlives them.

/// Measured times: those of ccl.yaml, else those that ship.
std::unique_ptr<TimeSource> tuned_times(const Registry& registry, const MachineMap& map, const Group& group,
                                        Scope scope);
/// Of schedules: what estimate() makes of their plan. Of a candidate that was measured at sizes on both sides: the
/// estimate tells how the time grows between them, and the measurements how far it is from the truth.
std::unique_ptr<TimeSource> plan_times();
/// Of calls that run PE to PE: the latency of the farthest message (load, way, store), and what the busiest of the PEs,
/// columns of cubes and links between SIPs does meanwhile. `machine`: of the group's requests (CallBinder::machine).
std::unique_ptr<TimeSource> message_times(const MachineMap& map, const Group& group, const PlanRequest& machine);

}  // namespace kernbench::ccl
