#include "models/hbm/address_map.h"

#include <stdexcept>
#include <string>

namespace kernbench {

HbmAddressMap::HbmAddressMap(const HbmConfig& config, unsigned pseudo_channels_per_slice)
    : interleave_(config.interleave_bytes), burst_(config.burst_bytes), pseudo_channels_(pseudo_channels_per_slice) {
  if (burst_ == 0 || interleave_ < burst_ || interleave_ % burst_ != 0) {
    throw std::invalid_argument("hbm: interleave of " + std::to_string(interleave_) +
                                " B is no multiple of a burst of " + std::to_string(burst_) + " B");
  }
  const auto reject = [&] {
    throw std::invalid_argument("hbm: mapping '" + config.mapping +
                                "': name each of Ro, Si, Ba, Bg, Co once, Ro first");
  };
  if (config.mapping.size() != 10) reject();
  unsigned seen = 0;
  for (std::size_t i = config.mapping.size(); i > 0; i -= 2) {  // least significant first
    const std::string name = config.mapping.substr(i - 2, 2);
    Field field;
    if (name == "Ro")
      field = {Field::row, 0};
    else if (name == "Si")
      field = {Field::stack, config.stack_ids};
    else if (name == "Ba")
      field = {Field::bank, config.banks_per_group};
    else if (name == "Bg")
      field = {Field::group, config.bank_groups};
    else if (name == "Co")
      field = {Field::column, config.row_bytes / config.burst_bytes};
    else
      reject();
    if ((seen >> field.kind & 1) != 0 || (field.kind == Field::row && i != 2)) reject();
    seen |= 1u << field.kind;
    fields_.push_back(field);
  }
}

}  // namespace kernbench
