#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ccl/contract/plan_request.h"
#include "ccl/import/entry.h"
#include "ccl/run/group_queues.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// What all calls of an algorithm need of GroupQueues; a call that runs PE to PE needs more.
struct QueueNeeds {
  std::uint32_t directions = 0;
  NodeLinks links;
};

/// An entry of ccl.yaml as one process group runs it: requests and answers are about the SIPs as the algorithm sees
/// them.
class GroupAlgorithm {
 public:
  /// Throws Error if the algorithm does not serve the group's topology, or ranks that are PEs, as a grid or a ring.
  GroupAlgorithm(AlgorithmEntry entry, const MachineMap& map, const Group& group);

  const AlgorithmEntry& entry() const { return entry_; }
  const std::string& name() const { return entry_.name; }
  AlgorithmKind kind() const { return entry_.algorithm->kind(); }
  const SipShape& sips() const { return sips_; }
  /// The request, of the SIPs as they are, with those that the algorithm sees.
  PlanRequest seen(PlanRequest request) const { return sips_.put_into(std::move(request)); }
  /// As those of AlgorithmEntry, of a request with the SIPs as they are.
  Plan plan(const PlanRequest& request) const { return entry_.plan(seen(request)); }
  std::vector<std::pair<std::int32_t, std::int32_t>> links(const PlanRequest& request) const {
    return entry_.links(seen(request));
  }
  /// `machine`: CallBinder::machine().
  QueueNeeds needs(const MachineMap& map, const Group& group, Scope scope, const PlanRequest& machine) const;

 private:
  AlgorithmEntry entry_;
  SipShape sips_;
};

}  // namespace kernbench::ccl
