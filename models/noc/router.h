#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "models/noc/router_network.h"
#include "models/noc/virtual_channel.h"
#include "tlm/ext/packet_socket.h"
#include "tlm/observe/observer.h"

namespace kernbench {

class RouterPorts;
class Usage;
class UsageBook;

/// A router of a cube's mesh, or an IO chiplet's crossbar, or the fabric switch: only the number of ports differs.
///
/// Carries packets over its sockets when the network's engine says so, and keeps their accounts. Which of its outputs
/// lead to routers of the same network it finds out from their bindings.
class Router : public sc_core::sc_module {
 public:
  /// `connected[p]`: port p exists (sockets in[p] and out[p]); the others stay null. Routers of one network are made in
  /// the order of their numbers in its routes.
  Router(const sc_core::sc_module_name& name, RouterNetwork& network, const std::vector<bool>& connected,
         Observer* observer);
  ~Router() override;

  std::vector<std::unique_ptr<PacketTargetSocket>> in;
  std::vector<std::unique_ptr<PacketInitiatorSocket>> out;

  /// What left through output `port`.
  const PortStats& output_stats(unsigned port) const;
  std::uint64_t input_bytes(unsigned port) const;  ///< of payload that came in through input `port`
  /// Books the passages of an output, and the waits of heads for it.
  /// `channels`: gets a usage for each of its virtual channels; null: what they do over time is not kept.
  void observe_usage(unsigned port, Usage* usage, UsageBook* channels = nullptr);
  std::vector<VcUse> virtual_channels(unsigned port) const;             ///< of output `port`, if its usage is observed
  const Usage* channel_over_time(unsigned port, std::size_t vc) const;  ///< null: not kept
  /// Marks in `usage` how many packets are at once in the buffers of input `port`, or on the wire to them; not in the
  /// fast grade, which tells of passages before their time.
  void observe_level(unsigned port, Usage* usage);

 private:
  void end_of_elaboration() override;

  std::unique_ptr<RouterPorts> ports_;
};

}  // namespace kernbench
