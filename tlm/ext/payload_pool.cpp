#include "tlm/ext/payload_pool.h"

#include "tlm/ext/train.h"

namespace kernbench {

struct PayloadPool::Entry : tlm::tlm_generic_payload {
  explicit Entry(tlm::tlm_mm_interface* pool) : tlm_generic_payload(pool) { set_extension(&packet); }
  ~Entry() override { clear_extension(&packet); }

  Packet packet;
  std::unique_ptr<TrainBuffer> train;
  std::unique_ptr<unsigned char[]> long_train;
  alignas(std::max_align_t) std::array<unsigned char, kMaxPacketBytes> buffer;  // may hold a Command
};

PayloadPool::PayloadPool() = default;
PayloadPool::~PayloadPool() = default;

tlm::tlm_generic_payload& PayloadPool::acquire(std::uint32_t bytes) {
  sc_assert(bytes <= kLongestTrainBytes);
  if (free_.empty()) {
    entries_.push_back(std::make_unique<Entry>(this));
    free_.push_back(entries_.back().get());
  }
  Entry& entry = *free_.back();
  free_.pop_back();
  entry.packet = Packet();
  entry.packet.payload = &entry;
  if (bytes > kMaxTrainBytes) {
    entry.long_train.reset(new unsigned char[bytes]);
  } else if (bytes > kMaxPacketBytes) {
    if (free_buffers_.empty()) free_buffers_.push_back(std::make_unique<TrainBuffer>());
    entry.train = std::move(free_buffers_.back());
    free_buffers_.pop_back();
  }
  entry.set_data_ptr(entry.long_train ? entry.long_train.get()
                     : entry.train    ? entry.train->data()
                                      : entry.buffer.data());
  entry.set_data_length(0);
  entry.set_streaming_width(kLongestTrainBytes);  // none, whatever the length
  entry.set_byte_enable_ptr(nullptr);
  entry.set_dmi_allowed(false);
  entry.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  entry.acquire();
  return entry;
}

void PayloadPool::free(tlm::tlm_generic_payload* payload) {
  auto* entry = static_cast<Entry*>(payload);
  if (entry->train) free_buffers_.push_back(std::move(entry->train));
  entry->long_train.reset();
  free_.push_back(entry);
}

}  // namespace kernbench
