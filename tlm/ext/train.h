#pragma once
#include <cstdint>

namespace kernbench {

/// The longest train: a message of a queue between PEs, or a part of one; never longer than a slot, and trains of
/// memory accesses are shorter (kMaxTrainBytes). Source: docs/decisions/0190-trains-of-a-slot.md.
inline constexpr std::uint32_t kLongestTrainBytes = 16 * 1024;

}  // namespace kernbench
