#include "models/hbm/address_map.h"

#include <stdexcept>
#include <string>

namespace kernbench {

namespace {
bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }
}  // namespace

HbmAddressMap::HbmAddressMap(const HbmConfig& config, unsigned pseudo_channels_per_slice)
    : columns_(config.row_bytes / config.burst_bytes) {
  const std::uint64_t burst = config.burst_bytes;
  const auto reject_mapping = [&] {
    throw std::invalid_argument("hbm: mapping '" + config.mapping +
                                "': name each of Ro, Si, Ba, Bg, Co once, and Pc at most once");
  };
  if (!is_power_of_two(burst)) throw std::invalid_argument("hbm: a burst of " + std::to_string(burst) + " B");
  while (std::uint64_t{1} << burst_shift_ < burst) ++burst_shift_;
  const std::string& mapping = config.mapping;
  const bool own_pseudo_channel = mapping.find("Pc") != std::string::npos;
  if (mapping.size() != (own_pseudo_channel ? 12u : 10u)) reject_mapping();
  const std::uint64_t banks =
      std::uint64_t{config.total_pseudo_channels()} * config.stack_ids * config.bank_groups * config.banks_per_group;
  unsigned seen = 0;
  std::uint64_t below = 1;  // bursts of the fields below, within a pseudo channel
  for (std::size_t i = mapping.size(); i > 0; i -= 2) {
    const std::string name = mapping.substr(i - 2, 2);
    unsigned kind = 0;
    std::uint64_t size = 0;
    std::uint32_t BurstPlace::*member = nullptr;
    if (name == "Ro") {
      kind = 0, member = &BurstPlace::row;
      size = i == 2 ? 0 : config.bytes / (banks * config.row_bytes);
      if (i != 2 && size == 0) reject_mapping();
    } else if (name == "Si") {
      kind = 1, member = &BurstPlace::stack_id, size = config.stack_ids;
    } else if (name == "Ba") {
      kind = 2, member = &BurstPlace::bank, size = config.banks_per_group;
    } else if (name == "Bg") {
      kind = 3, member = &BurstPlace::bank_group, size = config.bank_groups;
    } else if (name == "Co") {
      kind = 4, member = &BurstPlace::column, size = columns_;
      column_stride_ = below;
    } else if (name == "Pc") {
      kind = 5, member = &BurstPlace::pseudo_channel, size = pseudo_channels_per_slice;
      interleave_ = below * burst;
    } else {
      reject_mapping();
    }
    if ((seen >> kind & 1) != 0) reject_mapping();
    seen |= 1u << kind;
    add(member, size);
    if (kind != 5) below *= size;
  }
  if (!own_pseudo_channel) interleave_below(config, pseudo_channels_per_slice);
  find_bits();
}

void HbmAddressMap::add(std::uint32_t BurstPlace::*member, std::uint64_t size) { fields_.push_back({member, size, 1}); }

HbmAddressMap::Bits& HbmAddressMap::PlaceBits::at(std::uint32_t BurstPlace::*member) {
  if (member == &BurstPlace::pseudo_channel) return pseudo_channel;
  if (member == &BurstPlace::stack_id) return stack_id;
  if (member == &BurstPlace::bank_group) return bank_group;
  if (member == &BurstPlace::bank) return bank;
  return member == &BurstPlace::row ? row : column;
}

void HbmAddressMap::find_bits() {
  powers_of_two_ = cut_ == 0;
  unsigned shift = 0;
  for (const Field& field : fields_) {
    powers_of_two_ = powers_of_two_ && (field.size == 0 || is_power_of_two(field.size));
    if (!powers_of_two_) return;
    const Bits bits{shift, static_cast<std::uint32_t>(field.size - 1)};
    if (field.weight > 1) {
      upper_ = bits, upper_member_ = field.member;
      while (1U << upper_left_ < field.weight) ++upper_left_;
    } else {
      bits_.at(field.member) = bits;
    }
    while (std::uint64_t{1} << (shift - bits.shift) < field.size) ++shift;
  }
}

BurstPlace HbmAddressMap::place_by_division(std::uint64_t burst) const {
  BurstPlace place;
  std::uint64_t rest = burst;
  if (cut_ != 0) {
    place.pseudo_channel = static_cast<std::uint32_t>(rest / cut_ % pseudo_channels_);
    rest = rest / cut_ / pseudo_channels_ * cut_ + rest % cut_;
  }
  for (const Field& field : fields_) {
    const std::uint64_t value = field.size == 0 ? rest : rest % field.size;
    if (field.size != 0) rest /= field.size;
    place.*field.member += static_cast<std::uint32_t>(value) * field.weight;
  }
  return place;
}

/// Puts the pseudo channel above the bursts of an interleave: the field that this cuts becomes two. Where it cuts no
/// field into equal parts, place() does it by division.
void HbmAddressMap::interleave_below(const HbmConfig& config, std::uint64_t pseudo_channels) {
  interleave_ = config.interleave_bytes;
  if (interleave_ < config.burst_bytes || interleave_ % config.burst_bytes != 0) {
    throw std::invalid_argument("hbm: interleave of " + std::to_string(interleave_) +
                                " B is no multiple of a burst of " + std::to_string(config.burst_bytes) + " B");
  }
  const std::uint64_t bursts = interleave_ / config.burst_bytes;
  std::uint64_t below = bursts;  // that the fields so far do not fill
  std::size_t i = 0;
  while (i < fields_.size() && below > 1 && fields_[i].size != 0 && below % fields_[i].size == 0)
    below /= fields_[i++].size;
  if (i == fields_.size() || fields_[i].size % below != 0) {
    cut_ = bursts;
    pseudo_channels_ = pseudo_channels;
    return;
  }
  const std::vector<Field> fields = std::move(fields_);
  fields_.assign(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(i));
  if (below > 1) add(fields[i].member, below);
  add(&BurstPlace::pseudo_channel, pseudo_channels);
  add(fields[i].member, fields[i].size / below);
  fields_.back().weight = static_cast<std::uint32_t>(below);
  fields_.insert(fields_.end(), fields.begin() + static_cast<std::ptrdiff_t>(i) + 1, fields.end());
}

std::uint64_t HbmAddressMap::offset(const BurstPlace& place) const {
  std::uint64_t burst = 0, unit = 1;
  for (const Field& field : fields_) {
    const std::uint64_t value = place.*field.member / field.weight;
    // The upper part of a field that was cut comes later, with a weight: here only what lies below it counts.
    burst += (field.size == 0 ? value : value % field.size) * unit;
    unit *= field.size == 0 ? 1 : field.size;
  }
  if (cut_ != 0) burst = (burst / cut_ * pseudo_channels_ + place.pseudo_channel) * cut_ + burst % cut_;
  return burst << burst_shift_;
}

}  // namespace kernbench
