#pragma once
#include <cstdint>

#include "models/pe/pe_config.h"
#include "tlm/base/time.h"
#include "tlm/kernel/dtype.h"

namespace kernbench {

class Usage;

/// What a PE has done since the start of the run; plain counts, for reports.
struct PeStatistics {
  std::uint64_t macs_8bit = 0, macs_16bit = 0, macs_32bit = 0, macs_64bit = 0;  ///< of the GEMM array
  std::uint64_t math_lane_cycles = 0;                                           ///< elements times cycles of a lane
  std::uint64_t tcm_bytes = 0;  ///< through TCM's banks, reads and writes, engines included
  std::uint64_t tcm_held = 0;   ///< most bytes of tiles that a kernel held at once in its share of TCM
  std::uint64_t dma_read_bytes = 0, dma_write_bytes = 0;
  std::uint64_t dma_reads = 0, dma_writes = 0, gemm_ops = 0, math_ops = 0;  ///< completed
  std::uint64_t dispatches = 0, commands = 0;                               ///< of PE_CPU
  Ps cpu_busy = 0;
  Ps dma_read_busy = 0, dma_write_busy = 0, gemm_busy = 0, math_busy = 0;  ///< some op was under way

  void count_macs(DType dtype, std::uint64_t macs) {
    const std::size_t size = size_of(dtype);
    (size == 1 ? macs_8bit : size == 2 ? macs_16bit : size == 4 ? macs_32bit : macs_64bit) += macs;
  }
};

/// What one port of a PE's TCM has passed.
struct TcmTraffic {
  std::uint64_t accesses = 0, bytes = 0;
  Ps busy = 0;
  Usage* usage = nullptr;  ///< over time; null: nobody wants it
};
enum class TcmWait : unsigned { port, bank };

/// Reasons why an engine's op, PE_CPU and a queue pair stand still (Usage::wait).
enum class EngineWait : unsigned { operands, engine };
enum class CpuWait : unsigned { full, op, fence };
enum class QueueWait : unsigned { credit, data };

/// Where the parts of a PE book what they do over time; null: nobody wants it.
struct PeUsages {
  Usage *cpu = nullptr, *dma_r = nullptr, *dma_w = nullptr, *gemm = nullptr, *math = nullptr;
};

}  // namespace kernbench
