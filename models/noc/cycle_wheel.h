#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "models/noc/virtual_channel.h"

namespace kernbench {

/// What is to be done in coming cycles, in the order in which it was asked for: a ring of lists, one bit each says
/// which of them hold anything. Records of all lists come from one pool, the last one freed first, so that a wheel with
/// some hundred entries stays in the processor's nearest cache. Entries further ahead than the ring reaches come back
/// early; whoever takes them out looks at `at`.
template <class Entry>
class CycleWheel {
 public:
  static constexpr unsigned kSlots = 256;

  /// REQUIRES: at >= now.
  [[gnu::always_inline]] inline void push(const Entry& entry, Cycle at, Cycle now) {
    const std::size_t slot = std::min(at, now + kSlots - 1) % kSlots;
    std::uint32_t node = free_;
    if (node == kNone) {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].next;
    }
    nodes_[node].entry = entry;
    nodes_[node].at = at;
    nodes_[node].next = kNone;
    List& list = lists_[slot];
    (list.first == kNone ? list.first : nodes_[list.last].next) = node;
    list.last = node;
    pending_[slot / 64] |= std::uint64_t{1} << slot % 64;
  }

  /// Calls `run(entry, at)` for all entries of cycle `now`, those that it adds included. Before each, `soon(entry)` is
  /// told of the one after the next, then `next(entry)` of the next.
  template <class Run, class Soon, class Next>
  void run(Cycle now, const Run& run, const Soon& soon, const Next& next) {
    const std::size_t slot = now % kSlots;
    if (const std::uint32_t first = lists_[slot].first; first != kNone) next(nodes_[first].entry);
    for (std::uint32_t at = lists_[slot].first; at != kNone;) {
      const Node node = nodes_[at];
      if (node.next != kNone) {
        const Node& second = nodes_[node.next];
        if (second.next != kNone) soon(nodes_[second.next].entry);
        next(second.entry);
      }
      run(node.entry, node.at);
      const std::uint32_t after = nodes_[at].next;
      nodes_[at].next = free_;
      free_ = at;
      at = after;
    }
    lists_[slot] = {};
    pending_[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
  }

  /// Tells `soon(entry)` of the first two entries of cycle `at`.
  template <class Soon>
  void begin(Cycle at, const Soon& soon) const {
    std::uint32_t node = lists_[at % kSlots].first;
    for (unsigned i = 0; i < 2 && node != kNone; ++i, node = nodes_[node].next) soon(nodes_[node].entry);
  }

  /// First cycle from `now` on with an entry; kNoCycle: none.
  Cycle next(Cycle now) const {
    const std::size_t start = now % kSlots;
    if (const std::uint64_t near = pending_[start / 64] >> start % 64; near != 0)
      return now + static_cast<unsigned>(__builtin_ctzll(near));
    for (std::size_t word = 1; word <= pending_.size(); ++word) {
      const std::size_t w = (start / 64 + word) % pending_.size();
      const std::uint64_t bits = pending_[w];  // in its own word only what comes before `start` is left
      if (bits == 0) continue;
      const std::size_t slot = w * 64 + static_cast<std::size_t>(__builtin_ctzll(bits));
      return now + (slot + kSlots - start) % kSlots;
    }
    return kNoCycle;
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Node {
    Entry entry{};
    Cycle at = 0;
    std::uint32_t next = kNone;
  };
  struct List {
    std::uint32_t first = kNone, last = kNone;
  };

  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
  std::array<std::uint64_t, kSlots / 64> pending_{};
  std::array<List, kSlots> lists_;
};

}  // namespace kernbench
