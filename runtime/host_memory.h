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

/// What the limit of one group leaves beside what is used of it, by the files of its folder; the largest there is
/// without a limit. Of the page cache, what the kernel gives back first (inactive_file) is not counted as used. source:
/// the kubelet's working set, memory.current - inactive_file
enum class CgroupVersion { one, two };
std::uint64_t left_of_cgroup(const std::string& folder, CgroupVersion version);

/// Throws HostShortage if `what` ("tensor 'a'") needs more: with both figures, and `remedy`, what helps.
void require_host_memory(std::uint64_t bytes, const std::string& what, const std::string& remedy);
/// Asking the system is not worth it for less.
inline constexpr std::uint64_t kLargeHostMemory = std::uint64_t{64} << 20;

}  // namespace kernbench
