#pragma once
#include <cstdint>

#include "models/io/pcie_ep.h"
#include "tlm/sim/time.h"

namespace kernbench {

/// One direction of the host link, as a resource: transfers follow each other in order of arrival.
///
/// n bytes are ceil(n / tlp_payload_bytes) TLPs, each with tlp_overhead_bytes beside its payload, at
/// `bytes_per_second`; the last byte arrives `latency` after it has left. Not modelled: credits and replay of the data
/// link layer.
class PcieDirection {
 public:
  explicit PcieDirection(const PcieConfig& config)
      : rate_(config.bytes_per_second),
        payload_(config.tlp_payload_bytes),
        overhead_(config.tlp_overhead_bytes),
        latency_(config.latency) {}

  struct Slot {
    Ps begin = 0;    ///< first byte leaves
    Ps end = 0;      ///< last byte has left
    Ps arrival = 0;  ///< last byte has arrived
  };
  /// Takes the link for `bytes`, from `now` on or when it is free. REQUIRES: calls in order of `now`.
  Slot take(Ps now, std::uint64_t bytes) {
    const Ps begin = now > free_ ? now : free_;
    free_ = begin + occupancy(bytes);
    return {begin, free_, free_ + latency_};
  }
  /// Time on the wire of `bytes` of payload; at least one TLP.
  Ps occupancy(std::uint64_t bytes) const {
    const std::uint64_t tlps = bytes == 0 ? 1 : (bytes + payload_ - 1) / payload_;
    return rate_.time_for(bytes + tlps * overhead_);
  }
  Ps latency() const { return latency_; }

 private:
  Rate rate_;
  std::uint64_t payload_, overhead_;
  Ps latency_;
  Ps free_ = 0;
};

}  // namespace kernbench
