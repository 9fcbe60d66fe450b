#include "models/pe/ipcq/ipcq_rules.h"

#include <algorithm>

namespace kernbench::pe {

bool ReceiveRing::arrive(std::uint16_t slot, std::uint32_t bytes, std::uint32_t message_bytes,
                         std::uint32_t send_bytes) {
  if (slot >= slots_.size() || slots_[slot].full || message_bytes > slot_bytes_) return false;
  Slot& s = slots_[slot];
  s.message = message_bytes;
  s.send = send_bytes;
  s.arrived += bytes;
  if (s.arrived > message_bytes) return false;
  if (s.arrived < message_bytes) return true;
  s.full = true;
  high_water_ = std::max(high_water_, ++full_);
  return true;
}

std::uint16_t ReceiveRing::visible() const {
  std::uint16_t count = 0;
  while (count < slots_.size() && slots_[(head_ + count) % slots_.size()].full) ++count;
  return count;
}

void ReceiveRing::pop() {
  slots_[head_] = Slot();
  head_ = static_cast<std::uint16_t>((head_ + 1) % slots_.size());
  --full_;
}

}  // namespace kernbench::pe
