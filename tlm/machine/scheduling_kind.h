#pragma once
#include <cstdint>

namespace kernbench {

/// When ranks that wait resume; see docs/runtime.md.
enum class SchedulingKind : std::uint8_t {
  concurrent,  ///< each when its own handle completes
  rounds       ///< all at one point, when everything that can complete has
};

}  // namespace kernbench
