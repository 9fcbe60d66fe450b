#include "models/memory/memory_access.h"

#include "tlm/machine/address.h"

namespace kernbench::memory_access {

namespace {
tlm::tlm_response_status status_of(const tlm::tlm_generic_payload& payload, std::uint64_t offset,
                                   std::uint64_t capacity) {
  const std::uint64_t length = payload.get_data_length();
  if (!payload.is_read() && !payload.is_write()) return tlm::TLM_COMMAND_ERROR_RESPONSE;
  if (length == 0 || (payload.get_streaming_width() != 0 && payload.get_streaming_width() < length)) {
    return tlm::TLM_BURST_ERROR_RESPONSE;
  }
  if (payload.get_byte_enable_ptr() != nullptr && payload.get_byte_enable_length() == 0) {
    return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
  }
  if (offset > capacity || length > capacity - offset) return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  return tlm::TLM_OK_RESPONSE;
}
}  // namespace

std::optional<std::uint64_t> check(tlm::tlm_generic_payload& payload, std::uint64_t offset, std::uint64_t capacity) {
  payload.set_response_status(status_of(payload, offset, capacity));
  return payload.is_response_ok() ? std::optional(offset) : std::nullopt;
}

bool apply(tlm::tlm_generic_payload& payload, std::uint64_t offset, SparseMemory& contents) {
  unsigned char* data = payload.get_data_ptr();
  const std::size_t length = payload.get_data_length();
  const unsigned char* enable = payload.get_byte_enable_ptr();
  if (enable == nullptr) {
    if (payload.is_read()) return contents.read(offset, data, length);
    contents.write(offset, data, length);
    return true;
  }
  bool all_written = true;
  for (std::size_t i = 0; i < length; ++i) {
    if (enable[i % payload.get_byte_enable_length()] == TLM_BYTE_DISABLED) continue;
    if (payload.is_write()) {
      contents.write(offset + i, data + i, 1);
    } else {
      all_written = contents.read(offset + i, data + i, 1) && all_written;
    }
  }
  return all_written;
}

void warn_unwritten(const std::string& memory, const tlm::tlm_generic_payload& payload) {
  SC_REPORT_WARNING("kernbench/unwritten",
                    (memory + ": a read of " + std::to_string(payload.get_data_length()) + " B at " +
                     PhysicalAddress::decode(payload.get_address()).str() + " returns bytes that nobody wrote")
                        .c_str());
}

}  // namespace kernbench::memory_access
