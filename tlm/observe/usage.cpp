#include "tlm/observe/usage.h"

#include <algorithm>

namespace kernbench {

namespace {
/// `part` of `whole` for the time from `begin` to `at` of `begin` to `end`.
std::uint64_t share(std::uint64_t whole, Ps begin, Ps at, Ps end) {
  if (whole == 0) return 0;
  if (whole == end - begin) return at - begin;  // of one unit, the whole time
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(whole) * (at - begin) / (end - begin));
}
}  // namespace

void Usage::fold_to(std::uint32_t shift) {
  const std::uint32_t by = shift - shift_;
  shift_ = shift;
  if (slices_.empty()) return;
  const std::size_t count = ((slices_.size() - 1) >> by) + 1;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const std::size_t to = i >> by;
    if (i != to << by) {
      slices_[to] += slices_[i];
    } else if (to != i) {
      slices_[to] = slices_[i];
    }
  }
  slices_.resize(count);
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
  while (final >> common_ >= most_) ++common_;
  if (common_ > shift_) fold_to(common_);
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
    if (result[i].busy == 0) return;
    const Ps most = room(i);
    if (result[i].busy <= most) return;
    result[to].busy += result[i].busy - most;
    result[i].busy = most;
  };
  for (std::size_t i = count; i-- > 1;) pass_on(i, i - 1);
  for (std::size_t i = 0; i + 1 < count; ++i) pass_on(i, i + 1);
  return result;
}

}  // namespace kernbench
