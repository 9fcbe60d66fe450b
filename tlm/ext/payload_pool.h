#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tlm>
#include <vector>

#include "tlm/ext/packet.h"

namespace kernbench {

/// Pooled generic payloads. Each keeps a Packet and a buffer of kMaxPacketBytes for life; acquire() hands it out with a
/// reference count of one, the data pointer on its buffer, no data, byte enables off and its packet cleared. Longer
/// data, those of a train, are in a buffer that the payload has until it is returned: of kMaxTrainBytes, or their own
/// length.
class PayloadPool : public tlm::tlm_mm_interface {
 public:
  PayloadPool();
  ~PayloadPool() override;
  PayloadPool(const PayloadPool&) = delete;
  PayloadPool& operator=(const PayloadPool&) = delete;

  /// With room for `bytes` of data, at most kLongestTrainBytes (train.h).
  tlm::tlm_generic_payload& acquire(std::uint32_t bytes = kMaxPacketBytes);
  void free(tlm::tlm_generic_payload* payload) override;  ///< by the last release()

  /// Payloads handed out and not yet returned: zero when the machine is idle.
  std::size_t outstanding() const { return entries_.size() - free_.size(); }

 private:
  struct Entry;
  using TrainBuffer = std::array<unsigned char, kMaxTrainBytes>;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> free_;
  std::vector<std::unique_ptr<TrainBuffer>> free_buffers_;
};

}  // namespace kernbench
