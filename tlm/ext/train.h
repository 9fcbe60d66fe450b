#pragma once
#include <cstdint>

namespace kernbench {

/// The longest train: a message of a queue between PEs, or a part of one. The models carry longer ones, too; 16 KiB
/// cost 3 to 6 % in the time of large collectives for no speed. Source: docs/decisions/0140-long-trains.md.
inline constexpr std::uint32_t kLongestTrainBytes = 4096;

}  // namespace kernbench
