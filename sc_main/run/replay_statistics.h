#pragma once
#include <functional>
#include <memory>

#include "runtime/replay_options.h"
#include "topology/machine/statistics.h"

namespace kernbench {

/// What repeats did at every part of the machine, for its statistics.
class ReplayStatistics final : public ReplayRecord {
 public:
  /// They outlive it. `slices`: of the statistics. `now`: of the host.
  ReplayStatistics(topology::MachineUsage& usage, std::uint32_t slices, std::function<Ps()> now)
      : usage_(usage), repeated_(slices), now_(std::move(now)) {}
  std::unique_ptr<Done> begin(const Batch& batch) override;
  void end(int sip, Done& done) override;
  void simulated(Work work, const Done& done, Ps from, bool afresh) override;
  void repeated(Work work, const Batch& batch, Ps begin, Ps end) override;
  topology::RepeatedUse& repeated() { return repeated_; }

 private:
  struct Use;
  topology::MachineUsage& usage_;
  topology::RepeatedUse repeated_;
  const std::function<Ps()> now_;
};

}  // namespace kernbench
