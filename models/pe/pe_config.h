#pragma once
#include <cstdint>

#include "tlm/base/time.h"

namespace kernbench {

enum class GemmDataflow : std::uint8_t { output_stationary, weight_stationary };
enum class IpcqBuffer : std::uint8_t { tcm, sram, hbm };

struct GemmConfig {
  std::uint64_t clock_hz = 1'600'000'000;
  std::uint32_t rows = 32, cols = 32;  ///< multiply-accumulators of the array
  GemmDataflow dataflow = GemmDataflow::output_stationary;
  std::uint32_t f8_rate = 2, f16_rate = 1;           ///< MACs per cell and cycle
  std::uint32_t f32_cycles = 4;                      ///< cycles per MAC of a cell
  std::uint32_t queue_depth = 16;                    ///< ops
  std::uint32_t tile_m = 0, tile_n = 0, tile_k = 0;  ///< of composite_gemm; 0: chosen (composite_plan.h)
};

struct MathConfig {
  std::uint64_t clock_hz = 1'600'000'000;
  std::uint32_t lanes = 128;                ///< elements per cycle, simple ops, up to 32 bits each
  std::uint32_t divide_cycles = 4;          ///< per group of elements: div
  std::uint32_t sqrt_cycles = 4;            ///< sqrt, rsqrt
  std::uint32_t transcendental_cycles = 4;  ///< exp, log
  std::uint32_t activation_cycles = 4;      ///< tanh, sigmoid, gelu, silu
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
  std::uint64_t bytes_per_second = 512'000'000'000;  ///< of the DMA and IPCQ port, reads and writes each
  Ps latency = 0;
  std::uint64_t clock_hz = 1'600'000'000;
  std::uint32_t banks = 32;        ///< neighbouring words lie in neighbouring banks
  std::uint32_t bank_bytes = 64;   ///< word: what a bank serves per cycle, a read or a write
  std::uint32_t queue_depth = 16;  ///< accesses from outside, waiting
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

/// Energy of a PE's work: attojoules, microwatts.
struct PeEnergyConfig {
  std::uint64_t mac_8bit_aj = 190'000, mac_16bit_aj = 375'000, mac_32bit_aj = 1'150'000, mac_64bit_aj = 4'600'000;
  std::uint64_t math_aj = 1'150'000;          ///< per element and cycle of a lane
  std::uint64_t tcm_aj_per_byte = 3'125'000;  ///< read or written
  std::uint64_t dma_aj_per_byte = 200'000;
  std::uint64_t static_uw = 60'000;  ///< whole PE
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
  PeEnergyConfig energy;
};

}  // namespace kernbench
