#include "models/pe/cpu/scoreboard.h"

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

void Scoreboard::wait_for_earlier(Hazard& op, const Range& range) {
  const Span span{range.begin, range.end()};
  for (std::size_t place = 0; place < spans_.size(); ++place) {
    if (!span.meets(spans_[place])) continue;
    Access& access = accesses_[place];
    const bool in_order = op.chain != 0 && access.owner->chain == op.chain;
    if (!in_order && (access.range.write || range.write) && overlap(access.range, range)) wait(access, op);
  }
}

void Scoreboard::add(Hazard& op, const Range& range) {
  std::uint32_t place = free_access_;
  if (place == kNobody) {
    place = static_cast<std::uint32_t>(accesses_.size());
    accesses_.emplace_back();
    spans_.emplace_back();
  } else {
    free_access_ = accesses_[place].next;
  }
  accesses_[place] = {range, &op, op.accesses};
  spans_[place] = {range.begin, range.end()};
  op.accesses = place;
  ++in_use_;
}

void Scoreboard::remove(std::uint32_t place) {
  accesses_[place].next = free_access_;
  spans_[place] = kNowhere;
  free_access_ = place;
  --in_use_;
}

void Scoreboard::enter(Hazard& op, const Range* ranges, std::size_t count) {
  op.pending = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!ranges[i].empty()) wait_for_earlier(op, ranges[i]);
  }
  for (std::size_t i = count; i-- > 0;) {
    if (!ranges[i].empty()) add(op, ranges[i]);
  }
}

void Scoreboard::release(Hazard& op, What what, std::vector<Hazard*>& ready) {
  for (std::uint32_t* link = &op.accesses; *link != kNobody;) {
    const std::uint32_t place = *link;
    Access& access = accesses_[place];
    if (what == What::reads && access.range.write) {
      link = &access.next;
      continue;
    }
    for (std::uint32_t node = access.first; node != kNobody; node = waiters_[node].next) {
      if (--waiters_[node].op->pending == 0) ready.push_back(waiters_[node].op);
      free_.push_back(node);
    }
    *link = access.next;
    remove(place);
  }
}

const Hazard* Scoreboard::before(const Hazard& op) const {
  for (std::size_t place = 0; place < accesses_.size(); ++place) {
    if (spans_[place].end == 0) continue;
    for (std::uint32_t node = accesses_[place].first; node != kNobody; node = waiters_[node].next) {
      if (waiters_[node].op == &op) return accesses_[place].owner;
    }
  }
  return nullptr;
}

void Scoreboard::clear() {
  for (std::size_t place = 0; place < accesses_.size(); ++place) {
    if (spans_[place].end != 0) accesses_[place].owner->accesses = kNobody;
  }
  accesses_.clear();
  spans_.clear();
  waiters_.clear();
  free_.clear();
  free_access_ = kNobody;
  in_use_ = 0;
}

}  // namespace kernbench::pe
