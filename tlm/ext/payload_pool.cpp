#include "tlm/ext/payload_pool.h"

#include <array>
#include <cstddef>

namespace kernbench {

struct PayloadPool::Entry : tlm::tlm_generic_payload {
  explicit Entry(tlm::tlm_mm_interface* pool) : tlm_generic_payload(pool) { set_extension(&packet); }
  ~Entry() override { clear_extension(&packet); }

  Packet packet;
  alignas(std::max_align_t) std::array<unsigned char, kMaxPacketBytes> buffer;  // may hold a Command
};

PayloadPool::PayloadPool() = default;
PayloadPool::~PayloadPool() = default;

tlm::tlm_generic_payload& PayloadPool::acquire() {
  if (free_.empty()) {
    entries_.push_back(std::make_unique<Entry>(this));
    free_.push_back(entries_.back().get());
  }
  Entry& entry = *free_.back();
  free_.pop_back();
  entry.packet = Packet();
  entry.packet.payload = &entry;
  entry.set_data_ptr(entry.buffer.data());
  entry.set_data_length(0);
  entry.set_streaming_width(0);
  entry.set_byte_enable_ptr(nullptr);
  entry.set_dmi_allowed(false);
  entry.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  entry.acquire();
  return entry;
}

void PayloadPool::free(tlm::tlm_generic_payload* payload) { free_.push_back(static_cast<Entry*>(payload)); }

}  // namespace kernbench
