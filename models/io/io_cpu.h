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

class PageTable;

struct IoCpuConfig {
  Ps command = 10'000;  ///< per command handled   source: topology preset
};

/// The IO chiplet's CPU: takes host messages from PCIE_EP, fans them out to the cubes' M_CPUs, merges answers, and
/// gives every launch its common start time: at least MachineMap::worst_command_latency after all PEs are armed.
class IoCpu : public sc_core::sc_module {
 public:
  IoCpu(const sc_core::sc_module_name& name, const IoCpuConfig& config, std::uint16_t sip, const MachineMap& map,
        PageTable& pages, PayloadPool& pool, EventQueue& queue, Observer* observer);
  ~IoCpu() override;
  tlm::tlm_initiator_socket<> out{"out"};
  tlm::tlm_target_socket<> in{"in"};

  SerialServer::Served& served();  ///< commands

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
