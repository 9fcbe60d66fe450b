#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "models/link/link_config.h"
#include "models/link/wire.h"
#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"
#include "tlm/ext/packet_socket.h"
#include "tlm/machine/routing.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

class Usage;

/// One end of a bundle of connections between two router networks: a cube's UCIe port (models/ucie) or an IO chiplet's
/// inter-SIP link port. A packet hop: wormhole ends here. Each connection forwards a packet cut-through once it holds
/// a whole-packet credit of the far end for the packet's virtual network, and injects what arrives like any source.
///
/// A packet whose head reaches the port at h and whose tail at t starts on the wire at max(h, wire free, credit) and
/// crosses it by the rule of Wire; its last flit is not sent before it is here (one that comes slower than one flit per
/// cycle starts later, so as not to pause on the wire). At the far end the head is injected at the first edge at which
/// its flit is there, the tail one flit per cycle later, but not before it is there. The buffer is free again when the
/// last flit has left; the credit needs `latency` to come back. Commands and credits go first, then round robin over
/// the virtual networks.
class LinkPort : public sc_core::sc_module {
 public:
  struct Config {
    LinkConfig link;
    NocConfig noc;                            ///< of the network on this side
    std::vector<std::uint16_t> routers;       ///< router each connection is attached to
    bool from_io = false;                     ///< what arrives here comes from an IO chiplet
    Delay delay = Delay::ucie;                ///< what its latency is charged to
    std::uint32_t far_flit_bytes = 0;         ///< of the network on the other side; 0: as here
    bool detours = false;                     ///< `routes` knows packets that are here because of a broken link
    std::uint32_t longest = kMaxPacketBytes;  ///< bytes that travel as one packet at most
  };
  /// `routes`: of the network on this side. `peer_queue`: of the SIP at the far end (the same for UCIe).
  /// Throws std::invalid_argument on fewer than two packets of buffer, no rate, flits that their CRCs do not cover,
  /// errors without flits, or no latency between two SIPs.
  LinkPort(const sc_core::sc_module_name& name, const Config& config, const NetworkRoutes& routes, EventQueue& queue,
           EventQueue& peer_queue, Observer* observer);
  ~LinkPort() override;

  // By connection. Network side:
  std::vector<std::unique_ptr<PacketTargetSocket>> from_network;
  std::vector<std::unique_ptr<PacketInitiatorSocket>> to_network;
  // Wire side; bind wire_out[i] to the peer's wire_in[i], both ways.
  std::vector<std::unique_ptr<PacketInitiatorSocket>> wire_out;
  std::vector<std::unique_ptr<PacketTargetSocket>> wire_in;

  /// What connection `i` sent over the wire; the wire itself, for its energy.
  const WireStats& wire_stats(unsigned i) const;
  const Wire& wire(unsigned i) const;
  /// Bytes of payload that have come over the wire of connection `i`.
  std::uint64_t received_bytes(unsigned i) const;
  enum Reason : unsigned { kWire, kCredit };  ///< why a packet waits: the wire is taken; the far end has no room
  /// Books the passages of what connection `i` sends, and the waits for them.
  void observe_usage(unsigned i, Usage* usage);
  unsigned connections() const { return static_cast<unsigned>(wire_out.size()); }

 private:
  void end_of_elaboration() override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
