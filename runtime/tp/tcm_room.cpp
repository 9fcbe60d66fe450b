#include "runtime/tp/tcm_room.h"

#include <algorithm>

namespace kernbench::tp {

std::uint64_t tcm_room(std::uint64_t share) {
  constexpr std::uint64_t kGaps = 256 << 10;
  return share - std::max(share / 4, std::min(share / 2, kGaps));
}

std::int64_t fitting_elements(const Tl& tl, std::int64_t most, std::uint64_t bytes) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(tcm_room(tl.tcm()) / bytes), 1, most);
}

}  // namespace kernbench::tp
