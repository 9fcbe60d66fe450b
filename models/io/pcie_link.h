#pragma once
#include <algorithm>
#include <cstdint>

#include "models/io/pcie_ep.h"
#include "tlm/base/time.h"

namespace kernbench {

/// One direction of the host link, as a resource: transfers follow each other in order of arrival.
///
/// n bytes are ceil(n / tlp_payload_bytes) TLPs, each with tlp_overhead_bytes beside its payload, at
/// `bytes_per_second`; the last byte arrives `latency` after it has left. The receiver has room for `credits` TLPs, and
/// takes each at once; the credit is back a round trip after the TLP began: `credits` TLPs go in a row, then one per
/// round trip / credits if that is slower than the link (the generic cell rate algorithm, ITU-T I.371: credits come
/// back evenly). Not modelled: separate credits for headers and data and per class, acknowledgements on the wire,
/// replay.
class PcieDirection {
 public:
  explicit PcieDirection(const PcieConfig& config)
      : rate_(config.bytes_per_second),
        payload_(config.tlp_payload_bytes),
        overhead_(config.tlp_overhead_bytes),
        latency_(config.latency),
        credits_(config.credits),
        round_trip_(2 * config.latency + rate_.time_for(payload_ + overhead_)),
        energy_per_bit_aj_(config.energy_per_bit_aj) {}

  struct Slot {
    Ps begin = 0;    ///< first byte leaves
    Ps end = 0;      ///< last byte has left
    Ps arrival = 0;  ///< last byte has arrived
    Ps paced = 0;    ///< from when on credits come back one by one; internal
    std::uint32_t tlps = 0;
  };
  /// Takes the link for `bytes`, from `now` on or when it is free. REQUIRES: calls in order of `now`.
  Slot take(Ps now, std::uint64_t bytes) {
    Slot slot;
    slot.begin = now > free_ ? now : free_;
    slot.paced = slot.begin > paced_ ? slot.begin : paced_;
    slot.begin = std::max(slot.begin, credit(slot, 0));
    free_ = slot.end = sent(slot, bytes);
    slot.arrival = free_ + latency_;
    const std::uint64_t tlps = this->tlps(bytes);
    slot.tlps = static_cast<std::uint32_t>(tlps);
    paced_ = slot.paced + tlps * round_trip_ / credits_;
    stats_.tlps += tlps;
    stats_.bytes += bytes;
    stats_.raw_bytes += bytes + tlps * overhead_;
    stats_.busy += slot.end - slot.begin;
    return slot;
  }
  /// When the first `bytes` of what has taken `slot` have left.
  Ps sent(const Slot& slot, std::uint64_t bytes) const {
    const std::uint64_t last = tlps(bytes) - 1;  // its last TLP
    const Ps own = occupancy(bytes - (bytes == 0 ? 0 : last * payload_));
    return std::max(slot.begin + occupancy(bytes), credit(slot, last) + own);
  }
  /// Time on the wire of `bytes` of payload; at least one TLP.
  Ps occupancy(std::uint64_t bytes) const { return rate_.time_for(bytes + tlps(bytes) * overhead_); }
  Ps latency() const { return latency_; }
  const PcieStats& stats() const { return stats_; }
  std::uint64_t energy_aj() const { return stats_.raw_bytes * 8 * energy_per_bit_aj_; }

  /// Payload rate of a long transfer.
  Rate payload_rate() const {
    const Ps tlp = rate_.time_for(payload_ + overhead_), each = std::max(tlp, round_trip_ / credits_);
    return Rate(payload_ * kPsPerSecond / each);
  }

 private:
  std::uint64_t tlps(std::uint64_t bytes) const { return bytes == 0 ? 1 : (bytes + payload_ - 1) / payload_; }
  /// From when on there is credit for TLP `n` of a slot.
  Ps credit(const Slot& slot, std::uint64_t n) const {
    const Ps burst = round_trip_ - round_trip_ / credits_;
    const Ps at = slot.paced + n * round_trip_ / credits_;
    return at > burst ? at - burst : 0;
  }

  Rate rate_;
  std::uint64_t payload_, overhead_;
  Ps latency_;
  std::uint64_t credits_;
  Ps round_trip_;  // of a TLP and its credit
  std::uint64_t energy_per_bit_aj_;
  Ps free_ = 0, paced_ = 0;
  PcieStats stats_;
};

}  // namespace kernbench
