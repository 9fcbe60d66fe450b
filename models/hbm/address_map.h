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
    const std::uint64_t burst = offset >> burst_shift_;
    if (!powers_of_two_) return place_by_division(burst);
    BurstPlace place;
    place.pseudo_channel = bits_.pseudo_channel.of(burst);
    place.stack_id = bits_.stack_id.of(burst);
    place.bank_group = bits_.bank_group.of(burst);
    place.bank = bits_.bank.of(burst);
    place.row = bits_.row.of(burst);
    place.column = bits_.column.of(burst);
    place.*upper_member_ |= upper_.of(burst) << upper_left_;
    return place;
  }
  /// First byte of the burst at `place`: the inverse of place().
  std::uint64_t offset(const BurstPlace& place) const;

 private:
  /// One of what follows one another in the number of a burst, least significant first.
  struct Field {
    std::uint32_t BurstPlace::*member = nullptr;
    std::uint64_t size = 0;    // 0: all that is left
    std::uint32_t weight = 1;  // the column may be cut in two by the interleave
  };
  /// Where a field lies whose size is a power of two.
  struct Bits {
    unsigned shift = 0;
    std::uint32_t mask = 0;
    std::uint32_t of(std::uint64_t burst) const { return static_cast<std::uint32_t>(burst >> shift) & mask; }
  };
  struct PlaceBits {
    Bits pseudo_channel, stack_id, bank_group, bank, row, column;
    Bits& at(std::uint32_t BurstPlace::*member);
  };
  BurstPlace place_by_division(std::uint64_t burst) const;
  void find_bits();
  void add(std::uint32_t BurstPlace::*member, std::uint64_t size);
  void interleave_below(const HbmConfig& config, std::uint64_t pseudo_channels);

  std::uint64_t interleave_ = 0, column_stride_ = 1, columns_;
  unsigned burst_shift_ = 0;
  std::uint64_t cut_ = 0, pseudo_channels_ = 1;  // interleave in bursts, where no field of its own says it
  std::vector<Field> fields_;                    // least significant first
  bool powers_of_two_ = false;                   // all fields: then these say where they lie
  PlaceBits bits_;
  Bits upper_;  // of the field that is cut in two
  std::uint32_t BurstPlace::*upper_member_ = &BurstPlace::column;
  unsigned upper_left_ = 0;
};

}  // namespace kernbench
