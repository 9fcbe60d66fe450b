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

  /// Rate that payload and headers see, rounded down to a byte per second.
  Rate rate() const {
    return Rate(
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes_per_second) * payload_parts / raw_parts));
  }
  /// Packets of 256 B that one virtual network must have under way to fill the wire: its rate times the round trip of
  /// a credit, which is twice the latency and `turnaround` in the receiver, and one packet in serialisation.
  std::uint32_t packets_to_cover(Ps turnaround = 5000) const {
    const Ps one = rate().time_for(256 + header_bytes);
    return static_cast<std::uint32_t>((2 * latency + turnaround + one - 1) / one) + 1;
  }
};

}  // namespace kernbench
