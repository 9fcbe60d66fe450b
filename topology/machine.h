#pragma once
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/observe/wait_for.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench::topology {

struct Plan;  // topology/plan.h: results of stages 2 to 5

/// Stage 6: the machine as bound SystemC modules. Children's names nest as the YAML does (sip0.cube2.pe5, no root prefix).
/// At most one per process.
class Machine {
 public:
  /// `observer` may be null. `plan` must outlive the machine.
  Machine(const Plan& plan, const RunOptions& options, Observer* observer);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const MachineMap& map() const;
  Dispatcher& dispatcher();
  PayloadPool& pool();
  /// Host side of a SIP's PCIe endpoint; bind an initiator to it before the simulation starts.
  tlm::tlm_target_socket<>& host_socket(std::uint16_t sip);
  /// Why things stand still; PEs in (sip, cube, pe) order.
  void explain(std::vector<Blocked>& blocked) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench::topology
