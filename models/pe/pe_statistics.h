#pragma once
#include <array>
#include <cstdint>

#include "models/pe/pe_config.h"
#include "tlm/kernel/dtype.h"
#include "tlm/sim/time.h"

namespace kernbench {

/// What a PE has done since the start of the run; plain counts, for reports.
struct PeStatistics {
  std::uint64_t macs_8bit = 0, macs_16bit = 0, macs_32bit = 0, macs_64bit = 0;  ///< of the GEMM array
  std::uint64_t math_lane_cycles = 0;                                           ///< elements times cycles of a lane
  std::uint64_t tcm_bytes = 0;  ///< through TCM's banks, reads and writes, engines included
  std::uint64_t dma_read_bytes = 0, dma_write_bytes = 0;
  std::uint64_t tlb_hits = 0, tlb_misses = 0;
  Ps dma_read_busy = 0, dma_write_busy = 0, gemm_busy = 0, math_busy = 0;  ///< some op was under way

  void count_macs(DType dtype, std::uint64_t macs) {
    const std::size_t size = size_of(dtype);
    (size == 1 ? macs_8bit : size == 2 ? macs_16bit : size == 4 ? macs_32bit : macs_64bit) += macs;
  }
};

}  // namespace kernbench
