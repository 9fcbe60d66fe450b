#pragma once
#include <cstdint>
#include <optional>

#include "models/pe/dma/mmu.h"
#include "models/pe/op.h"

namespace kernbench::pe {

/// One request of the DMA engine.
struct Burst {
  PhysicalAddress at;
  std::uint32_t tcm = 0;  ///< offset of its data in TCM
  std::uint32_t bytes = 0;
  Ps walk = 0;          ///< time of a TLB miss before it
  bool waited = false;  ///< for places among those that may be outstanding
};

/// Cuts a load, store or gather into bursts: row by row (contiguous rows are one), each at most `burst_bytes` and never
/// across a multiple of it, nor across the end of a mapping. The TLB is asked whenever a burst begins on another page.
class BurstPlan {
 public:
  BurstPlan(const Op& op, std::uint32_t burst_bytes);

  enum class Next { burst, end, fault };
  /// On fault, `fault_va()` is not mapped.
  Next next(Mmu& mmu, Burst& burst);
  Va fault_va() const { return va_; }

 private:
  bool next_row();

  const Op& op_;
  std::uint32_t burst_bytes_;
  std::uint64_t row_bytes_, rows_;
  std::uint64_t row_ = 0;   // that comes next
  Va va_ = 0;               // next byte of the present row
  std::uint64_t left_ = 0;  // bytes of the present row from there on
  std::uint32_t tcm_;
  std::optional<std::uint64_t> page_;
  PageTable::Translation mapped_;  // from va_ on; no bytes: to be looked up
};

}  // namespace kernbench::pe
