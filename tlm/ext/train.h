#pragma once
#include <cstdint>

namespace kernbench {

/// The longest train: a message of a queue between PEs, or a part of one; never longer than a slot, and trains of
/// memory accesses are shorter (kLongestAccessBytes). Source: docs/decisions/0230-long-slots.md.
inline constexpr std::uint32_t kLongestTrainBytes = 64 * 1024;

/// The longest train of a memory access where slots, and with them trains, are longer than kMaxTrainBytes. Source: the
/// same.
inline constexpr std::uint32_t kLongestAccessBytes = 8 * 1024;

/// Of a memory access, where `longest` bytes travel as one packet.
constexpr std::uint32_t longest_access(std::uint32_t longest) {
  return longest < kLongestAccessBytes ? longest : kLongestAccessBytes;
}

}  // namespace kernbench
