#pragma once
#include <cstdint>
#include <vector>

namespace kernbench {
struct QueueSender;
}

namespace kernbench::pe {

/// The sender's view of a peer's ring: which slots it may fill. Slots are taken in order and come back in order.
class SendCredits {
 public:
  explicit SendCredits(std::uint16_t slots) : slots_(slots), free_(slots) {}
  std::uint16_t available() const { return free_; }
  std::uint16_t slots() const { return slots_; }
  /// REQUIRES: available() > 0.
  std::uint16_t take() {
    --free_;
    const std::uint16_t slot = next_;
    next_ = static_cast<std::uint16_t>((next_ + 1) % slots_);
    return slot;
  }
  /// False if more slots came back than there are: a protocol error.
  bool give_back() { return ++free_ <= slots_; }

 private:
  std::uint16_t slots_, free_, next_ = 0;
};

/// A receive ring. A message fills one slot with one or more packets, in any order; it becomes visible, data and
/// pointer together, when it is complete and every message before it is visible. Slots are consumed in order.
class ReceiveRing {
 public:
  ReceiveRing(std::uint16_t slots, std::uint32_t slot_bytes) : slot_bytes_(slot_bytes), slots_(slots) {}

  /// `bytes` of the message of `message_bytes` in `slot`, part of a send of `send_bytes`, are there. False on a
  /// protocol error: a slot that does not exist or is full already, a message longer than a slot, or more bytes than it
  /// has.
  bool arrive(std::uint16_t slot, std::uint32_t bytes, std::uint32_t message_bytes, std::uint32_t send_bytes);
  /// Who sent the message in `slot`, which is not visible before it is known; null: nobody says it.
  void set_sender(std::uint16_t slot, const QueueSender* sender) {
    if (slot < slots_.size()) slots_[slot].sender = sender;
  }
  /// Messages that may be consumed.
  std::uint16_t visible() const;
  /// REQUIRES: visible() > 0.
  std::uint16_t head() const { return head_; }
  std::uint32_t head_bytes() const { return slots_[head_].message; }
  std::uint32_t head_send_bytes() const { return slots_[head_].send; }
  const QueueSender* head_sender() const { return slots_[head_].sender; }
  void pop();

  std::uint16_t slots() const { return static_cast<std::uint16_t>(slots_.size()); }
  std::uint32_t slot_bytes() const { return slot_bytes_; }
  /// Slots that hold a complete message, and the most there ever were.
  std::uint16_t full() const { return full_; }
  std::uint16_t high_water() const { return high_water_; }

 private:
  struct Slot {
    std::uint32_t arrived = 0, message = 0, send = 0;
    bool full = false;
    const QueueSender* sender = nullptr;
  };
  std::uint32_t slot_bytes_;
  std::vector<Slot> slots_;
  std::uint16_t head_ = 0, full_ = 0, high_water_ = 0;
};

}  // namespace kernbench::pe
