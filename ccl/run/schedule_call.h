#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "ccl/data/spread.h"
#include "ccl/run/bound_call.h"
#include "ccl/run/execute.h"
#include "ccl/run/group_algorithm.h"
#include "ccl/run/group_queues.h"

namespace kernbench::ccl {

/// One rank's part of a call of a schedule algorithm: what its kernels share.
struct RankCall {
  std::shared_ptr<const ExecutionPlan> plan;
  bool in_place = false;
  std::vector<std::vector<NodeProgram>> programs;  ///< by node of the rank, then by variant of the schedule
  std::vector<Spread> spreads;                     ///< likewise
  std::int32_t first_node = 0;
  std::int64_t to_come = 0;  ///< bytes that reach the rank from others after its launch, at least

  /// (cube, PE) that have something to do.
  std::vector<std::pair<int, int>> targets() const;
  void run(Tl& tl) const;
  /// Of what a PE keeps of it.
  std::uint64_t bytes(int cube, int pe) const;

 private:
  /// What a PE works on: its node within the rank, the lane and the list; no list: only the spread.
  struct Part {
    std::size_t node = 0;
    const Lane* lane = nullptr;
    const NodeProgram* program = nullptr;
  };
  Part part_of(int cube, int pe) const;
};

/// Binds calls to the schedules that one algorithm makes for them.
class ScheduleBinder {
 public:
  /// They outlive it.
  ScheduleBinder(const GroupAlgorithm& algorithm, const GroupQueues& queues) : algorithm_(algorithm), queues_(queues) {}

  /// Throws Error where the operation does not suit shapes and placement, or the schedule needs more slots.
  RankCall bind(const CallTensors& tensors, BoundCall& call) const;

 private:
  void plan(BoundCall& call) const;
  std::vector<NodeProgram> programs(const ExecutionPlan& plan, std::int32_t node) const;
  std::int64_t to_come(const ExecutionPlan& plan, std::int32_t node, std::size_t item) const;

  const GroupAlgorithm& algorithm_;
  const GroupQueues& queues_;
};

}  // namespace kernbench::ccl
