#pragma once
#include <memory>
#include <systemc>
#include <tlm>

#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench {

/// Lets an initiator that knows TLM-2.0 and nothing of this machine sit on a network interface, beside the PEs or in
/// the place of one.
///
/// An access of any length to a PhysicalAddress::encode() is cut at multiples of 256 B into packets, at most
/// `outstanding` in flight, as a DMA engine does; its time is the network's and the memory's. Loosely timed: an access
/// begins at the annotated delay, and its time is added to it: b_transport waits on the caller's thread until the
/// models have come to the last response, for which the kernel's time moves only as far as other processes are due.
/// Approximately timed: END_REQ when the packets are on their way, BEGIN_RESP when the last one is back; both from an
/// SC_THREAD of the bridge, at the kernel's time, one request and one response at a time. transport_dbg
/// goes through the network to the memory. There is no DMI: the network's time would be lost. A streaming width below
/// the length is TLM_BURST_ERROR, an address where no memory is TLM_ADDRESS_ERROR; errors of a packet become the
/// access's. Commands of the machine's own CPUs come in the place of a PE only, and are answered in its stead; a kernel
/// launched there fails.
class InitiatorBridge : public sc_core::sc_module {
 public:
  struct Config {
    NodeId self = kNoNode;      ///< its own node, or that of the PE that it replaces
    unsigned outstanding = 64;  ///< packets in flight
  };
  InitiatorBridge(const sc_core::sc_module_name& name, const Config& config, const MachineMap& map, PayloadPool& pool,
                  const RunOptions& options, Dispatcher& dispatcher);
  ~InitiatorBridge() override;

  tlm::tlm_target_socket<> foreign{"foreign"};  ///< the initiator is bound to it
  tlm::tlm_initiator_socket<> out{"out"};       ///< to the network interface
  tlm::tlm_target_socket<> in{"in"};            ///< from it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
