#pragma once
#include <cstdint>

#include "tlm/sim/time.h"

namespace kernbench {

enum class GemmDataflow : std::uint8_t { output_stationary, weight_stationary };
enum class IpcqBuffer : std::uint8_t { tcm, sram, hbm };

struct GemmConfig {
  std::uint64_t clock_hz = 1'600'000'000;
  std::uint32_t rows = 32, cols = 32;  ///< multiply-accumulators of the array
  GemmDataflow dataflow = GemmDataflow::output_stationary;
  std::uint32_t f8_rate = 2, f16_rate = 1;              ///< MACs per cell and cycle
  std::uint32_t f32_cycles = 4;                         ///< cycles per MAC of a cell
  std::uint32_t queue_depth = 16;                       ///< ops
  std::uint32_t tile_m = 32, tile_n = 32, tile_k = 64;  ///< of composite_gemm
};

struct MathConfig {
  std::uint64_t clock_hz = 1'600'000'000;
  std::uint32_t lanes = 128;                ///< elements per cycle, simple ops, up to 32 bits each
  std::uint32_t transcendental_cycles = 4;  ///< cycles per element group for exp, log, sqrt, tanh, ...
  std::uint32_t pipeline_cycles = 8;        ///< fill
  std::uint32_t queue_depth = 16;
};

struct DmaConfig {
  std::uint32_t outstanding = 32;   ///< bursts in flight, each of read and write
  std::uint32_t burst_bytes = 256;  ///< at most kMaxPacketBytes; bursts never cross a multiple of it
  Ps setup = 0;                     ///< per op
  std::uint32_t queue_depth = 16;
};

struct TcmConfig {
  std::uint64_t bytes = 16u << 20;
  std::uint64_t bytes_per_second = 512'000'000'000;
  Ps latency = 0;
};

struct MmuConfig {
  std::uint64_t page_bytes = 2u << 20;
  std::uint32_t tlb_entries = 64;
  Ps walk = 0;  ///< on a TLB miss
};

struct IpcqConfig {
  std::uint32_t slots = 4;  ///< per direction
  std::uint32_t slot_bytes = 4096;
  IpcqBuffer buffer = IpcqBuffer::tcm;
  std::uint32_t credit_bytes = 16;
  std::uint32_t queue_depth = 16;  ///< ops per (direction, send or receive)
};

struct PeCpuConfig {
  Ps dispatch = 2'000;  ///< per op issued
  Ps command = 2'000;   ///< per command handled
  std::uint32_t kernel_contexts = 2;
};

/// One PE. Each value's source stands in the preset of topology.yaml.
struct PeConfig {
  PeCpuConfig cpu;
  DmaConfig dma;
  GemmConfig gemm;
  MathConfig math;
  TcmConfig tcm;
  MmuConfig mmu;
  IpcqConfig ipcq;
};

}  // namespace kernbench
