#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tlm/observe/usage_slices.h"

namespace kernbench {

/// What a resource did over time, in slices of equal length; the totals are the model's own counters.
///
/// A slice is 2^shift ps long. When a run outgrows the slices, neighbours are merged, so that memory is bounded by
/// their number. A record within the slice that was written last costs two comparisons and two additions; a slice that
/// follows those before it is written once, when it is left, and not read. Nothing is allocated before the first
/// record. Records come in any order of time.
class alignas(64) Usage {
 public:
  using Slice = UsageSlice;
  static constexpr std::uint32_t kLeastShift = UsageSlices::kLeastShift;
  static constexpr unsigned kReasons = 3;
  using Waits = std::array<Ps, kReasons>;  ///< by reason

  /// `common`: of the usages that are compared with it; outlives them. `units`: how many things are in use at once at
  /// most.
  explicit Usage(UsageSlices& common, std::uint32_t units = 1);
  /// Keeps each reason of waiting over time, too. Before the first record.
  void keep_reasons();

  /// In use from `begin` to `end`, for `bytes` in `messages`; both may be 0. REQUIRES: begin <= end.
  void busy(Ps begin, Ps end, std::uint64_t bytes, std::uint32_t messages) {
    busy(begin, end, end - begin, bytes, messages);
  }
  /// Of several units, `busy` ps in all.
  void busy(Ps begin, Ps end, Ps busy, std::uint64_t bytes, std::uint32_t messages) {
    if (begin >= from_ && end <= to_) {
      here_.busy += busy;
      here_.bytes += bytes;
      here_.messages += messages;
      return;
    }
    spread(begin, end, {busy, 0, bytes, messages, 0});
  }
  /// Something waited for it, or it for something, from `begin` to `end`.
  void wait(Ps begin, Ps end, unsigned reason = 0) {
    waited_[reason] += end - begin;
    if (begin >= from_ && end <= to_) {
      here_.waiting += end - begin;
      return;
    }
    spread(begin, end, {0, end - begin, 0, 0, 0}, reason);
  }
  /// One more came at `at`: so many are there now.
  void level(std::uint64_t count, Ps at) {
    if (at >= from_ && at < to_) {
      here_.mark = std::max(here_.mark, static_cast<std::uint32_t>(count));
      return;
    }
    raise(count, at);
  }

  struct Sum {
    Ps busy = 0;
    std::uint64_t bytes = 0, messages = 0;
  };
  /// What it was booked for up to now.
  Sum sum() const {
    return {passed_.busy + here_.busy, passed_.bytes + here_.bytes, passed_.messages + here_.messages};
  }
  /// The largest mark of the slices from the one of `since` on.
  std::uint32_t mark(Ps since) const;
  bool used() const { return from_ < to_; }
  Ps waited(unsigned reason) const { return waited_[reason]; }
  std::uint32_t units() const { return units_; }
  std::uint32_t shift() const { return shift_; }
  /// Slices of 2^shift ps of a run that ended at `end`; what is booked for later counts for the last one.
  /// REQUIRES: shift >= shift().
  ///
  /// Models book what is spread a little at one place (a packet's flits at its tail), so that a slice may be booked for
  /// longer than it is: what is too much moves to the slice before, or behind where that is full, too.
  std::vector<Slice> slices(std::uint32_t shift, Ps end) const;
  /// The waiting of the same slices by reason; empty without keep_reasons().
  std::vector<Waits> reasons(std::uint32_t shift, Ps end) const;

 private:
  /// Of each reason what is in the slices, as they are.
  struct Reasons {
    std::vector<Waits> slices;
    Waits kept{};  // their sums
  };
  void spread(Ps begin, Ps end, const Slice& what, unsigned reason = 0);
  Slice spread_over(Ps begin, Ps end, const Slice& what);
  void keep(Ps waits, unsigned reason);
  void raise(std::uint64_t count, Ps at);
  void settle();
  void move_to(std::uint64_t slice);
  void fold_to(std::uint32_t shift);

  // What a record within the slice needs is one cache line.
  Ps from_ = 1, to_ = 0;  // of the slice that `here_` belongs to; none yet
  Slice here_;            // not in slices_ yet
  Waits waited_{};        // the first two in this line
  // What the next slice needs is another one.
  SliceRow slices_;  // all there may be
  UsageSlices& common_;
  Sum passed_;                   // all but `here_`
  std::uint32_t slice_ = 0;      // of `here_`
  std::uint32_t untouched_ = 0;  // from this slice on, slices_ hold nothing
  std::uint32_t shift_;
  const std::uint32_t units_;
  std::unique_ptr<Reasons> reasons_;
};

/// The usages of a machine. They stay where they are.
class UsageBook {
 public:
  /// `slices`: at most. `detail`: with each reason of waiting over time.
  explicit UsageBook(std::uint32_t slices, bool detail = false) : slices_(slices), detail_(detail) {}
  UsageBook(const UsageBook&) = delete;
  UsageBook& operator=(const UsageBook&) = delete;

  /// `reasons`: for which it may wait.
  Usage* add(std::uint32_t units = 1, std::size_t reasons = Usage::kReasons) {
    Usage& usage = usages_.emplace_back(slices_, units);
    if (detail_ && reasons > 1) usage.keep_reasons();
    return &usage;
  }
  bool detail() const { return detail_; }
  /// Of the slices that hold a run that ended at `end`, every usage's among them.
  std::uint32_t shift(Ps end) const { return slices_.shift(end); }

 private:
  UsageSlices slices_;
  std::deque<Usage> usages_;
  const bool detail_;
};

}  // namespace kernbench
