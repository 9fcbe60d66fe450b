#pragma once
#include <cstdint>

namespace kernbench {

/// The longest train: a message of a queue between PEs, or a part of one. Those of memory accesses are at most
/// kMaxTrainBytes. Source: docs/decisions/0140-long-trains.md.
inline constexpr std::uint32_t kLongestTrainBytes = 16384;

}  // namespace kernbench
