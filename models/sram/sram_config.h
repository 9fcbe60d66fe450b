#pragma once
#include <cstdint>

#include "tlm/base/time.h"

namespace kernbench {

/// A cube's shared SRAM. Source of the figures: topology presets.
struct SramConfig {
  std::uint64_t bytes = 32u << 20;
  std::uint32_t banks = 16;
  std::uint32_t bank_interleave_bytes = 256;
  std::uint64_t bytes_per_second = 512'000'000'000;  ///< all banks together
  Ps latency = 2'000;                                ///< access time of a bank
  std::uint32_t queue_depth = 32;                    ///< requests
  std::uint64_t energy_per_byte_aj = 3'125'000;      ///< attojoule, read or written
  std::uint64_t static_uw = 100'000;                 ///< microwatt of the whole SRAM
};

}  // namespace kernbench
