#include "topology/spec/schema_sections.h"

namespace kernbench::topology {

namespace {

Section gemm() {
  const auto tile = SectionOf<GemmConfig>()
                        .integer("m", &GemmConfig::tile_m, {0, 4'096}, "Rows of a tile; 0: chosen by array and TCM.")
                        .integer("n", &GemmConfig::tile_n, {0, 4'096}, "Columns of a tile; 0: chosen.")
                        .integer("k", &GemmConfig::tile_k, {0, 65'536}, "Depth of a tile; 0: chosen.");
  return SectionOf<GemmConfig>()
      .quantity("clock", &GemmConfig::clock_hz, Dimension::frequency, kAnyClock, "Clock of the array.", kPaces)
      .integer("rows", &GemmConfig::rows, {1, 1'024}, "Rows of multiply-accumulators.", kMore)
      .integer("cols", &GemmConfig::cols, {1, 1'024}, "Columns of multiply-accumulators.", kMore)
      .enumeration("dataflow", &GemmConfig::dataflow, {"output_stationary", "weight_stationary"},
                   "What stays in the array.")
      .integer("f8_rate", &GemmConfig::f8_rate, {1, 64}, "8-bit MACs per cell and cycle.", kMore)
      .integer("f16_rate", &GemmConfig::f16_rate, {1, 64}, "16-bit MACs per cell and cycle.", kMore)
      .integer("f32_cycles", &GemmConfig::f32_cycles, {1, 64}, "Cycles per 32-bit MAC of a cell.", kLess)
      .integer("queue_depth", &GemmConfig::queue_depth, kQueue, "Ops waiting.", kMore)
      .group("tile", tile, "Tile of composite_gemm.");
}

}  // namespace

Section pe() {
  const Section cpu =
      SectionOf<PeCpuConfig>()
          .time("dispatch", &PeCpuConfig::dispatch, "Per op issued.")
          .time("command", &PeCpuConfig::command, "Handling of one command.")
          .integer("kernel_contexts", &PeCpuConfig::kernel_contexts, {1, 256},
                   "Launches that a PE runs at once, one a stream; the next of a stream is armed beside it.", kMore);
  const Section dma =
      SectionOf<DmaConfig>()
          .integer("outstanding", &DmaConfig::outstanding, {1, 4'096}, "Bursts in flight, each of read and write.",
                   kMore)
          .quantity("burst_size", &DmaConfig::burst_bytes, Dimension::bytes, {32, kMaxPacketBytes, true},
                    "Largest burst; bursts never cross a multiple of it.", kMore)
          .time("setup", &DmaConfig::setup, "Per op.")
          .integer("queue_depth", &DmaConfig::queue_depth, kQueue, "Ops waiting.", kMore);
  const Section math =
      SectionOf<MathConfig>()
          .quantity("clock", &MathConfig::clock_hz, Dimension::frequency, kAnyClock, "Clock of the lanes.", kPaces)
          .integer("lanes", &MathConfig::lanes, {1, 65'536}, "Elements per cycle in simple ops, up to 32 bits each.",
                   kMore)
          .integer("divide_cycles", &MathConfig::divide_cycles, {1, 1'000}, "Cycles per group of elements for div.",
                   kLess)
          .integer("sqrt_cycles", &MathConfig::sqrt_cycles, {1, 1'000}, "The same for sqrt and rsqrt.", kLess)
          .integer("transcendental_cycles", &MathConfig::transcendental_cycles, {1, 1'000}, "The same for exp and log.",
                   kLess)
          .integer("activation_cycles", &MathConfig::activation_cycles, {1, 1'000},
                   "The same for tanh, sigmoid, gelu and silu.", kLess)
          .integer("pipeline_cycles", &MathConfig::pipeline_cycles, kCycles, "Fill of the pipeline.", kLess)
          .integer("queue_depth", &MathConfig::queue_depth, kQueue, "Ops waiting.", kMore);
  const Section tcm =
      SectionOf<TcmConfig>()
          .quantity("size", &TcmConfig::bytes, Dimension::bytes, {64 * kKiB, kUnitBytes}, "Capacity.", kMore | kUniform)
          .quantity("bandwidth", &TcmConfig::bytes_per_second, Dimension::bandwidth, kAnyBandwidth,
                    "Of the port of DMA and IPCQ, reads and writes each.")
          .time("latency", &TcmConfig::latency, "Access time.")
          .quantity("clock", &TcmConfig::clock_hz, Dimension::frequency, kAnyClock, "Clock of the banks.", kPaces)
          .integer("banks", &TcmConfig::banks, {1, 1'024}, "Banks; neighbouring words lie in neighbouring ones.", kMore)
          .quantity("bank_width", &TcmConfig::bank_bytes, Dimension::bytes, {4, 1'024, true},
                    "What a bank reads or writes per cycle.", kMore)
          .integer("queue_depth", &TcmConfig::queue_depth, kQueue, "Accesses from outside in service.", kMore);
  const Section energy =
      SectionOf<PeEnergyConfig>()
          .quantity("mac_8bit", &PeEnergyConfig::mac_8bit_aj, Dimension::energy, kAnyEnergy, "Per 8-bit MAC.")
          .quantity("mac_16bit", &PeEnergyConfig::mac_16bit_aj, Dimension::energy, kAnyEnergy, "Per 16-bit MAC.")
          .quantity("mac_32bit", &PeEnergyConfig::mac_32bit_aj, Dimension::energy, kAnyEnergy, "Per 32-bit MAC.")
          .quantity("mac_64bit", &PeEnergyConfig::mac_64bit_aj, Dimension::energy, kAnyEnergy, "Per 64-bit MAC.")
          .quantity("math", &PeEnergyConfig::math_aj, Dimension::energy, kAnyEnergy, "Per element and cycle of a lane.")
          .quantity("tcm_byte", &PeEnergyConfig::tcm_aj_per_byte, Dimension::energy, kAnyEnergy,
                    "Per byte read from or written to TCM.")
          .quantity("dma_byte", &PeEnergyConfig::dma_aj_per_byte, Dimension::energy, kAnyEnergy,
                    "Per byte that the DMA engine moves.")
          .quantity("static", &PeEnergyConfig::static_uw, Dimension::power, kAnyPower, "Of the whole PE.");
  const Section mmu = SectionOf<MmuConfig>()
                          .quantity("page_size", &MmuConfig::page_bytes, Dimension::bytes, {4 * kKiB, kGiB, true},
                                    "Reach of one TLB entry.", kMore)
                          .integer("tlb_entries", &MmuConfig::tlb_entries, {1, 65'536}, "TLB entries.", kMore)
                          .time("walk", &MmuConfig::walk, "On a TLB miss.");
  const Section ipcq =
      SectionOf<IpcqConfig>()
          .integer("slots", &IpcqConfig::slots, {1, 4'096}, "Slots per direction.", kMore | kUniform)
          .quantity("slot_size", &IpcqConfig::slot_bytes, Dimension::bytes, {64, 16 * kMiB, true}, "Bytes per slot.",
                    kMore | kUniform)
          .enumeration("buffer", &IpcqConfig::buffer, {"tcm", "sram", "hbm"}, "Memory that holds the slots.", kUniform)
          .quantity("credit_size", &IpcqConfig::credit_bytes, Dimension::bytes, {1, kMaxPacketBytes},
                    "Bytes of a credit message.", kLess)
          .integer("queue_depth", &IpcqConfig::queue_depth, kQueue, "Ops waiting per direction, send or receive.",
                   kMore);
  return SectionOf<PeConfig>()
      .section("cpu", &PeConfig::cpu, cpu, "PE_CPU.")
      .section("dma", &PeConfig::dma, dma, "DMA engine.")
      .section("gemm", &PeConfig::gemm, gemm(), "GEMM engine.")
      .section("math", &PeConfig::math, math, "Vector engine.")
      .section("tcm", &PeConfig::tcm, tcm, "Scratchpad.")
      .section("mmu", &PeConfig::mmu, mmu, "MMU.")
      .section("ipcq", &PeConfig::ipcq, ipcq, "Inter-PE communication queues.")
      .section("energy", &PeConfig::energy, energy, "Energy of its work.");
}

}  // namespace kernbench::topology
