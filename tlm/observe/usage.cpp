#include "tlm/observe/usage.h"

#include <new>

namespace kernbench {

namespace {
void add(Usage::Waits& to, const Usage::Waits& what) {
  for (unsigned i = 0; i < Usage::kReasons; ++i) to[i] += what[i];
}

/// `part` of `whole` for the time from `begin` to `at` of `begin` to `end`.
std::uint64_t share(std::uint64_t whole, Ps begin, Ps at, Ps end) {
  if (whole <= 1) return 0;                     // one message: it counts where it ends
  if (whole == end - begin) return at - begin;  // of one unit, the whole time
  if ((whole | (at - begin)) >> 32 == 0) return whole * (at - begin) / (end - begin);  // fits
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(whole) * (at - begin) / (end - begin));
}

}  // namespace

/// From the system in blocks, which are zero: what is not written does not take time, then.
std::byte* UsageSlices::allocate(std::size_t size) {
  constexpr std::size_t kBlock = std::size_t{2} << 20;  // a large page
  const std::size_t bytes = most_ * size;
  if (left_ < bytes) {
    left_ = std::max(kBlock, bytes);
    auto* block = static_cast<std::byte*>(std::calloc(left_, 1));
    if (block == nullptr) throw std::bad_alloc();
    blocks_.emplace_back(block);
    end_ = block + left_;
  }
  left_ -= bytes;
  return end_ - left_ - bytes;
}

void SliceRow::put_wide(std::uint64_t i, const UsageSlice& slice, UsageSlices& common) {
  if (!is_wide()) {
    auto* wider = reinterpret_cast<UsageSlice*>(common.allocate(sizeof(UsageSlice)));
    for (std::uint32_t k = 0; k < common.most_; ++k) wider[k] = UsageSlice(narrow()[k]);
    memory_ = reinterpret_cast<std::uintptr_t>(wider) | 1;
  }
  wide()[i] = slice;
}

Usage::Usage(UsageSlices& common, std::uint32_t units) : common_(common), shift_(common.shift_), units_(units) {}

void Usage::keep_reasons() {
  reasons_ = std::make_unique<Reasons>();
  common_.reasons_ = true;
}

void Usage::fold_to(std::uint32_t shift) {
  const std::uint32_t by = shift - shift_;
  shift_ = shift;
  std::uint32_t to = 0;
  for (std::uint32_t i = 0; i < untouched_; ++to) {
    const std::uint64_t end = std::min<std::uint64_t>(untouched_, std::uint64_t{to + 1} << by);
    slices_.put(to, slices_.sum(i, end), common_);
    i = static_cast<std::uint32_t>(end);
  }
  slices_.clear(to, untouched_);
  untouched_ = to;
  if (!reasons_) return;
  std::vector<Waits> folded;
  for (std::size_t i = 0; i < reasons_->slices.size(); ++i) {
    folded.resize((i >> by) + 1);
    add(folded.back(), reasons_->slices[i]);
  }
  reasons_->slices = std::move(folded);
}

/// What the last slice holds goes to where it belongs. If that is untouched, it is not read: it has been in no cache
/// for long, if ever.
void Usage::settle() {
  if (!used()) return;
  if (slice_ >= untouched_) {
    slices_.put(slice_, here_, common_);
    untouched_ = slice_ + 1;
  } else {
    slices_.add(slice_, here_, common_);
  }
}

void Usage::move_to(std::uint64_t slice) {
  slice_ = static_cast<std::uint32_t>(slice);
  from_ = slice << shift_;
  to_ = from_ + (Ps{1} << shift_);
}

/// What has waited within the slice that is left is of that slice, but for `waits`, which come now.
void Usage::keep(Ps waits, unsigned reason) {
  Waits within = waited_;
  within[reason] -= waits;
  for (unsigned i = 0; i < kReasons; ++i) {
    if (used()) reasons_->slices[slice_][i] += within[i] - reasons_->kept[i];
  }
  reasons_->kept = waited_;
}

/// Adds to its slices what an interval did that reaches over several; returns what is left for the last.
Usage::Slice Usage::spread_over(Ps begin, Ps end, const Slice& what) {
  const std::uint64_t first = begin >> shift_, last = (end - 1) >> shift_;
  const Ps whole = Ps{1} << shift_;
  Ps until = (first + 1) << shift_;
  Slice left = what;
  if (what.waiting != 0) {  // and nothing else; of long queues: over many slices
    slices_.add_waiting(first, until - begin, common_);
    for (std::uint64_t i = first + 1; i < last; ++i) slices_.add_waiting(i, whole, common_);
    left.waiting = end - (last << shift_);
    return left;
  }
  for (std::uint64_t i = first; i < last; ++i, until += whole) {
    Slice part;
    const auto take = [&](auto all, auto& rest, auto& to) {
      const auto behind = all - static_cast<decltype(all)>(share(all, begin, until, end));
      to = rest - behind;
      rest = behind;
    };
    take(what.busy, left.busy, part.busy);
    take(what.bytes, left.bytes, part.bytes);
    take(what.messages, left.messages, part.messages);
    slices_.add(i, part, common_);
  }
  return left;
}

void Usage::spread(Ps begin, Ps end, const Slice& what, unsigned reason) {
  settle();
  const bool reasons = common_.reasons_ && reasons_ != nullptr;
  if (reasons) keep(what.waiting, reason);
  passed_ = sum();
  const Ps final = end > begin ? end - 1 : end;  // an instant that it holds
  std::uint64_t first = begin >> shift_, last = final >> shift_;
  if (common_.shift_ != shift_ || last >= common_.most_) {
    common_.shift_ = common_.shift(final + 1);
    if (common_.shift_ > shift_) fold_to(common_.shift_);
    first = begin >> shift_;
    last = final >> shift_;
  }
  if (!slices_.reserved()) slices_.reserve(common_);
  if (first == last) {
    here_ = what;
  } else {
    here_ = spread_over(begin, end, what);
    untouched_ = std::max(untouched_, static_cast<std::uint32_t>(last));
  }
  passed_.busy += what.busy - here_.busy;
  passed_.bytes += what.bytes - here_.bytes;
  passed_.messages += what.messages - here_.messages;
  if (reasons) {
    std::vector<Waits>& slices = reasons_->slices;
    if (slices.size() <= last) slices.resize(last + 1);
    for (std::uint64_t i = first; what.waiting != 0 && i <= last; ++i)
      slices[i][reason] += std::min(end, (i + 1) << shift_) - std::max(begin, i << shift_);
  }
  move_to(last);
}

void Usage::raise(std::uint64_t count, Ps at) {
  const auto mark = static_cast<std::uint32_t>(count);
  const std::uint64_t slice = at >> shift_;
  if (common_.shift_ != shift_ || slice >= untouched_) return spread(at, at, {0, 0, 0, 0, mark});
  slices_.add(slice, {0, 0, 0, 0, mark}, common_);
}

std::uint32_t Usage::mark(Ps since) const {
  const std::uint64_t first = since >> shift_;
  std::uint32_t mark = slice_ >= first ? here_.mark : 0;
  for (std::uint64_t i = first; i < untouched_; ++i) mark = std::max(mark, slices_.at(i).mark);
  return mark;
}

std::vector<Usage::Slice> Usage::slices(std::uint32_t shift, Ps end) const {
  const std::size_t count = end == 0 ? 1 : ((end - 1) >> shift) + 1;
  std::vector<Slice> result(count);
  if (!used()) return result;
  const std::uint32_t by = shift - shift_;
  const Ps whole = (Ps{1} << shift) * units_, rest = (end - (Ps{count - 1} << shift)) * units_;
  bool fits = true;
  const auto add = [&](std::uint64_t i, const Slice& slice) {
    Slice& sum = result[std::min<std::size_t>(i >> by, count - 1)] += slice;
    fits = fits && sum.busy <= whole;
  };
  slices_.visit(untouched_, add);
  add(slice_, here_);
  if (fits && result.back().busy <= rest) return result;
  const auto pass_on = [&](std::size_t i, Ps room, std::size_t to) {
    if (result[i].busy <= room) return false;
    result[to].busy += result[i].busy - room;
    result[i].busy = room;
    return true;
  };
  if (count > 1) pass_on(count - 1, rest, count - 2);
  for (std::size_t i = count - 1; i-- > 1;) pass_on(i, whole, i - 1);
  for (std::size_t i = 0; i + 1 < count && pass_on(i, whole, i + 1);) ++i;
  return result;
}

std::vector<Usage::Waits> Usage::reasons(std::uint32_t shift, Ps end) const {
  if (!reasons_) return {};
  const std::size_t count = end == 0 ? 1 : ((end - 1) >> shift) + 1;
  std::vector<Waits> result(count);
  const std::uint32_t by = shift - shift_;
  const auto of = [&](std::uint64_t slice) -> Waits& { return result[std::min<std::size_t>(slice >> by, count - 1)]; };
  for (std::size_t i = 0; i < reasons_->slices.size(); ++i) add(of(i), reasons_->slices[i]);
  for (unsigned i = 0; i < kReasons; ++i) of(slice_)[i] += waited_[i] - reasons_->kept[i];
  return result;
}

}  // namespace kernbench
