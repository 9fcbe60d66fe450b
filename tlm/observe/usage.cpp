#include "tlm/observe/usage.h"

#include <algorithm>

namespace kernbench {

namespace {
/// `part` of `whole` for the time from `begin` to `at` of `begin` to `end`.
std::uint64_t share(std::uint64_t whole, Ps begin, Ps at, Ps end) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(whole) * (at - begin) / (end - begin));
}
}  // namespace

void Usage::fold() {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    if (i % 2 == 0) {
      slices_[i / 2] = slices_[i];
    } else {
      slices_[i / 2] += slices_[i];
    }
  }
  slices_.resize((slices_.size() + 1) / 2);
  ++shift_;
}

void Usage::move_to(std::size_t slice) {
  slice_ = slice;
  from_ = Ps{slice} << shift_;
  to_ = from_ + (Ps{1} << shift_);
}

void Usage::spread(Ps begin, Ps end, const Slice& what) {
  if (!slices_.empty()) slices_[slice_] += here_;
  here_ = Slice();
  const Ps final = end > begin ? end - 1 : end;  // an instant that it holds
  while (final >> shift_ >= most_) fold();
  const std::size_t first = begin >> shift_, last = final >> shift_;
  if (slices_.size() <= last) slices_.resize(last + 1);
  Slice done;
  for (std::size_t i = first; i < last; ++i) {
    const Ps until = Ps{i + 1} << shift_;
    const Slice sum{share(what.busy, begin, until, end), share(what.waiting, begin, until, end),
                    share(what.bytes, begin, until, end)};
    slices_[i] += {sum.busy - done.busy, sum.waiting - done.waiting, sum.bytes - done.bytes};
    done = sum;
  }
  slices_[last] += {what.busy - done.busy, what.waiting - done.waiting, what.bytes - done.bytes};
  move_to(last);
}

std::vector<Usage::Slice> Usage::slices(std::uint32_t shift, Ps end) const {
  const std::size_t count = end == 0 ? 1 : ((end - 1) >> shift) + 1;
  std::vector<Slice> result(count);
  for (std::size_t i = 0; i < slices_.size(); ++i) result[std::min(i >> (shift - shift_), count - 1)] += slices_[i];
  if (!slices_.empty()) result[std::min(slice_ >> (shift - shift_), count - 1)] += here_;
  const auto room = [&](std::size_t i) {
    const Ps from = Ps{i} << shift, to = std::min(from + (Ps{1} << shift), end);
    return (to - from) * units_;
  };
  const auto pass_on = [&](std::size_t i, std::size_t to) {
    const Ps most = room(i);
    if (result[i].busy <= most) return;
    result[to].busy += result[i].busy - most;
    result[i].busy = most;
  };
  for (std::size_t i = count; i-- > 1;) pass_on(i, i - 1);
  for (std::size_t i = 0; i + 1 < count; ++i) pass_on(i, i + 1);
  return result;
}

std::uint32_t UsageBook::shift(Ps end) const {
  std::uint32_t shift = Usage::kLeastShift;
  for (const Usage& usage : usages_) shift = std::max(shift, usage.shift());
  while (end > 0 && (end - 1) >> shift >= slices_) ++shift;
  return shift;
}

}  // namespace kernbench
