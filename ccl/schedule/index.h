#pragma once
#include <cstddef>
#include <cstdint>

namespace kernbench::ccl {

/// A node, round or step as a place in a vector. REQUIRES: i >= 0.
inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace kernbench::ccl
