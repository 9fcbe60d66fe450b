#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tlm/base/time.h"

namespace kernbench {

/// What a resource did in one slice of time.
struct UsageSlice {
  std::uint64_t busy = 0;     ///< ps
  std::uint64_t waiting = 0;  ///< ps
  std::uint64_t bytes = 0;
  std::uint32_t messages = 0;
  std::uint32_t mark = 0;  ///< most at once, of the moments at which one more came
  UsageSlice& operator+=(const UsageSlice& other) {
    busy += other.busy;
    waiting += other.waiting;
    bytes += other.bytes;
    messages += other.messages;
    mark = std::max(mark, other.mark);
    return *this;
  }
};

/// What usages that are compared with each other share: the length of their slices, and the memory for them.
class UsageSlices {
 public:
  static constexpr std::uint32_t kLeastShift = 17;  ///< 131 ns: 256 of them are 34 us

  /// `most`: slices of each usage. `shift`: to begin with; all take the largest that one of them needs, when they next
  /// have something to say.
  explicit UsageSlices(std::uint32_t most, std::uint32_t shift = kLeastShift) : most_(most), shift_(shift) {}
  UsageSlices(const UsageSlices&) = delete;
  UsageSlices& operator=(const UsageSlices&) = delete;

  std::uint32_t shift() const { return shift_; }
  /// Of the slices that hold a run that ended at `end`, every usage's among them.
  std::uint32_t shift(Ps end) const {
    std::uint32_t shift = shift_;
    while (end > 0 && (end - 1) >> shift >= most_) ++shift;
    return shift;
  }

 private:
  friend class Usage;
  friend class SliceRow;
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  /// For as many slices of `size` bytes as there may be, all zero.
  std::byte* allocate(std::size_t size);

  const std::uint32_t most_;
  std::uint32_t shift_;
  bool reasons_ = false;  // some usage keeps them apart
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;
  std::byte* end_ = nullptr;  // of the last block
  std::size_t left_ = 0;      // bytes before it that nobody has
};

/// The slices of one usage: of 16 B each, until one holds more than fits, and then of 32 B. Memory for them is taken by
/// reserve().
class SliceRow {
 public:
  bool reserved() const { return memory_ != 0; }
  void reserve(UsageSlices& common) { memory_ = reinterpret_cast<std::uintptr_t>(common.allocate(sizeof(Narrow))); }
  UsageSlice at(std::uint64_t i) const { return is_wide() ? wide()[i] : UsageSlice(narrow()[i]); }
  /// Does not read what is there.
  void put(std::uint64_t i, const UsageSlice& slice, UsageSlices& common) {
    if (!is_wide() && Narrow::holds(slice)) {
      narrow()[i] = Narrow(slice);
    } else {
      put_wide(i, slice, common);
    }
  }
  void add(std::uint64_t i, const UsageSlice& slice, UsageSlices& common) {
    UsageSlice sum = at(i);
    put(i, sum += slice, common);
  }
  /// Calls use(i, slice) for slices [0, end), at least those that hold something.
  template <class Use>
  void visit(std::uint64_t end, const Use& use) const {
    if (is_wide()) {
      for (std::uint64_t i = 0; i < end; ++i) use(i, wide()[i]);
      return;
    }
    const Narrow* const row = narrow();
    for (std::uint64_t i = 0; i < end; ++i) {
      if (!row[i].empty()) use(i, UsageSlice(row[i]));
    }
  }
  /// Of slices [i, end).
  UsageSlice sum(std::uint64_t i, std::uint64_t end) const {
    UsageSlice sum;
    if (is_wide()) {
      for (; i < end; ++i) sum += wide()[i];
      return sum;
    }
    const Narrow* const row = narrow();
    for (; i < end; ++i) {
      if (!row[i].empty()) sum += UsageSlice(row[i]);  // most are
    }
    return sum;
  }
  void clear(std::uint64_t i, std::uint64_t end) {
    is_wide() ? std::fill(wide() + i, wide() + end, UsageSlice())
              : std::fill(narrow() + i, narrow() + end, Narrow(UsageSlice()));
  }
  void add_waiting(std::uint64_t i, std::uint64_t waiting, UsageSlices& common) {
    if (!is_wide() && (narrow()[i].waiting + waiting) >> 32 == 0) {
      narrow()[i].waiting += static_cast<std::uint32_t>(waiting);
    } else {
      add(i, {0, waiting, 0, 0, 0}, common);
    }
  }

 private:
  struct Narrow {
    explicit Narrow(const UsageSlice& s)
        : busy(static_cast<std::uint32_t>(s.busy)),
          waiting(static_cast<std::uint32_t>(s.waiting)),
          rest(s.bytes | std::uint64_t{s.messages} << 24 | std::uint64_t{s.mark} << 40) {}
    explicit operator UsageSlice() const {
      return {busy, waiting, rest & 0xFF'FFFF, static_cast<std::uint32_t>(rest >> 24 & 0xFFFF),
              static_cast<std::uint32_t>(rest >> 40)};
    }
    static bool holds(const UsageSlice& s) {
      return (s.busy | s.waiting) >> 32 == 0 && (s.bytes | s.mark) >> 24 == 0 && s.messages >> 16 == 0;
    }
    bool empty() const { return (busy | waiting | rest) == 0; }
    std::uint32_t busy, waiting;
    std::uint64_t rest;  // bytes in 24 bits, messages in 16, mark in 24
  };
  static_assert(sizeof(Narrow) == 16);
  void put_wide(std::uint64_t i, const UsageSlice& slice, UsageSlices& common);

  bool is_wide() const { return (memory_ & 1) != 0; }
  Narrow* narrow() const { return reinterpret_cast<Narrow*>(memory_); }
  UsageSlice* wide() const { return reinterpret_cast<UsageSlice*>(memory_ - 1); }

  std::uintptr_t memory_ = 0;  // bit 0: of wide slices. One word, so that a Usage has what it needs in two cache lines
};

}  // namespace kernbench
