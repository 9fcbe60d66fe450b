#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "tlm/sim/annotation.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

/// A payload with a reference count and a buffer of its own, as a foreign initiator would have it: no Packet.
class PlainPayload : public tlm::tlm_generic_payload, public tlm::tlm_mm_interface {
 public:
  PlainPayload(tlm::tlm_command command, std::uint64_t address, unsigned bytes, std::uint8_t first = 0) : data(bytes) {
    set_mm(this);
    set_command(command);
    set_address(address);
    for (unsigned i = 0; i < bytes; ++i)
      data[i] = command == tlm::TLM_WRITE_COMMAND ? static_cast<unsigned char>(first + i) : 0xee;
    set_data_ptr(data.data());
    set_data_length(bytes);
    set_streaming_width(bytes);
    set_byte_enable_ptr(nullptr);
    set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    tlm_generic_payload::acquire();
  }
  void free(tlm_generic_payload*) override {}
  std::vector<unsigned char> data;
};

/// Sends requests of the base protocol at given times and notes what comes back. A request that meets one without
/// END_REQ waits for it, in order.
class TestInitiator : public sc_core::sc_module, public tlm::tlm_bw_transport_if<> {
 public:
  struct Record {
    Ps begun = kNever, end_request = kNever, response = kNever;
  };
  tlm::tlm_initiator_socket<> out{"out"};
  bool answer_later = false;  ///< answer BEGIN_RESP with END_RESP `response_delay` later instead of TLM_COMPLETED
  Ps response_delay = 1000;
  unsigned largest_open_responses = 0;

  TestInitiator(const sc_core::sc_module_name& name, EventQueue& queue) : sc_module(name), queue_(queue) {
    out.bind(*this);
  }
  /// A request without an answer, or with an error nobody asked for, is a failure of the test: its times say nothing.
  ~TestInitiator() override {
    for (const Record& record : records) EXPECT_NE(record.response, kNever) << name();
    EXPECT_EQ(errors_, expected_errors) << name();
  }
  unsigned expected_errors = 0;

  /// Returns the number of the request.
  std::size_t send(Ps time, tlm::tlm_generic_payload& payload) {
    const std::size_t id = records.size();
    records.emplace_back();
    payloads_.push_back(&payload);
    queue_.at(time, [this, id] {
      waiting_.push_back(id);
      begin();
    });
    return id;
  }
  std::deque<Record> records;

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    const std::size_t id = find(payload);
    if (phase == tlm::END_REQ) {
      records[id].end_request = queue_.now();
      busy_ = false;
      begin();
      return tlm::TLM_ACCEPTED;
    }
    sc_assert(phase == tlm::BEGIN_RESP);
    sc_assert(records[id].end_request != kNever);
    records[id].response = queue_.now();
    if (payload.is_response_error()) ++errors_;
    if (!answer_later) return tlm::TLM_COMPLETED;
    largest_open_responses = std::max(largest_open_responses, ++open_responses_);
    queue_.at(queue_.now() + response_delay, [this, id] {
      --open_responses_;
      tlm::tlm_phase end = tlm::END_RESP;
      sc_core::sc_time delay = annotation(queue_.now());
      out->nb_transport_fw(*payloads_[id], end, delay);
    });
    return tlm::TLM_ACCEPTED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

 private:
  std::size_t find(const tlm::tlm_generic_payload& payload) const {
    for (std::size_t i = 0; i < payloads_.size(); ++i) {
      if (payloads_[i] == &payload && records[i].response == kNever && records[i].begun != kNever) return i;
    }
    sc_assert(false);
    return 0;
  }
  void begin() {
    while (!busy_ && !waiting_.empty()) {
      const std::size_t id = waiting_.front();
      waiting_.pop_front();
      busy_ = true;
      records[id].begun = queue_.now();
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = annotation(queue_.now());
      if (out->nb_transport_fw(*payloads_[id], phase, delay) == tlm::TLM_UPDATED) {
        sc_assert(phase == tlm::END_REQ);
        records[id].end_request = queue_.now();
        busy_ = false;
      }
    }
  }
  EventQueue& queue_;
  std::deque<tlm::tlm_generic_payload*> payloads_;
  std::deque<std::size_t> waiting_;
  bool busy_ = false;
  unsigned open_responses_ = 0;
  unsigned errors_ = 0;
};

}  // namespace kernbench
