#pragma once
#include <algorithm>
#include <systemc>
#include <tlm>
#include <vector>

#include "models/memory/memory_access.h"
#include "tlm/ext/packet.h"
#include "tlm/machine/run_options.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

/// When the answer to a read begins whose first packet of data is there at `first` and whose last byte at `end`, not
/// before `now`: the data of a train leave as they come, but not more than Packet::lead before the last of them.
inline Ps answer_time(Packet* packet, Ps first, Ps end, Ps now) {
  if (packet == nullptr || packet->lead == 0) return end;
  packet->complete = end;
  return std::max({now, std::min(first, end), end - std::min(end, packet->lead)});
}

/// What stands behind a port: decides when an access is taken and when it is answered.
class MemoryBackend {
 public:
  virtual ~MemoryBackend() = default;
  /// Takes the request, now; it reached the port at `arrival`. Its answer comes by MemoryPort::respond(). Returns false
  /// if there is no room: then the backend calls MemoryPort::retry() when there may be, or keeps the request and calls
  /// MemoryPort::taken().
  virtual bool take(unsigned port, tlm::tlm_generic_payload& payload, Ps arrival) = 0;
  /// Serves the payload at once; returns the time of its answer, not before `start`.
  virtual Ps serve(unsigned port, tlm::tlm_generic_payload& payload, Ps start) = 0;
  /// Back door: bytes transferred.
  virtual unsigned debug(unsigned port, tlm::tlm_generic_payload& payload) = 0;
};

/// Target side of the TLM-2.0 base protocol for a memory, with request and response exclusion.
///
/// BEGIN_REQ is answered TLM_UPDATED/END_REQ when the backend takes the request, else TLM_ACCEPTED and END_REQ later;
/// BEGIN_RESP may be answered with TLM_COMPLETED, END_RESP, or END_RESP later (the next response waits for it).
/// A call takes place at sc_time_stamp() plus its delay: later than now it is put off, what is earlier begins now.
/// Payloads need a memory manager, and no extension.
class MemoryPort : public tlm::tlm_fw_transport_if<> {
 public:
  MemoryPort(tlm::tlm_target_socket<>& socket, unsigned index, MemoryBackend& backend, EventQueue& queue);
  /// Leaves the socket to its owner, who hands on what concerns the memory.
  struct Unbound {};
  MemoryPort(tlm::tlm_target_socket<>& socket, unsigned index, MemoryBackend& backend, EventQueue& queue, Unbound);

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override;
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override { return backend_.debug(index_, payload); }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) override;

  /// Sends BEGIN_RESP at `when`. REQUIRES: the payload was taken; its response status is set.
  void respond(tlm::tlm_generic_payload& payload, Ps when);
  /// The same, at this instant. Call it from an event of the queue, not from within take().
  void respond_now(tlm::tlm_generic_payload& payload);
  /// Offers the waiting request: the first time, or again. REQUIRES: there is one.
  void retry();
  /// The backend has taken the waiting request, which it kept: sends END_REQ. REQUIRES: there is one.
  void taken();

 private:
  void send(tlm::tlm_generic_payload& payload);

  tlm::tlm_target_socket<>& socket_;
  const unsigned index_;
  MemoryBackend& backend_;
  EventQueue& queue_;
  tlm::tlm_generic_payload* request_ = nullptr;       // between BEGIN_REQ and END_REQ
  tlm::tlm_generic_payload* response_ = nullptr;      // between BEGIN_RESP and END_RESP
  std::vector<tlm::tlm_generic_payload*> responses_;  // waiting for END_RESP of response_; seldom any
  Ps arrival_ = 0;
};

}  // namespace kernbench
