#pragma once
#include <cstdint>
#include <vector>

#include "models/pe/op.h"

namespace kernbench::pe {

/// In-order queue of ops; does not own them.
struct OpQueue {
  Op* head = nullptr;
  Op* tail = nullptr;
  std::uint32_t size = 0;

  void push(Op& op) {
    op.next = nullptr;
    (tail == nullptr ? head : tail->next) = &op;
    tail = &op;
    ++size;
  }
  Op& pop() {
    Op& op = *head;
    head = op.next;
    if (head == nullptr) tail = nullptr;
    --size;
    return op;
  }
  /// Takes out the ops of `context`, in order.
  void remove(const KernelContext& context, std::vector<Op*>& removed) {
    OpQueue kept;
    while (size > 0) {
      Op& op = pop();
      if (op.context == &context) {
        removed.push_back(&op);
      } else {
        kept.push(op);
      }
    }
    *this = kept;
  }
};

/// What waits for an engine: one in-order queue per kernel context for the ops of the program, and one for the tiles of
/// its composites. Of those whose head is ready, the head that was issued first goes next. (With one queue for all, a
/// kernel could wait behind another kernel's op that waits for it, or a composite's tile behind an op that waits for
/// the composite.)
class EngineQueues {
 public:
  EngineQueues(std::uint32_t contexts, std::uint32_t depth) : queues_(std::size_t{2} * contexts), depth_(depth) {}
  bool full(const Op& op, std::uint32_t context) const { return queues_[queue_of(op, context)].size >= depth_; }
  void push(Op& op, std::uint32_t context) { queues_[queue_of(op, context)].push(op); }
  /// Ops in all of them.
  std::uint32_t size() const {
    std::uint32_t sum = 0;
    for (const OpQueue& queue : queues_) sum += queue.size;
    return sum;
  }
  /// The op to start, taken out; null if no head is ready.
  Op* pop_ready() {
    OpQueue* best = nullptr;
    for (OpQueue& queue : queues_) {
      if (queue.head == nullptr || queue.head->pending > 0) continue;
      if (best == nullptr || queue.head->sequence < best->head->sequence) best = &queue;
    }
    return best == nullptr ? nullptr : &best->pop();
  }
  /// The same, of the composite's tiles of one context alone.
  Op* pop_ready_tile(std::uint32_t context) {
    OpQueue& queue = queues_[2 * context + 1];
    return queue.head == nullptr || queue.head->pending > 0 ? nullptr : &queue.pop();
  }
  void remove(const KernelContext& context, std::vector<Op*>& removed) {
    for (OpQueue& queue : queues_) queue.remove(context, removed);
  }

 private:
  static std::size_t queue_of(const Op& op, std::uint32_t context) {
    return 2 * context + (op.composite != nullptr ? 1 : 0);
  }
  std::vector<OpQueue> queues_;
  std::uint32_t depth_;
};

}  // namespace kernbench::pe
