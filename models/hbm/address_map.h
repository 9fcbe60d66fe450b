#pragma once
#include <cstdint>
#include <vector>

#include "models/hbm/channel_timing.h"

namespace kernbench {

/// Which burst of a slice lies where: first the pseudo channel, every `interleave_bytes`, then HbmConfig::mapping.
class HbmAddressMap {
 public:
  /// Throws std::invalid_argument on a mapping that does not name each of Ro, Si, Ba, Bg and Co once, Ro first.
  HbmAddressMap(const HbmConfig& config, unsigned pseudo_channels_per_slice);

  std::uint64_t interleave() const { return interleave_; }
  /// Pseudo channel of the slice, from 0.
  unsigned pseudo_channel(std::uint64_t offset) const {
    return static_cast<unsigned>(offset / interleave_ % pseudo_channels_);
  }
  /// Place of the burst that holds `offset`; pseudo_channel is left 0.
  BurstPlace place(std::uint64_t offset) const {
    std::uint64_t rest = (offset / interleave_ / pseudo_channels_ * interleave_ + offset % interleave_) / burst_;
    BurstPlace place;
    for (const Field& field : fields_) {
      const std::uint64_t value = field.size == 0 ? rest : rest % field.size;
      if (field.size != 0) rest /= field.size;
      switch (field.kind) {
        case Field::row:
          place.row = static_cast<std::uint32_t>(value);
          break;
        case Field::stack:
          place.stack_id = static_cast<std::uint32_t>(value);
          break;
        case Field::bank:
          place.bank = static_cast<std::uint32_t>(value);
          break;
        case Field::group:
          place.bank_group = static_cast<std::uint32_t>(value);
          break;
        case Field::column:
          break;  // any column of an open row costs the same
      }
    }
    return place;
  }

 private:
  struct Field {
    enum Kind : unsigned { row, stack, bank, group, column } kind = row;
    std::uint64_t size = 0;  // 0: all that is left
  };
  std::uint64_t interleave_, burst_, pseudo_channels_;
  std::vector<Field> fields_;
};

}  // namespace kernbench
