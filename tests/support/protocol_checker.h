#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>

#include "tlm/base/time.h"

namespace kernbench::test {

/// Sits between an initiator and a target and checks that both keep to the TLM-2.0 base protocol (IEEE 1666-2011,
/// clauses 11, 14 and 15): order of phases, what each call may return, request and response exclusion, times that never
/// go back, attributes that are valid and not touched, a response status that is set. Every breach is a failure of the
/// test. It has no clock of its own: a call takes place at sc_time_stamp() plus its annotated delay, as for any
/// monitor. `passes`: transactions that may begin while another one waits for its END_REQ, and end within their call:
/// the machine's one-way messages, which are always taken.
class ProtocolChecker : public sc_core::sc_module, tlm::tlm_fw_transport_if<>, tlm::tlm_bw_transport_if<> {
 public:
  using Payload = tlm::tlm_generic_payload;
  /// Told of every phase that passes, in either direction, made by a call or by its return.
  using Log = std::function<void(const Payload&, const tlm::tlm_phase&, Ps at)>;
  explicit ProtocolChecker(
      const sc_core::sc_module_name& name,
      std::function<bool(const Payload&)> passes = [](const Payload&) { return false; })
      : sc_module(name), passes_(std::move(passes)) {
    in.bind(*this);
    out.bind(*this);
  }
  tlm::tlm_target_socket<> in{"in"};
  tlm::tlm_initiator_socket<> out{"out"};

  Log log;                     ///< may be empty
  std::uint64_t calls = 0;     ///< that passed
  std::uint64_t finished = 0;  ///< nb_transport transactions that came to their end
  std::uint64_t debugs = 0;    ///< transport_dbg
  Ps furthest = 0;             ///< that a call was annotated with
  std::size_t open() const { return transactions_.size(); }

 private:
  enum class State { request, accepted, response };  // after BEGIN_REQ, END_REQ, BEGIN_RESP
  struct Transaction {
    State state = State::request;
    tlm::tlm_command command;
    unsigned char *data, *enables;
    unsigned length, width, enable_length;
    Ps at = 0;  // of its last phase
  };
  static Transaction begun(const Payload& payload) {
    return {State::request,
            payload.get_command(),
            payload.get_data_ptr(),
            payload.get_byte_enable_ptr(),
            payload.get_data_length(),
            payload.get_streaming_width(),
            payload.get_byte_enable_length()};
  }

  void require(bool holds, const char* rule) { EXPECT_TRUE(holds) << name() << ": " << rule; }

  void check_attributes(const Payload& payload) {
    const bool moves = payload.get_command() != tlm::TLM_IGNORE_COMMAND;
    require(!moves || payload.get_data_length() > 0, "the data length is not 0 (14.12)");
    require(!moves || payload.get_data_ptr() != nullptr, "the data pointer is not null (14.11)");
    require(payload.get_streaming_width() > 0, "the streaming width is not 0 (14.15)");
    require(payload.get_byte_enable_ptr() == nullptr || payload.get_byte_enable_length() > 0,
            "byte enables have a length (14.14)");
    require(payload.get_response_status() == tlm::TLM_INCOMPLETE_RESPONSE,
            "the response status starts as TLM_INCOMPLETE_RESPONSE (14.17)");
    require(!payload.is_dmi_allowed(), "the DMI hint starts as false (14.16)");
  }

  void check_untouched(const Transaction& t, const Payload& payload) {
    require(t.command == payload.get_command() && t.data == payload.get_data_ptr() &&
                t.length == payload.get_data_length() && t.width == payload.get_streaming_width() &&
                t.enables == payload.get_byte_enable_ptr() && t.enable_length == payload.get_byte_enable_length(),
            "a target leaves all attributes but address, DMI hint, status and extensions alone (14.7)");
  }

  static Ps instant(const sc_core::sc_time& delay) { return sc_core::sc_time_stamp().value() + delay.value(); }

  Ps advance(Ps& last, const sc_core::sc_time& delay) {
    const Ps at = instant(delay);
    require(at >= last, "times of one socket never go back (15.2.7)");
    last = std::max(last, at);
    furthest = std::max(furthest, Ps{delay.value()});
    return at;
  }
  void passed(Transaction& t, const Payload& payload, const tlm::tlm_phase& phase, Ps at) {
    require(at >= t.at, "times of one transaction never go back (15.2.7)");
    t.at = at;
    if (log) log(payload, phase, at);
  }

  void end(const Payload& payload) {
    transactions_.erase(&payload);
    ++finished;
  }

  void end_request(Transaction& t, const Payload& payload, Ps at) {
    require(t.state == State::request, "END_REQ answers BEGIN_REQ (15.2.4)");
    t.state = State::accepted;
    if (requesting_ == &payload) requesting_ = nullptr;
    passed(t, payload, tlm::END_REQ, at);
  }
  void begin_response(Transaction& t, const Payload& payload, Ps at) {
    require(t.state != State::response, "one BEGIN_RESP per transaction (15.2.4)");
    require(payload.get_response_status() != tlm::TLM_INCOMPLETE_RESPONSE, "a response has a status (14.17)");
    require(responding_ == nullptr, "no BEGIN_RESP before the response before has ended (15.2.6.5)");
    check_untouched(t, payload);
    if (requesting_ == &payload) requesting_ = nullptr;  // BEGIN_RESP implies END_REQ
    t.state = State::response;
    responding_ = &payload;
    passed(t, payload, tlm::BEGIN_RESP, at);
  }
  void end_response(const Payload& payload, Ps at) {
    responding_ = nullptr;
    if (const auto found = transactions_.find(&payload); found != transactions_.end())
      passed(found->second, payload, tlm::END_RESP, at);
    end(payload);
  }
  /// TLM_COMPLETED in answer to BEGIN_REQ.
  void complete(Transaction& t, const Payload& payload, Ps at) {
    require(payload.get_response_status() != tlm::TLM_INCOMPLETE_RESPONSE, "a response has a status (14.17)");
    check_untouched(t, payload);
    require(at >= t.at, "times of one transaction never go back (15.2.7)");
    if (requesting_ == &payload) requesting_ = nullptr;
    end(payload);
  }

  tlm::tlm_sync_enum nb_transport_fw(Payload& payload, tlm::tlm_phase& phase, sc_core::sc_time& delay) override {
    ++calls;
    const Ps at = advance(forward_, delay);
    const sc_core::sc_time before = delay;
    const tlm::tlm_phase asked = phase;
    bool passing = false;
    if (phase == tlm::BEGIN_REQ) {
      check_attributes(payload);
      passing = passes_(payload);
      require(payload.has_mm() && payload.get_ref_count() > 0, "nb_transport payloads have a memory manager (14.5)");
      require(passing || requesting_ == nullptr, "no BEGIN_REQ before END_REQ of the request before (15.2.6.5)");
      require(transactions_.count(&payload) == 0, "a transaction is not begun twice");
      Transaction& t = transactions_[&payload] = begun(payload);
      if (!passing) requesting_ = &payload;
      passed(t, payload, asked, at);
    } else {
      require(phase == tlm::END_RESP, "an initiator sends BEGIN_REQ and END_RESP only (15.2.4)");
      require(responding_ == &payload, "END_RESP ends the response under way (15.2.4)");
      end_response(payload, at);
    }
    const tlm::tlm_sync_enum status = out->nb_transport_fw(payload, phase, delay);
    require(!passing || status == tlm::TLM_COMPLETED, "a one-way message is complete at once");
    if (status == tlm::TLM_ACCEPTED) {
      require(phase == asked, "TLM_ACCEPTED leaves the phase alone (11.1.2.7)");
      return status;
    }
    require(delay >= before, "a callee may only add to the delay (11.1.3)");
    if (asked == tlm::END_RESP) {
      require(status == tlm::TLM_COMPLETED, "END_RESP is answered TLM_ACCEPTED or TLM_COMPLETED (15.2.4)");
    } else if (const auto found = transactions_.find(&payload); found == transactions_.end()) {
      require(status == tlm::TLM_COMPLETED, "what came back within the call is not answered again");
    } else if (status == tlm::TLM_COMPLETED) {
      complete(found->second, payload, instant(delay));
    } else if (phase == tlm::END_REQ) {
      end_request(found->second, payload, instant(delay));
    } else {
      require(phase == tlm::BEGIN_RESP, "TLM_UPDATED means END_REQ or BEGIN_RESP (15.2.4)");
      begin_response(found->second, payload, instant(delay));
    }
    return status;
  }

  tlm::tlm_sync_enum nb_transport_bw(Payload& payload, tlm::tlm_phase& phase, sc_core::sc_time& delay) override {
    ++calls;
    const Ps at = advance(backward_, delay);
    const sc_core::sc_time before = delay;
    const tlm::tlm_phase asked = phase;
    const auto found = transactions_.find(&payload);
    if (found == transactions_.end()) {
      require(false, "a target answers transactions that were begun and have not ended");
    } else if (phase == tlm::END_REQ) {
      end_request(found->second, payload, at);
    } else {
      require(phase == tlm::BEGIN_RESP, "a target sends END_REQ and BEGIN_RESP only (15.2.4)");
      begin_response(found->second, payload, at);
    }
    const tlm::tlm_sync_enum status = in->nb_transport_bw(payload, phase, delay);
    if (status == tlm::TLM_ACCEPTED) {
      require(phase == asked, "TLM_ACCEPTED leaves the phase alone (11.1.2.7)");
      return status;
    }
    require(delay >= before, "a callee may only add to the delay (11.1.3)");
    require(asked == tlm::BEGIN_RESP, "END_REQ is answered TLM_ACCEPTED (15.2.4)");
    require(status == tlm::TLM_COMPLETED || phase == tlm::END_RESP, "TLM_UPDATED means END_RESP (15.2.4)");
    if (responding_ == &payload) end_response(payload, instant(delay));
    return status;
  }

  void b_transport(Payload& payload, sc_core::sc_time& delay) override {
    ++calls;
    check_attributes(payload);
    const Transaction t = begun(payload);
    const Ps due = instant(delay);
    out->b_transport(payload, delay);
    require(instant(delay) >= due, "b_transport does not end before its annotated time (11.1.1.4)");
    require(payload.get_response_status() != tlm::TLM_INCOMPLETE_RESPONSE, "a response has a status (14.17)");
    check_untouched(t, payload);
  }
  unsigned transport_dbg(Payload& payload) override {
    ++debugs;
    const unsigned bytes = out->transport_dbg(payload);
    require(bytes <= payload.get_data_length(), "transport_dbg moves at most the data length (11.3.3)");
    return bytes;
  }
  bool get_direct_mem_ptr(Payload& payload, tlm::tlm_dmi& dmi) override {
    return out->get_direct_mem_ptr(payload, dmi);
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64 first, sc_dt::uint64 last) override {
    in->invalidate_direct_mem_ptr(first, last);
  }

  std::function<bool(const Payload&)> passes_;
  std::map<const Payload*, Transaction> transactions_;
  const Payload* requesting_ = nullptr;  // between BEGIN_REQ and END_REQ
  const Payload* responding_ = nullptr;  // between BEGIN_RESP and END_RESP
  Ps forward_ = 0, backward_ = 0;
};

}  // namespace kernbench::test
