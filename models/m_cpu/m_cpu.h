#pragma once
#include <memory>
#include <systemc>
#include <tlm>

#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/event_queue.h"
#include "tlm/sim/serial_server.h"

namespace kernbench {

struct MCpuConfig {
  Ps command = 5'000;  ///< per command handled   source: topology preset
};

/// A cube's management CPU: fans commands out to the PEs of its cube and merges their answers.
class MCpu : public sc_core::sc_module {
 public:
  MCpu(const sc_core::sc_module_name& name, const MCpuConfig& config, CubeCoord cube, const MachineMap& map,
       PayloadPool& pool, EventQueue& queue, Observer* observer);
  ~MCpu() override;
  tlm::tlm_initiator_socket<> out{"out"};
  tlm::tlm_target_socket<> in{"in"};

  SerialServer::Served& served();  ///< commands

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
