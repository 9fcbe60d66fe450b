#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tp/transformer.h"
#include "sc_main/workloads/machine_work.h"
#include "sc_main/workloads/serve/steps.h"

namespace kernbench::serve {

/// What ranks simulate to know what steps cost. Made once for a run and shared by the ranks, which take turns; rank 0
/// says what all are to do.
///
/// Layers are alike: of each part and each step two layers are simulated. The first finds what something else has left,
/// the second what a layer leaves, and stands for all that follow.
class MachineSteps {
 public:
  /// `range`: of all that will be asked for. `ranks`: that share a layer; there are as many of each stage.
  MachineSteps(tp::Model model, tp::TransformerOptions options, std::int64_t layers, std::int64_t ranks,
               const StepRange& range, std::uint64_t seed);

  /// What has been done by a time since the start, and the most that there can be in a second
  /// (topology::most_per_second).
  struct Meter {
    std::function<MachineWork(Ps)> work;
    std::map<std::string, double> most;
  };
  /// Rank 0's program; the other ranks' lasts until it ends. `body` may call part() and whole(). The arguments outlive
  /// it.
  void run(Context& ctx, const Runtime& runtime, const Meter& meter, const std::function<void()>& body);
  Cost part(const Part& part);
  /// A step of one prompt, or of decode alone, in one go. Caches have one length: all sequences have the `fullest`
  /// positions, which set the time.
  Cost whole(const Step& step);

 private:
  class Rank;
  struct Task {
    std::optional<Part> part;
    Step step;
    bool ends = false;
  };
  Cost simulate();
  /// A lap that took `time`: what the ranks have launched from entry `entries` of the trace on, their mean, and what
  /// the machine has done since `before`.
  Cost since(std::size_t entries, const MachineWork& before, Ps time) const;

  const tp::Model model_;
  const tp::TransformerOptions options_;
  const std::int64_t layers_, ranks_;
  const StepRange range_;
  const std::uint64_t seed_;
  Task task_;
  // Of rank 0.
  Rank* first_ = nullptr;
  const Runtime* runtime_ = nullptr;
  const Meter* meter_ = nullptr;
  std::vector<Cost> laps_;  ///< of the task
};

}  // namespace kernbench::serve
