#include "tlm/ext/page_table.h"

#include <algorithm>

namespace kernbench {

PageTable::Range PageTable::tail_of(const Range& range, std::uint64_t from) {
  Range tail{range.bytes - from, range.common, range.own};
  if (tail.common) tail.common = *tail.common + from;
  for (auto& copy : tail.own) copy.second = copy.second + from;
  return tail;
}

void PageTable::split_at(Va va) {
  auto range = ranges_.upper_bound(va);
  if (range == ranges_.begin()) return;
  --range;
  const std::uint64_t before = va - range->first;
  if (before == 0 || before >= range->second.bytes) return;
  ranges_.emplace(va, tail_of(range->second, before));
  range->second.bytes = before;
}

void PageTable::map(const MapEntry& entry) {
  if (entry.bytes == 0) return;
  const Va end = entry.va + entry.bytes;
  split_at(entry.va);
  split_at(end);
  // Whatever was mapped there is split at both ends now; what was not is filled with empty ranges.
  for (Va at = entry.va; at < end;) {
    auto range = ranges_.lower_bound(at);
    if (range == ranges_.end() || range->first != at) {
      const Va next = range == ranges_.end() ? end : std::min(end, range->first);
      range = ranges_.emplace(at, Range{next - at, std::nullopt, {}}).first;
    }
    const PhysicalAddress target = entry.target + (at - entry.va);
    if (entry.viewers.empty()) {
      range->second.common = target;
      range->second.own.clear();
    }
    for (const PeCoord viewer : entry.viewers) range->second.own[viewer] = target;
    at += range->second.bytes;
  }
}

void PageTable::unmap(Va va, std::uint64_t bytes) {
  if (bytes == 0) return;
  split_at(va);
  split_at(va + bytes);
  ranges_.erase(ranges_.lower_bound(va), ranges_.lower_bound(va + bytes));
}

std::optional<PageTable::Translation> PageTable::translate(Va va, PeCoord viewer) const {
  auto range = ranges_.upper_bound(va);
  if (range == ranges_.begin()) return std::nullopt;
  --range;
  const std::uint64_t offset = va - range->first;
  if (offset >= range->second.bytes) return std::nullopt;
  const auto own = range->second.own.find(viewer);
  const auto& target = own != range->second.own.end() ? std::optional(own->second) : range->second.common;
  if (!target) return std::nullopt;
  return Translation{*target + offset, range->second.bytes - offset};
}

}  // namespace kernbench
