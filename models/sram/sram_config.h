#pragma once
#include <cstdint>

#include "tlm/sim/time.h"

namespace kernbench {

/// A cube's shared SRAM. Source of the figures: topology presets.
struct SramConfig {
  std::uint64_t bytes = 32u << 20;
  std::uint32_t banks = 16;
  std::uint32_t bank_interleave_bytes = 256;
  std::uint64_t bytes_per_second = 512'000'000'000;  ///< all banks together
  Ps latency = 2'000;                                ///< access time of a bank
  std::uint32_t queue_depth = 32;                    ///< requests
};

}  // namespace kernbench
