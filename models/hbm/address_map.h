#pragma once
#include <cstdint>
#include <vector>

#include "models/hbm/channel_gaps.h"

namespace kernbench {

/// Which burst of a slice lies where. Without `Pc` in HbmConfig::mapping a slice changes its pseudo channel every
/// `interleave_bytes` and the mapping cuts the address within the pseudo channel; with `Pc` the mapping alone decides.
class HbmAddressMap {
 public:
  /// Throws std::invalid_argument on a mapping that does not name each of Ro, Si, Ba, Bg and Co once, and Pc at most
  /// once.
  HbmAddressMap(const HbmConfig& config, unsigned pseudo_channels_per_slice);

  /// Bytes that lie in one pseudo channel one after the other.
  std::uint64_t interleave() const { return interleave_; }
  /// First byte behind those that lie with `offset`.
  std::uint64_t interleave_end(std::uint64_t offset) const {
    const std::uint64_t mask = interleave_ - 1;
    return (interleave_ & mask) == 0 ? (offset | mask) + 1 : (offset / interleave_ + 1) * interleave_;
  }
  /// Bursts from one column of a row to the next, within a pseudo channel; a power of two or not.
  std::uint64_t column_stride() const { return column_stride_; }
  std::uint64_t columns() const { return columns_; }
  /// Place of the burst that holds `offset`. Its pseudo channel is numbered within the slice, from 0.
  BurstPlace place(std::uint64_t offset) const {
    BurstPlace place;
    std::uint64_t rest = offset >> burst_shift_;
    if (cut_ != 0) {
      place.pseudo_channel = static_cast<std::uint32_t>(rest / cut_ % pseudo_channels_);
      rest = rest / cut_ / pseudo_channels_ * cut_ + rest % cut_;
    }
    for (const Field& field : fields_) {
      std::uint64_t value = rest;
      if (field.mask != kNotPowerOfTwo) {
        value &= field.mask;
        rest >>= field.shift;
      } else if (field.size != 0) {
        value %= field.size;
        rest /= field.size;
      }
      place.*field.member += static_cast<std::uint32_t>(value) * field.weight;
    }
    return place;
  }
  /// First byte of the burst at `place`: the inverse of place().
  std::uint64_t offset(const BurstPlace& place) const;

 private:
  static constexpr std::uint64_t kNotPowerOfTwo = ~std::uint64_t{0};
  struct Field {
    std::uint32_t BurstPlace::*member = nullptr;
    std::uint64_t size = 0;               // 0: all that is left
    std::uint64_t mask = kNotPowerOfTwo;  // size - 1
    unsigned shift = 0;
    std::uint32_t weight = 1;  // the column may be cut in two by the interleave
  };
  void add(std::uint32_t BurstPlace::*member, std::uint64_t size);
  void interleave_below(std::uint64_t bursts, std::uint64_t pseudo_channels);

  std::uint64_t interleave_ = 0, column_stride_ = 1, columns_;
  unsigned burst_shift_ = 0;
  std::uint64_t cut_ = 0, pseudo_channels_ = 1;  // interleave in bursts, where no field of its own says it
  std::vector<Field> fields_;                    // least significant first
};

}  // namespace kernbench
