#include "tlm/observe/usage.h"

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

/// Adds to the slices from the first one of an interval that reaches over several; returns what is left for the last.
Usage::Slice spread_over(Usage::Slice* slice, std::uint32_t shift, Ps begin, Ps end, const Usage::Slice& what) {
  const std::uint64_t first = begin >> shift, last = (end - 1) >> shift;
  const Ps whole = Ps{1} << shift;
  Ps until = (first + 1) << shift;
  Usage::Slice left = what;
  if (what.waiting != 0) {  // and nothing else; of long queues: over many slices
    slice->waiting += until - begin;
    for (std::uint64_t i = first + 1; i < last; ++i) (++slice)->waiting += whole;
    left.waiting = end - (last << shift);
    return left;
  }
  for (std::uint64_t i = first; i < last; ++i, ++slice, until += whole) {
    const auto take = [&](auto all, auto& left, auto& to) {
      const auto rest = all - static_cast<decltype(all)>(share(all, begin, until, end));
      to += left - rest;
      left = rest;
    };
    take(what.busy, left.busy, slice->busy);
    take(what.bytes, left.bytes, slice->bytes);
    take(what.messages, left.messages, slice->messages);
  }
  return left;
}
}  // namespace

void Usage::fold_to(std::uint32_t shift) {
  const std::uint32_t by = shift - shift_, base = base_ >> by;
  shift_ = shift;
  if (slices_.empty()) return;
  std::size_t to = 0;
  for (std::size_t i = 0; i < slices_.size(); ++to) {
    const std::size_t end = std::min(slices_.size(), ((base + to + 1) << by) - base_);
    Slice sum;
    for (; i < end; ++i) sum += slices_[i];
    slices_[to] = sum;
  }
  slices_.resize(to);
  if (reasons_) {
    std::vector<Waits> folded(to);
    for (std::size_t i = 0; i < reasons_->slices.size(); ++i)
      add(folded[((base_ + i) >> by) - base], reasons_->slices[i]);
    reasons_->slices = std::move(folded);
  }
  base_ = base;
}

/// Room for all from `first` to `last`, and some that will be asked for next.
void Usage::hold(std::uint64_t first, std::uint64_t last) {
  constexpr std::uint64_t kAhead = 16;
  if (slices_.empty()) {
    base_ = static_cast<std::uint32_t>(first);
    slices_.reserve(most_ - first);
  }
  if (first < base_) {
    slices_.insert(slices_.begin(), base_ - first, Slice());
    if (reasons_) reasons_->slices.insert(reasons_->slices.begin(), base_ - first, Waits());
    base_ = static_cast<std::uint32_t>(first);
  }
  if (slices_.size() <= last - base_) slices_.resize(std::min<std::uint64_t>(last + kAhead, most_) - base_);
  if (reasons_) reasons_->slices.resize(slices_.size());
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
    if (from_ < to_) reasons_->slices[slice_ - base_][i] += within[i] - reasons_->kept[i];
  }
  reasons_->kept = waited_;
}

void Usage::spread(Ps begin, Ps end, const Slice& what, unsigned reason) {
  if (from_ < to_) slices_[slice_ - base_] += here_;
  if (reasons_) keep(what.waiting, reason);
  passed_ = sum();
  const Ps final = end > begin ? end - 1 : end;  // an instant that it holds
  std::uint64_t first = begin >> shift_, last = final >> shift_;
  if (common_ != shift_ || first < base_ || last - base_ >= slices_.size()) {
    while (final >> common_ >= most_) ++common_;
    if (common_ > shift_) fold_to(common_);
    first = begin >> shift_;
    last = final >> shift_;
    hold(first, last);
  }
  here_ = first == last ? what : spread_over(&slices_[first - base_], shift_, begin, end, what);
  passed_.busy += what.busy - here_.busy;
  passed_.bytes += what.bytes - here_.bytes;
  passed_.messages += what.messages - here_.messages;
  if (reasons_ && what.waiting != 0) {
    for (std::uint64_t i = first; i <= last; ++i)
      reasons_->slices[i - base_][reason] += std::min(end, (i + 1) << shift_) - std::max(begin, i << shift_);
  }
  move_to(last);
}

void Usage::raise(std::uint64_t count, Ps at) {
  const auto mark = static_cast<std::uint32_t>(count);
  const std::uint64_t slice = at >> shift_;
  if (common_ != shift_ || slice < base_ || slice - base_ >= slices_.size()) return spread(at, at, {0, 0, 0, 0, mark});
  slices_[slice - base_].mark = std::max(slices_[slice - base_].mark, mark);
}

std::uint32_t Usage::mark(Ps since) const {
  const std::uint64_t first = since >> shift_;
  std::uint32_t mark = slice_ >= first ? here_.mark : 0;
  for (std::size_t i = first > base_ ? first - base_ : 0; i < slices_.size(); ++i)
    mark = std::max(mark, slices_[i].mark);
  return mark;
}

std::vector<Usage::Slice> Usage::slices(std::uint32_t shift, Ps end) const {
  const std::size_t count = end == 0 ? 1 : ((end - 1) >> shift) + 1;
  std::vector<Slice> result;
  result.reserve(count);
  const std::uint32_t by = shift - shift_;
  std::size_t from = 0;
  if (by == 0 && base_ < count) {  // most
    from = std::min(slices_.size(), count - base_);
    result.resize(base_);
    result.insert(result.end(), slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(from));
  }
  result.resize(count);
  if (slices_.empty()) return result;
  for (std::size_t to = (base_ + from) >> by; from < slices_.size(); ++to) {
    const std::size_t until = to + 1 < count ? std::min(slices_.size(), ((to + 1) << by) - base_) : slices_.size();
    Slice sum;
    for (; from < until; ++from) sum += slices_[from];
    result[std::min(to, count - 1)] += sum;
  }
  result[std::min(std::size_t{slice_} >> by, count - 1)] += here_;
  const Ps whole = (Ps{1} << shift) * units_, rest = (end - (Ps{count - 1} << shift)) * units_;
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
  for (std::size_t i = 0; i < reasons_->slices.size(); ++i) add(of(base_ + i), reasons_->slices[i]);
  for (unsigned i = 0; i < kReasons; ++i) of(slice_)[i] += waited_[i] - reasons_->kept[i];
  return result;
}

}  // namespace kernbench
