#pragma once
// An initiator as somebody else may write one: it includes SystemC and TLM-2.0, and nothing of this project.
#include <cstdint>
#include <deque>
#include <functional>
#include <systemc>
#include <tlm>
#include <vector>

namespace interop {

/// A payload with a buffer of its own.
class Transaction : public tlm::tlm_generic_payload, public tlm::tlm_mm_interface {
 public:
  Transaction(tlm::tlm_command command, std::uint64_t address, std::vector<unsigned char> bytes)
      : data(std::move(bytes)) {
    set_mm(this);
    set_command(command);
    set_address(address);
    set_data_ptr(data.data());
    set_data_length(static_cast<unsigned>(data.size()));
    set_streaming_width(static_cast<unsigned>(data.size()));
    set_byte_enable_ptr(nullptr);
    set_dmi_allowed(false);
    set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    acquire();
  }
  void free(tlm::tlm_generic_payload*) override {}
  std::vector<unsigned char> data;
};

/// Runs `body` on a thread; offers it loosely timed, approximately timed and debug accesses. What a target tells takes
/// place at the end of the delay that it is annotated with, and the thread goes on then.
class PlainInitiator : public sc_core::sc_module, tlm::tlm_bw_transport_if<> {
 public:
  SC_HAS_PROCESS(PlainInitiator);
  PlainInitiator(const sc_core::sc_module_name& name, std::function<void(PlainInitiator&)> body)
      : sc_module(name), body_(std::move(body)) {
    socket.bind(*this);
    SC_THREAD(run);
  }
  tlm::tlm_initiator_socket<> socket{"socket"};
  bool finished = false;
  bool end_response_later = false;  ///< answer BEGIN_RESP with END_RESP some time after instead of TLM_COMPLETED

  /// Loosely timed; the delay that is left is waited for.
  tlm::tlm_response_status access(Transaction& transaction, sc_core::sc_time delay = sc_core::SC_ZERO_TIME) {
    socket->b_transport(transaction, delay);
    sc_core::wait(delay);
    return transaction.get_response_status();
  }
  /// Approximately timed: begins as soon as the one before has its END_REQ.
  void begin(Transaction& transaction, sc_core::sc_time delay = sc_core::SC_ZERO_TIME) {
    while (requesting_ != nullptr) sc_core::wait(changed_);
    wait_until(free_);
    requesting_ = &transaction;
    ++open_;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    const tlm::tlm_sync_enum status = socket->nb_transport_fw(transaction, phase, delay);
    if (status == tlm::TLM_COMPLETED) phase = tlm::BEGIN_RESP;
    if (status != tlm::TLM_ACCEPTED) progress(transaction, phase, delay);
  }
  void wait_for_all() {
    while (open_ > 0) sc_core::wait(changed_);
    wait_until(answered_);
  }

 private:
  void run() {
    body_(*this);
    finished = true;
  }
  static void wait_until(const sc_core::sc_time& time) {
    if (time > sc_core::sc_time_stamp()) sc_core::wait(time - sc_core::sc_time_stamp());
  }
  void progress(tlm::tlm_generic_payload& transaction, const tlm::tlm_phase& phase, const sc_core::sc_time& delay) {
    const sc_core::sc_time at = sc_core::sc_time_stamp() + delay;
    if (requesting_ == &transaction) {
      requesting_ = nullptr;
      free_ = at;
    }
    if (phase == tlm::BEGIN_RESP) {
      --open_;
      answered_ = at;
    }
    changed_.notify(sc_core::SC_ZERO_TIME);
  }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override {
    progress(transaction, phase, delay);
    if (phase != tlm::BEGIN_RESP) return tlm::TLM_ACCEPTED;
    if (!end_response_later) return tlm::TLM_COMPLETED;
    sc_core::sc_spawn([this, &transaction, later = delay] {
      sc_core::wait(later + sc_core::sc_time(7, sc_core::SC_NS));
      tlm::tlm_phase last = tlm::END_RESP;
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      socket->nb_transport_fw(transaction, last, delay);
    });
    return tlm::TLM_ACCEPTED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  std::function<void(PlainInitiator&)> body_;
  tlm::tlm_generic_payload* requesting_ = nullptr;
  unsigned open_ = 0;
  sc_core::sc_time free_, answered_;  // when the request, and the response, before ended
  sc_core::sc_event changed_;
};

}  // namespace interop
