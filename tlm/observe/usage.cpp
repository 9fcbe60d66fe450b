#include "tlm/observe/usage.h"

#include <algorithm>

namespace kernbench {

namespace {
/// `part` of `whole` for the time from `begin` to `at` of `begin` to `end`.
std::uint64_t share(std::uint64_t whole, Ps begin, Ps at, Ps end) {
  if (whole == 0) return 0;
  if (whole == end - begin) return at - begin;                                         // of one unit, the whole time
  if ((whole | (at - begin)) >> 32 == 0) return whole * (at - begin) / (end - begin);  // fits
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(whole) * (at - begin) / (end - begin));
}
}  // namespace

void Usage::fold_to(std::uint32_t shift) {
  const std::uint32_t by = shift - shift_;
  shift_ = shift;
  if (slices_.empty()) return;
  const std::size_t base = base_ >> by;
  std::size_t last = 0;  // slice 0 stays where it is
  for (std::size_t i = 1; i < slices_.size(); ++i) {
    const std::size_t to = ((base_ + i) >> by) - base;
    if (to == last) {
      slices_[to] += slices_[i];
    } else {
      slices_[to] = slices_[i];
    }
    last = to;
  }
  slices_.resize(last + 1);
  base_ = base;
}

/// Room for all from `first` to `last`.
void Usage::hold(std::size_t first, std::size_t last) {
  if (slices_.empty()) {
    base_ = first;
    slices_.reserve(most_ - first);
  }
  if (first < base_) {
    slices_.insert(slices_.begin(), base_ - first, Slice());
    base_ = first;
  }
  if (slices_.size() <= last - base_) slices_.resize(last - base_ + 1);
}

void Usage::move_to(std::size_t slice) {
  slice_ = slice;
  from_ = Ps{slice} << shift_;
  to_ = from_ + (Ps{1} << shift_);
}

void Usage::spread(Ps begin, Ps end, const Slice& what) {
  if (!slices_.empty()) slices_[slice_ - base_] += here_;
  const Ps final = end > begin ? end - 1 : end;  // an instant that it holds
  while (final >> common_ >= most_) ++common_;
  if (common_ > shift_) fold_to(common_);
  const std::size_t first = begin >> shift_, last = final >> shift_;
  hold(first, last);
  Slice done;
  for (std::size_t i = first; i < last; ++i) {
    const Ps until = Ps{i + 1} << shift_;
    const Slice sum{share(what.busy, begin, until, end), share(what.waiting, begin, until, end),
                    share(what.bytes, begin, until, end)};
    slices_[i - base_] += {sum.busy - done.busy, sum.waiting - done.waiting, sum.bytes - done.bytes};
    done = sum;
  }
  here_ = {what.busy - done.busy, what.waiting - done.waiting, what.bytes - done.bytes};
  move_to(last);
}

std::vector<Usage::Slice> Usage::slices(std::uint32_t shift, Ps end) const {
  const std::size_t count = end == 0 ? 1 : ((end - 1) >> shift) + 1;
  std::vector<Slice> result(count);
  if (slices_.empty()) return result;
  const std::uint32_t by = shift - shift_;
  for (std::size_t i = 0; i < slices_.size(); ++i) result[std::min((base_ + i) >> by, count - 1)] += slices_[i];
  result[std::min(slice_ >> by, count - 1)] += here_;
  const Ps whole = (Ps{1} << shift) * units_, rest = (end - (Ps{count - 1} << shift)) * units_;
  const auto room = [&](std::size_t i) { return i + 1 < count ? whole : rest; };
  const auto pass_on = [&](std::size_t i, std::size_t to) {
    const Ps busy = result[i].busy;
    if (busy == 0 || busy <= room(i)) return false;
    result[to].busy += busy - room(i);
    result[i].busy = room(i);
    return true;
  };
  for (std::size_t i = std::min((base_ + slices_.size() - 1) >> by, count - 1); i > 0; --i) pass_on(i, i - 1);
  for (std::size_t i = 0; i + 1 < count && pass_on(i, i + 1);) ++i;
  return result;
}

}  // namespace kernbench
