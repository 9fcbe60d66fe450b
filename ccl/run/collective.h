#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ccl/contract/contract.h"
#include "ccl/run/bound_call.h"
#include "ccl/run/group_algorithm.h"
#include "ccl/run/group_queues.h"
#include "ccl/run/queues.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// One algorithm bound to machine, group and scope: neighbour tables at set-up, then one kernel per call and rank.
/// Shared by the ranks of its process group. Immutable; takes no simulated time.
class Collective {
 public:
  /// `queues`, `calls`: the group's, shared by its collectives; the queues that this algorithm needs are added to them.
  /// Throws Error: rings that do not fit, a first call that cannot run PE to PE. `first`: the first call. An algorithm
  /// that runs PE to PE gets the queues that this call needs; it can serve other calls that need no more
  /// (has_queues_for).
  Collective(std::shared_ptr<const GroupAlgorithm> algorithm, std::shared_ptr<GroupQueues> queues,
             std::shared_ptr<CallBinder> calls, BoundCall* first = nullptr);
  ~Collective();
  Collective(Collective&&) noexcept;
  Collective& operator=(Collective&&) noexcept;

  const std::string& name() const;  ///< the algorithm's: names launches and the host trace
  const Group& group() const;
  /// It has all queues that the call needs. Throws Error where the call cannot run PE to PE, but has to.
  bool has_queues_for(BoundCall& call) const;

  /// Rows of the neighbour tables of all PEs of group rank `rank`'s SIP that this collective added to its group's, in
  /// (cube, pe, ring) order. Every rank's rows must be installed before any rank launches. Same answer each time.
  std::vector<NeighbourEntry> neighbours(int rank) const;

  /// What one rank has to launch for one call.
  struct Launch {
    /// Whole but for the tensors, the stream and the number of the program. Without targets no PE holds an element:
    /// there is nothing to launch.
    LaunchMessage message;
    std::shared_ptr<const Program> program;  ///< what the targets must have; the same for calls of the same shape
    int contributions = 0;                   ///< as avg divides by
  };
  /// `tensors`: of rank `tensors.rank`. Its call: op, reduce_op, dtype, root, to and from as the user gave them; the
  /// rest is filled in here. `in`, `out`: on this rank's SIP with all their shards, empty ones too. Shapes and shards
  /// must be alike on all ranks, also where a rank has no such tensor (base 0), since both ends of a queue cut messages
  /// by them. Equal tensors: in place. `bound`: the same call, of the group's CallBinder. REQUIRES: legal(); root is a
  /// rank of the group. Throws Error: operation not served; shapes or placement that do not suit the operation.
  Launch bind(const CallTensors& tensors, BoundCall& bound) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench::ccl
