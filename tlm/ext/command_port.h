#pragma once
#include <functional>
#include <systemc>
#include <tlm>
#include <utility>

#include "tlm/ext/message.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/sim/annotation.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

/// The network side of a management CPU: commands in, commands out. Everything else that arrives is answered as an
/// error.
class CommandPort : public tlm::tlm_fw_transport_if<>, public tlm::tlm_bw_transport_if<> {
 public:
  /// A command and the tag of its packet, both in the payload: to be copied.
  using Receiver = std::function<void(const Command& command, std::uint32_t tag)>;
  CommandPort(PayloadPool& pool, const EventQueue& queue, tlm::tlm_initiator_socket<>& out,
              tlm::tlm_target_socket<>& in, Receiver receiver)
      : pool_(pool), queue_(queue), out_(out), receiver_(std::move(receiver)) {
    in.bind(*this);
    out.bind(*this);
  }

  /// Injects `command` at this instant. Commands to a unit go on class command, answers on class response.
  void send(const Command& command, NodeId destination, MessageClass message_class, std::uint32_t tag = 0) {
    tlm::tlm_generic_payload& payload = pool_.acquire();
    payload.set_command(tlm::TLM_IGNORE_COMMAND);
    put_command(payload, command);
    Packet& packet = Packet::of(payload);
    packet.destination = destination;
    packet.message_class = message_class;
    packet.tag = tag;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = annotation(queue_.now());
    const tlm::tlm_sync_enum status = out_->nb_transport_fw(payload, phase, delay);
    sc_assert(status == tlm::TLM_COMPLETED);
    payload.release();
  }

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    Packet* packet = Packet::find(payload);
    if (phase != tlm::BEGIN_REQ || packet == nullptr || packet->kind != PacketKind::command) {
      payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
      return tlm::TLM_COMPLETED;
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    receiver_(*packet->command, packet->tag);
    return tlm::TLM_COMPLETED;
  }
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time&) override {
    payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
  }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
  unsigned transport_dbg(tlm::tlm_generic_payload&) override { return 0; }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload&, tlm::tlm_phase&, sc_core::sc_time&) override {
    return tlm::TLM_COMPLETED;  // it sends one-way packets only
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

 private:
  PayloadPool& pool_;
  const EventQueue& queue_;
  tlm::tlm_initiator_socket<>& out_;
  Receiver receiver_;
};

}  // namespace kernbench
