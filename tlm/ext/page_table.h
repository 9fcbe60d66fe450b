#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "tlm/ext/message.h"

namespace kernbench {

/// Virtual-to-physical mappings of one SIP: byte-exact ranges, shared by its PEs (each keeps its own TLB state).
class PageTable {
 public:
  struct Translation {
    PhysicalAddress target;   ///< of the first byte
    std::uint64_t bytes = 0;  ///< how many from there are contiguous
  };
  /// Replaces what was mapped there: for the viewers that the entry names, or else for everybody.
  void map(const MapEntry& entry);
  void unmap(Va va, std::uint64_t bytes);  ///< for every viewer; bytes that are not mapped are left alone
  /// As `viewer` sees it; nothing if unmapped.
  std::optional<Translation> translate(Va va, PeCoord viewer) const;

 private:
  struct Range {
    std::uint64_t bytes = 0;
    std::optional<PhysicalAddress> common;   ///< every PE of the SIP
    std::map<PeCoord, PhysicalAddress> own;  ///< those with a copy of their own
  };
  static Range tail_of(const Range& range, std::uint64_t from);
  void split_at(Va va);  // so that no range has `va` in its inside

  std::map<Va, Range> ranges_;  // by first address; never overlapping
};

}  // namespace kernbench
