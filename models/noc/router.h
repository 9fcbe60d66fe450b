#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"
#include "tlm/ext/packet_socket.h"
#include "tlm/machine/routing.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

/// A router of a cube's mesh, or an IO chiplet's crossbar, or the fabric switch: only the number of ports differs.
/// RouterTiming has the rules. One event per packet that nothing hinders: the arrival of its head.
class Router : public sc_core::sc_module {
 public:
  /// `connected[p]`: port p exists (sockets in[p] and out[p]); the others stay null. `index`: its number in `routes`.
  /// Throws std::invalid_argument if a virtual channel cannot hold a packet.
  Router(const sc_core::sc_module_name& name, const NocConfig& config, const NetworkRoutes& routes, std::uint16_t index,
         const std::vector<bool>& connected, EventQueue& queue, Observer* observer);
  ~Router() override;

  std::vector<std::unique_ptr<PacketTargetSocket>> in;
  std::vector<std::unique_ptr<PacketInitiatorSocket>> out;

  /// What left through output `port`.
  const PortStats& output_stats(unsigned port) const;

 private:
  void end_of_elaboration() override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
