#pragma once
#include <cstdint>
#include <string>

namespace kernbench {

/// Memory that this process may still take.
struct HostMemoryLeft {
  std::uint64_t bytes = ~std::uint64_t{0};  ///< the least that any of them leaves
  const char* limit = "no limit";           ///< whose it is: "MemAvailable", "ulimit -v", "ulimit -d", "its cgroup"
};
HostMemoryLeft host_memory_left();

/// Throws HostShortage if `what` ("tensor 'a'") needs more: with both figures, and `remedy`, what helps.
void require_host_memory(std::uint64_t bytes, const std::string& what, const std::string& remedy);

}  // namespace kernbench
