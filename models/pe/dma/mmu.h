#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "models/pe/pe_config.h"
#include "tlm/ext/page_table.h"

namespace kernbench::pe {

/// A PE's view of the page table, and its TLB: `tlb_entries` pages, least recently used out first.
///
/// Mappings are byte-exact; the page size only decides what one TLB entry reaches. A miss costs `walk`, during which
/// the DMA engine that asked stands still; the other engines go on.
class Mmu {
 public:
  Mmu(const MmuConfig& config, const PageTable& pages, PeCoord viewer)
      : config_(config), pages_(pages), viewer_(viewer) {}

  /// Page that holds `va`.
  std::uint64_t page(Va va) const { return va / config_.page_bytes; }
  /// Time until `page` is in the TLB: 0 on a hit.
  Ps look_up(std::uint64_t page);
  std::optional<PageTable::Translation> translate(Va va) const { return pages_.translate(va, viewer_); }
  /// Drops the entries of [va, va + bytes): its mapping has changed.
  void invalidate(Va va, std::uint64_t bytes);

 private:
  MmuConfig config_;
  const PageTable& pages_;
  PeCoord viewer_;
  std::vector<std::uint64_t> tlb_;  // page numbers, most recently used last
};

}  // namespace kernbench::pe
