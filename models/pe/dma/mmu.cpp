#include "models/pe/dma/mmu.h"

#include <algorithm>

namespace kernbench::pe {

Ps Mmu::look_up(std::uint64_t page) {
  const auto found = std::find(tlb_.rbegin(), tlb_.rend(), page);
  if (found != tlb_.rend()) {
    std::rotate(std::prev(found.base()), found.base(), tlb_.end());
    return 0;
  }
  if (config_.tlb_entries > 0) {
    if (tlb_.size() >= config_.tlb_entries) tlb_.erase(tlb_.begin());
    tlb_.push_back(page);
  }
  return config_.walk;
}

void Mmu::invalidate(Va va, std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::uint64_t first = page(va), last = page(va + bytes - 1);
  tlb_.erase(std::remove_if(tlb_.begin(), tlb_.end(), [&](std::uint64_t p) { return p >= first && p <= last; }),
             tlb_.end());
}

}  // namespace kernbench::pe
