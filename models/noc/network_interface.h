#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>

#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"
#include "tlm/ext/packet_socket.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/routing.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

/// Sees every transaction that crosses the TLM-2.0 sockets between endpoints and the network; for tests and `--debug`.
class TransactionProbe {
 public:
  virtual ~TransactionProbe() = default;
  /// `phase` is BEGIN_REQ or BEGIN_RESP; `socket` the hierarchical name of the network interface's socket.
  virtual void transported(const char* socket, const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase,
                           Ps at) = 0;
};

/// Joins an endpoint to its router: TLM-2.0 base protocol on one side, packets on the other.
///
/// The endpoint injects with nb_transport_fw(BEGIN_REQ) on `from_endpoint`; its payload's Packet says destination,
/// class, kind and bytes. One-way kinds (ipcq_data, ipcq_credit, command) are complete by that: TLM_COMPLETED,
/// TLM_OK_RESPONSE, and the interface holds a reference of its own until they are delivered. A read or write is
/// answered TLM_UPDATED/END_REQ, and its response comes back as nb_transport_bw(BEGIN_RESP), to be answered
/// TLM_COMPLETED. The source queue is unbounded: an endpoint bounds what it has outstanding. Delivery to the endpoint
/// is nb_transport_fw(BEGIN_REQ) on `to_endpoint`: a one-way packet is to be answered TLM_COMPLETED, with a response
/// status; a memory answers TLM_UPDATED/END_REQ when it takes the request, or TLM_ACCEPTED and END_REQ later, until
/// when the packet stays in the ejection buffer and blocks what is behind it in its virtual network; then BEGIN_RESP.
/// By the base protocol's exclusion rule one read or write at a time waits for END_REQ; one-way packets and responses
/// pass it. A target may also answer a read or write with TLM_UPDATED/BEGIN_RESP or TLM_COMPLETED at once.
///
/// The interface's own calls are made at their instant, which is sc_time_stamp() plus their delay; a call that is
/// annotated with a later one than the models have come to is put off. transport_dbg is passed on, from socket to
/// socket, to the memory whose address it has. b_transport is answered with an error: the network takes time, and a
/// call of it may not wait here. What has no Packet is, too.
///
/// Injection: what is offered waits in the router's source of this input (MeshEngine has the rules); the head is in the
/// router's buffer 1 + link_delay cycles after it left. Delivery: when the tail is here.
class NetworkInterface : public sc_core::sc_module {
 public:
  struct Config {
    NocConfig noc;
    NodeId self = kNoNode;
    std::uint16_t router = 0;                 ///< router it is attached to
    bool has_initiator = true;                ///< endpoint injects transactions of its own: `from_endpoint` exists
    bool has_target = true;                   ///< endpoint takes transactions: `to_endpoint` exists
    std::uint32_t longest = kMaxPacketBytes;  ///< bytes that travel as one packet at most
    const MachineMap* map = nullptr;          ///< whose memory a transport_dbg is for; null: it reaches none
  };
  NetworkInterface(const sc_core::sc_module_name& name, const Config& config, const NetworkRoutes& routes,
                   EventQueue& queue);
  ~NetworkInterface() override;

  void set_probe(TransactionProbe* probe);

  PacketInitiatorSocket to_router{"to_router"};
  PacketTargetSocket from_router{"from_router"};
  std::unique_ptr<tlm::tlm_target_socket<>> from_endpoint;
  std::unique_ptr<tlm::tlm_initiator_socket<>> to_endpoint;

 private:
  void end_of_elaboration() override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
