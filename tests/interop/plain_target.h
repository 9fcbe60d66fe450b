#pragma once
// A memory as somebody else may write one: it includes SystemC and TLM-2.0, and nothing of this project.
#include <tlm_utils/simple_target_socket.h>
#include <cstring>
#include <systemc>
#include <tlm>
#include <vector>

namespace interop {

/// A loosely timed memory that waits for half of its latency and annotates the other half. simple_target_socket makes
/// it approximately timed as well.
class PlainMemory : public sc_core::sc_module {
 public:
  PlainMemory(const sc_core::sc_module_name& name, std::size_t bytes, sc_core::sc_time latency)
      : sc_module(name), contents(bytes), latency_(latency) {
    socket.register_b_transport(this, &PlainMemory::access);
    socket.register_transport_dbg(this, &PlainMemory::debug);
  }
  tlm_utils::simple_target_socket<PlainMemory> socket{"socket"};
  std::vector<unsigned char> contents;
  unsigned accesses = 0;

 private:
  void access(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    ++accesses;
    sc_core::wait(delay + latency_ / 2);
    delay = latency_ / 2;
    const std::size_t length = payload.get_data_length();
    if (payload.get_address() + length > contents.size()) {
      payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return;
    }
    for (std::size_t i = 0; i < length; ++i) {
      const unsigned char* enable = payload.get_byte_enable_ptr();
      if (enable != nullptr && enable[i % payload.get_byte_enable_length()] == TLM_BYTE_DISABLED) continue;
      unsigned char& byte = contents[payload.get_address() + i];
      payload.is_read() ? payload.get_data_ptr()[i] = byte : byte = payload.get_data_ptr()[i];
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  unsigned debug(tlm::tlm_generic_payload& payload) {
    const std::size_t length = payload.get_data_length();
    if (payload.get_address() + length > contents.size()) return 0;
    unsigned char* here = contents.data() + payload.get_address();
    payload.is_read() ? std::memcpy(payload.get_data_ptr(), here, length)
                      : std::memcpy(here, payload.get_data_ptr(), length);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return static_cast<unsigned>(length);
  }
  const sc_core::sc_time latency_;
};

}  // namespace interop
