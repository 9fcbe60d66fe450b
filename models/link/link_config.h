#pragma once
#include <cstdint>

#include "tlm/sim/time.h"

namespace kernbench {

/// One packet hop over a wire: a UCIe connection or an inter-SIP link, one direction.
///
/// A packet of n bytes holds the wire for (n + header) / (rate x efficiency), and arrives `latency` after it started.
struct LinkConfig {
  std::uint64_t bytes_per_second = 128'000'000'000;  ///< raw rate of one direction
  std::uint64_t payload_parts = 1, raw_parts = 1;    ///< efficiency as an exact ratio, e.g. 236/256 for a UCIe flit
  std::uint32_t header_bytes = 0;                    ///< per packet
  Ps latency = 0;                                    ///< first bit in to first bit out, both sides together
  std::uint32_t buffer_packets = 2;                  ///< of the receiver, per virtual network; at least 2

  /// Rate that payload and headers see.
  Rate rate() const { return Rate(bytes_per_second / raw_parts * payload_parts); }
};

}  // namespace kernbench
