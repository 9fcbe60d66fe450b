#pragma once
#include <cstdint>

#include "tlm/base/time.h"
#include "tlm/ext/packet.h"

namespace kernbench {

/// One packet hop over a wire: a UCIe connection or an inter-SIP link, one direction. models/link/wire.h has the rule.
struct LinkConfig {
  std::uint64_t bytes_per_second = 128'000'000'000;  ///< raw rate of one direction
  std::uint64_t payload_parts = 1, raw_parts = 1;    ///< efficiency as an exact ratio, e.g. 236/256 for a UCIe flit
  std::uint32_t flit_bytes = 0;      ///< raw bytes of a link layer flit; 0: no flits, no check, no replay
  std::uint32_t check_bytes = 0;     ///< raw bytes under one CRC; divides flit_bytes
  std::uint32_t header_bytes = 0;    ///< per packet
  Ps latency = 0;                    ///< bit in to bit out, both sides together
  std::uint32_t buffer_packets = 2;  ///< of the receiver, per virtual network; at least 2; a train takes several
  /// Of the sender, per virtual network: what waits for the wire, shared evenly by the channels from the network. A
  /// channel holds two of the longest packets at least.
  std::uint32_t send_packets = 0;
  std::uint64_t bit_errors = 0;         ///< per 10^18 bits, independent of each other
  std::uint64_t error_seed = 1;         ///< of the sequence of errors
  std::uint64_t energy_per_bit_aj = 0;  ///< attojoule per raw bit, both sides together

  /// Rate that payload and headers see, rounded down to a byte per second.
  Rate rate() const {
    return Rate(
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes_per_second) * payload_parts / raw_parts));
  }
  /// Rate of payload in packets of `bytes`, back to back, without errors: what bounds call the capacity of a link.
  Rate payload_rate(std::uint32_t bytes = kMaxPacketBytes) const {
    return Rate(static_cast<std::uint64_t>(static_cast<unsigned __int128>(rate().bytes_per_second()) * bytes /
                                           (bytes + header_bytes)));
  }
  /// Time of a flit on the wire; 0 without flits.
  Ps flit_time() const { return Rate(bytes_per_second).time_for(flit_bytes); }
  /// Packets of 256 B that one virtual network must have under way to fill the wire: its rate times the round trip of
  /// a credit, which is twice the latency, a flit to be checked and `turnaround` in the receiver, and one packet in
  /// serialisation.
  std::uint32_t packets_to_cover(Ps turnaround = 5000) const {
    const Ps one = rate().time_for(kMaxPacketBytes + header_bytes);
    return static_cast<std::uint32_t>((2 * latency + flit_time() + turnaround + one - 1) / one) + 1;
  }
};

}  // namespace kernbench
