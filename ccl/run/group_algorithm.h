#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ccl/contract/plan_request.h"
#include "ccl/import/entry.h"
#include "ccl/run/bound_call.h"
#include "ccl/run/group_queues.h"

namespace kernbench::ccl {

/// An entry of ccl.yaml as one process group runs it: requests and answers are about the SIPs as the algorithm sees
/// them.
class GroupAlgorithm {
 public:
  /// `calls`: of the group; outlives it. Throws Error if the algorithm does not serve the group's scope or topology.
  GroupAlgorithm(AlgorithmEntry entry, const CallBinder& calls);

  const AlgorithmEntry& entry() const { return entry_; }
  const std::string& name() const { return entry_.name; }
  AlgorithmKind kind() const { return entry_.algorithm->kind(); }
  bool serves(CollectiveOp op) const { return (entry_.algorithm->operations & bit(op)) != 0; }
  const SipShape& sips() const { return sips_; }
  /// What all calls need of GroupQueues.
  const QueueNeeds& needs() const { return needs_; }
  /// AlgorithmEntry::is_as_shipped.
  bool is_as_shipped() const { return as_shipped_; }
  /// What a call needs: one that runs PE to PE queues of its own, too. Throws Error where it cannot run so.
  QueueNeeds needs_of(BoundCall& call) const {
    return kind() == AlgorithmKind::pe_to_pe ? needs_pe_to_pe(call) : needs_;
  }
  /// Those of its own. REQUIRES: kind() is pe_to_pe.
  const std::vector<std::pair<std::int32_t, std::int32_t>>& pe_links(BoundCall& call) const;
  /// A request of the SIPs as they are, with those that the algorithm sees.
  PlanRequest seen(PlanRequest request) const { return sips_.put_into(std::move(request)); }
  /// As AlgorithmEntry::plan, of a request with the SIPs as they are. Throws Error, too, where a module's
  /// schedule is wrong, or a transfer between two ranks would pass others, which make no call.
  Plan plan(const PlanRequest& request) const;
  /// Node pairs that its schedules use, with so many nodes of a rank.
  std::vector<std::pair<std::int32_t, std::int32_t>> links(std::int32_t node_w, std::int32_t node_h) const;

 private:
  QueueNeeds find_needs() const;
  QueueNeeds needs_pe_to_pe(BoundCall& call) const;
  /// Throws Error if it is for another call, or, of a module, no schedule, or one that `links` does not tell of.
  void check_schedule(const Schedule& schedule, const PlanRequest& request) const;

  const AlgorithmEntry entry_;
  const CallBinder& calls_;
  const SipShape sips_;
  const QueueNeeds needs_;
  const bool as_shipped_;
};

/// Throws Error if the algorithm does not serve the operation.
void check_serves(const AlgorithmEntry& entry, CollectiveOp op);

}  // namespace kernbench::ccl
