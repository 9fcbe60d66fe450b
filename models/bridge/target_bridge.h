#pragma once
#include <memory>
#include <systemc>
#include <tlm>

#include "tlm/sim/dispatcher.h"

namespace kernbench {

/// Puts a target that knows TLM-2.0 and nothing of this machine in the place of a memory.
///
/// Requests are taken while fewer than `queue_depth` wait (then END_REQ comes late, which holds the network interface's
/// ejection buffer) and handed on in order, at most `at_once` at a time, by b_transport on an SC_THREAD of the bridge
/// each, where the target may wait; the delay that it annotates passes before the response. The target sees addresses
/// that count from 0, the data, byte enables and commands as they came; its response status goes back to the initiator.
/// transport_dbg is handed through; there is no DMI.
class TargetBridge : public sc_core::sc_module {
 public:
  struct Config {
    std::uint16_t sip = 0;      ///< whose queue it runs on
    unsigned queue_depth = 16;  ///< requests taken and not answered
    unsigned at_once = 1;       ///< of them in the target; more than one may be answered in another order
  };
  TargetBridge(const sc_core::sc_module_name& name, const Config& config, Dispatcher& dispatcher);
  ~TargetBridge() override;

  tlm::tlm_target_socket<> in{"in"};               ///< from the network interface
  tlm::tlm_initiator_socket<> foreign{"foreign"};  ///< bound to the target

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
