#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ccl/contract/entry.h"
#include "ccl/data/spread.h"
#include "ccl/run/execute.h"
#include "ccl/run/neighbours.h"

namespace kernbench::ccl {

/// What a call of a schedule algorithm is made of on all ranks: schedule, lanes, and how data lie.
struct ScheduleCall {
  ExecutionPlan plan;
  bool in_place = false;
  int contributions = 0;
};

/// One rank's part of it: what its kernels share.
struct RankCall {
  std::shared_ptr<const ScheduleCall> call;
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
  ScheduleBinder(const AlgorithmEntry& entry, const GroupQueues& queues, const SipShape& shape, Scope scope)
      : entry_(entry), queues_(queues), shape_(shape), scope_(scope) {}

  /// Throws Error where the operation does not suit shapes and placement, or the schedule needs more slots.
  RankCall bind(int rank, const CollectiveCall& call, const LaunchMessage::TensorArg& in,
                const LaunchMessage::TensorArg& out) const;

 private:
  std::shared_ptr<const ScheduleCall> make(int rank, const CollectiveCall& call, const LaunchMessage::TensorArg& in,
                                           const LaunchMessage::TensorArg& out) const;
  std::vector<NodeProgram> programs(const ScheduleCall& call, std::int32_t node) const;
  std::int64_t to_come(const ScheduleCall& call, std::int32_t node, std::size_t item) const;

  const AlgorithmEntry& entry_;
  const GroupQueues& queues_;
  const SipShape shape_;
  const Scope scope_;
  /// The last call's plan, for the other ranks: what it was made for, and the plan.
  struct Last {
    CollectiveCall call;
    LaunchMessage::TensorArg in, out;
    std::shared_ptr<const ScheduleCall> made;
  };
  mutable Last last_;
};

}  // namespace kernbench::ccl
