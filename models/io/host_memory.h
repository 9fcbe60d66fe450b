#pragma once
#include <cstdint>
#include <stdexcept>
#include <tlm>

#include "models/memory/sparse_memory.h"
#include "tlm/machine/address.h"

namespace kernbench {

/// Memory of the host as devices see it: contents only, the link in front of it takes the time.
class HostMemory {
 public:
  /// `data` false: no contents.
  HostMemory(std::uint16_t sip, bool data) : sip_(sip), data_(data) {}

  /// Reads or writes and sets the response status. Returns the bytes moved.
  unsigned access(tlm::tlm_generic_payload& payload) {
    PhysicalAddress address;
    try {
      address = PhysicalAddress::decode(payload.get_address());
    } catch (const std::invalid_argument&) {  // the bits name no memory
      address.sip = static_cast<std::uint16_t>(~sip_);
    }
    if (address.kind != MemoryKind::host || address.sip != sip_ || payload.get_byte_enable_ptr() != nullptr) {
      payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return 0;
    }
    const std::uint32_t n = payload.get_data_length();
    if (data_ && payload.is_write()) contents_.write(address.offset, payload.get_data_ptr(), n);
    if (data_ && payload.is_read()) contents_.read(address.offset, payload.get_data_ptr(), n);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return n;
  }

 private:
  const std::uint16_t sip_;
  const bool data_;
  SparseMemory contents_;
};

}  // namespace kernbench
