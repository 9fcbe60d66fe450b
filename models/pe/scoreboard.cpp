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

bool Scoreboard::conflict(const Access& access, const Range& range, std::uint64_t end) const {
  if (access.range.begin >= end || range.begin >= access.end) return false;
  return (access.range.write || range.write) && overlap(access.range, range);
}

void Scoreboard::wait(Access& access, Hazard& op) {
  if (access.last != kNobody && waiters_[access.last].op == &op) return;  // by another range of this op
  std::uint32_t node = static_cast<std::uint32_t>(waiters_.size());
  if (free_.empty()) {
    waiters_.push_back({&op, kNobody});
  } else {
    node = free_.back();
    free_.pop_back();
    waiters_[node] = {&op, kNobody};
  }
  (access.first == kNobody ? access.first : waiters_[access.last].next) = node;
  access.last = node;
  ++op.pending;
}

void Scoreboard::enter(Hazard& op, const Range* ranges, std::size_t count) {
  op.pending = 0;
  const std::size_t earlier = accesses_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Range& range = ranges[i];
    if (range.empty()) continue;
    const std::uint64_t end = range.end();
    for (std::size_t j = 0; j < earlier; ++j) {
      Access& access = accesses_[j];
      if (!conflict(access, range, end) || (op.chain != 0 && access.owner->chain == op.chain)) continue;
      wait(access, op);
    }
    accesses_.push_back({range, end, &op});
  }
}

void Scoreboard::release(Hazard& op, What what, std::vector<Hazard*>& ready) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < accesses_.size(); ++i) {
    const Access& access = accesses_[i];
    if (access.owner != &op || (what == What::reads && access.range.write)) {
      if (kept != i) accesses_[kept] = access;
      ++kept;
      continue;
    }
    for (std::uint32_t node = access.first; node != kNobody; node = waiters_[node].next) {
      if (--waiters_[node].op->pending == 0) ready.push_back(waiters_[node].op);
      free_.push_back(node);
    }
  }
  accesses_.resize(kept);
}

void Scoreboard::clear() {
  accesses_.clear();
  waiters_.clear();
  free_.clear();
}

}  // namespace kernbench::pe
