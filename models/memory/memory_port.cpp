#include "models/memory/memory_port.h"

#include "tlm/sim/annotation.h"

namespace kernbench {

MemoryPort::MemoryPort(tlm::tlm_target_socket<>& socket, unsigned index, MemoryBackend& backend, EventQueue& queue)
    : MemoryPort(socket, index, backend, queue, Unbound{}) {
  socket_.bind(*this);
}

MemoryPort::MemoryPort(tlm::tlm_target_socket<>& socket, unsigned index, MemoryBackend& backend, EventQueue& queue,
                       Unbound)
    : socket_(socket), index_(index), backend_(backend), queue_(queue) {}

tlm::tlm_sync_enum MemoryPort::nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                               sc_core::sc_time& delay) {
  if (phase == tlm::BEGIN_REQ) {
    if (request_ != nullptr)
      SC_REPORT_FATAL("kernbench/protocol", "memory: BEGIN_REQ before END_REQ of the request before");
    payload.acquire();
    request_ = &payload;
    if (const Ps at = instant(delay); at > queue_.now()) {
      queue_.at(at, [this] {
        arrival_ = queue_.now();
        retry();
      });
      return tlm::TLM_ACCEPTED;
    }
    arrival_ = queue_.now();
    if (!backend_.take(index_, payload, arrival_)) return tlm::TLM_ACCEPTED;
    request_ = nullptr;
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  if (phase == tlm::END_RESP && response_ == &payload) {
    response_ = nullptr;
    payload.release();
    if (!responses_.empty()) {
      // At the end of the annotated time, and never from within the initiator's own call.
      queue_.at(std::max(instant(delay), queue_.now()), [this] {
        if (response_ != nullptr || responses_.empty()) return;
        tlm::tlm_generic_payload& next = *responses_.front();
        responses_.erase(responses_.begin());
        send(next);
      });
    }
    return tlm::TLM_COMPLETED;
  }
  SC_REPORT_FATAL("kernbench/protocol", "memory: unexpected phase");
  return tlm::TLM_ACCEPTED;
}

void MemoryPort::retry() {
  sc_assert(request_ != nullptr);
  if (backend_.take(index_, *request_, arrival_)) taken();
}

void MemoryPort::taken() {
  sc_assert(request_ != nullptr);
  tlm::tlm_generic_payload& payload = *request_;
  request_ = nullptr;  // the initiator may begin its next request within the call
  tlm::tlm_phase phase = tlm::END_REQ;
  sc_core::sc_time delay = annotation(queue_.now());
  socket_->nb_transport_bw(payload, phase, delay);
}

void MemoryPort::respond(tlm::tlm_generic_payload& payload, Ps when) {
  queue_.at(when, [this, request = &payload] { respond_now(*request); });
}

void MemoryPort::respond_now(tlm::tlm_generic_payload& payload) {
  if (response_ == nullptr && responses_.empty()) {
    send(payload);
  } else {
    responses_.push_back(&payload);
  }
}

void MemoryPort::send(tlm::tlm_generic_payload& payload) {
  tlm::tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = annotation(queue_.now());
  response_ = &payload;
  const tlm::tlm_sync_enum answer = socket_->nb_transport_bw(payload, phase, delay);
  const bool ended = answer == tlm::TLM_COMPLETED || (answer == tlm::TLM_UPDATED && phase == tlm::END_RESP);
  if (!ended || response_ != &payload) return;  // END_RESP comes, or came within the call, by nb_transport_fw
  response_ = nullptr;
  payload.release();
  if (!responses_.empty()) {
    tlm::tlm_generic_payload& next = *responses_.front();
    responses_.erase(responses_.begin());
    send(next);
  }
}

void MemoryPort::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const Ps start = std::max(instant(delay), queue_.now());
  delay = annotation(backend_.serve(index_, payload, start));
}

bool MemoryPort::get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi& dmi) {
  dmi.init();  // nowhere: pages are sparse, and timing would be bypassed
  return false;
}

}  // namespace kernbench
