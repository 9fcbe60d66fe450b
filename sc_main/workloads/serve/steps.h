#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "sc_main/workloads/serve/schedule.h"

namespace kernbench::serve {

/// A step that the machine can take: whole numbers. Prompts have batch 0.
struct StepKind {
  std::int64_t batch = 0, positions = 0;
  friend bool operator<(const StepKind& a, const StepKind& b) {
    return std::pair(a.batch, a.positions) < std::pair(b.batch, b.positions);
  }
};

/// What steps cost, out of few that are simulated: between them cost is linear in positions and in the batch.
///
/// Simulated positions and batches are 1, 2, 3, 4, 6, 8, 12, ...: powers of two and half as much again, a step of which
/// costs a constant, a part in proportion to each and, of prompts, one to the square: between neighbours a third or a
/// half apart the last is off by 4 % of it at most. Each point is simulated when first needed.
class StepCosts {
 public:
  explicit StepCosts(std::function<Cost(const StepKind&)> simulate) : simulate_(std::move(simulate)) {}
  Cost of(const Step& step);
  /// Points that were simulated.
  std::size_t simulated() const { return known_.size(); }

 private:
  const Cost& at(const StepKind& kind);
  Cost along(std::int64_t batch, double positions);

  std::function<Cost(const StepKind&)> simulate_;
  std::map<StepKind, Cost> known_;
};

}  // namespace kernbench::serve
