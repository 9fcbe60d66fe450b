#include "models/pe/scoreboard.h"

#include <algorithm>

namespace kernbench::pe {

Range Range::strided(Space space, std::uint64_t begin, std::uint64_t row_bytes, std::uint64_t stride,
                     std::uint64_t rows, bool write) {
  if (rows == 0 || row_bytes == 0) return of(space, begin, 0, write);
  if (rows == 1 || stride <= row_bytes) return of(space, begin, (rows - 1) * stride + row_bytes, write);
  return {space, write, begin, row_bytes, stride, rows};
}

namespace {
/// Whether rows of `b` that start `shift` rows of `a` further on meet any row of `a`.
bool rows_meet(std::uint64_t shift, std::uint64_t rows_a) { return shift < rows_a; }

/// REQUIRES: one stride, wider than both rows; a.begin <= b.begin.
bool overlap_strided(const Range& a, const Range& b) {
  const std::uint64_t rows_ahead = (b.begin - a.begin) / a.stride, offset = (b.begin - a.begin) % a.stride;
  // Row 0 of b begins in row `rows_ahead` of a, or in the gap behind it, and may reach into the next one.
  if (offset < a.row_bytes && rows_meet(rows_ahead, a.rows)) return true;
  return offset + b.row_bytes > a.stride && rows_meet(rows_ahead + 1, a.rows);
}
}  // namespace

bool overlap(const Range& a, const Range& b) {
  if (a.space != b.space || a.empty() || b.empty() || a.begin >= b.end() || b.begin >= a.end()) return false;
  if (a.rows == 1 && b.rows == 1) return true;
  if (a.rows > 1 && b.rows > 1) {
    if (a.stride != b.stride) return true;
    return a.begin <= b.begin ? overlap_strided(a, b) : overlap_strided(b, a);
  }
  // An interval against rows: it meets one unless it lies in a gap.
  const Range& rows = a.rows > 1 ? a : b;
  const Range& interval = a.rows > 1 ? b : a;
  if (interval.begin <= rows.begin) return true;  // they overlap as intervals
  const std::uint64_t offset = (interval.begin - rows.begin) % rows.stride;
  return offset < rows.row_bytes ||
         (offset + interval.row_bytes > rows.stride && (interval.begin - rows.begin) / rows.stride + 1 < rows.rows);
}

void Scoreboard::enter(Hazard& op, const Range* ranges, std::size_t count) {
  op.pending = 0;
  const std::size_t earlier = accesses_.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (ranges[i].empty()) continue;
    for (std::size_t j = 0; j < earlier; ++j) {
      Access& access = accesses_[j];
      if (!(access.range.write || ranges[i].write) || !overlap(access.range, ranges[i])) continue;
      if (op.chain != 0 && access.owner->chain == op.chain) continue;
      if (!access.waiters.empty() && access.waiters.back() == &op) continue;  // by another range of this op
      access.waiters.push_back(&op);
      ++op.pending;
    }
    accesses_.push_back({ranges[i], &op, {}});
  }
}

void Scoreboard::release(Hazard& op, What what, std::vector<Hazard*>& ready) {
  const auto ends = [&](const Access& access) {
    return access.owner == &op && (what == What::all || !access.range.write);
  };
  for (const Access& access : accesses_) {
    if (!ends(access)) continue;
    for (Hazard* waiter : access.waiters) {
      if (--waiter->pending == 0) ready.push_back(waiter);
    }
  }
  accesses_.erase(std::remove_if(accesses_.begin(), accesses_.end(), ends), accesses_.end());
}

}  // namespace kernbench::pe
