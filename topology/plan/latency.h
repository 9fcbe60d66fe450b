#pragma once
#include <cstdint>

#include "tlm/base/time.h"
#include "tlm/machine/ids.h"
#include "topology/plan/network.h"
#include "topology/plan/walk.h"

namespace kernbench::topology {

struct Plan;

/// Zero-load times, from the models' own closed forms (models/noc/zero_load.h, models/link/zero_load.h).
class LatencyModel {
 public:
  explicit LatencyModel(const Plan& plan) : plan_(plan) {}

  /// One packet of `bytes`: injection of its head to arrival of its tail at the destination's network interface.
  Ps packet(NodeId from, NodeId to, std::uint32_t bytes) const;

  /// Bound on the time from the injection of the last `start` at an IO_CPU until every PE of its SIP has handled its
  /// own: packet latencies IO_CPU to M_CPU and M_CPU to PE, at every router output and wire the longest wait of a
  /// command, which has strict priority but preempts nothing: one packet of kMaxPacketBytes of another class, and one
  /// of its own class from each other input; and the M_CPU's command time for pes_per_cube + 2 commands, the PE_CPU's
  /// for one per context.
  Ps worst_command() const;

 private:
  Ps along(const std::vector<RouterStep>& steps, std::uint32_t bytes) const;
  Ps waits(const std::vector<RouterStep>& steps) const;

  const Plan& plan_;
};

}  // namespace kernbench::topology
