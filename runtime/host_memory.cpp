#include "runtime/host_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "runtime/errors.h"

namespace kernbench {
namespace {
using Limits = std::numeric_limits<std::uint64_t>;

/// The number behind `key` in a file of lines "key number"; `missing` if it is not there.
std::uint64_t number_of(const std::string& path, const std::string& key, std::uint64_t missing) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::uint64_t number = 0;
    if (word == key && file >> number) return number;
  }
  return missing;
}

/// The same where it is in kB; the largest there is if it is not there.
std::uint64_t kilobytes(const char* path, const std::string& key) {
  const std::uint64_t number = number_of(path, key, Limits::max());
  return number == Limits::max() ? number : number * 1024;
}

/// The one number that a file holds; the largest there is for "max", and where there is no such file.
std::uint64_t number_in(const std::string& path) {
  std::uint64_t number = 0;
  return std::ifstream(path) >> number ? number : Limits::max();
}

std::uint64_t less(std::uint64_t limit, std::uint64_t used) { return limit > used ? limit - used : 0; }

/// What `limit` leaves beside what /proc/self/status says of `key`.
std::uint64_t left_of(int limit, const std::string& key) {
  rlimit value{};
  if (::getrlimit(static_cast<__rlimit_resource>(limit), &value) != 0 || value.rlim_cur == RLIM_INFINITY)
    return Limits::max();
  const std::uint64_t used = kilobytes("/proc/self/status", key);
  return used == Limits::max() ? value.rlim_cur : less(value.rlim_cur, used);
}

/// Of the groups that the process is in, from its own up to the root: version 2, and version 1's controller.
std::uint64_t left_of_cgroups() {
  std::uint64_t least = Limits::max();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t name = line.find(':'), path = line.find(':', name + 1);
    if (path == std::string::npos) continue;
    const std::string controllers = line.substr(name + 1, path - name - 1);
    const bool one = controllers == "memory";
    if (!one && !controllers.empty()) continue;
    const std::string root = one ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    for (std::string group = line.substr(path + 1);; group.resize(group.find_last_of('/'))) {
      if (!group.empty() && group.back() == '/') group.pop_back();
      least = std::min(least, left_of_cgroup(root + group, one ? CgroupVersion::one : CgroupVersion::two));
      if (group.empty()) break;
    }
  }
  return least;
}
}  // namespace

std::uint64_t left_of_cgroup(const std::string& folder, CgroupVersion version) {
  const bool one = version == CgroupVersion::one;
  const std::uint64_t limit = number_in(folder + (one ? "/memory.limit_in_bytes" : "/memory.max"));
  const std::uint64_t used = number_in(folder + (one ? "/memory.usage_in_bytes" : "/memory.current"));
  if (limit == Limits::max() || used == Limits::max()) return Limits::max();
  const std::uint64_t cached = number_of(folder + "/memory.stat", one ? "total_inactive_file" : "inactive_file", 0);
  return less(limit, less(used, cached));
}

HostMemoryLeft host_memory_left() {
  HostMemoryLeft left;
  const auto consider = [&left](std::uint64_t bytes, const char* limit) {
    if (bytes < left.bytes) left = {bytes, limit};
  };
  consider(kilobytes("/proc/meminfo", "MemAvailable:"), "MemAvailable");
  consider(left_of(RLIMIT_AS, "VmSize:"), "ulimit -v");
  consider(left_of(RLIMIT_DATA, "VmData:"), "ulimit -d");
  consider(left_of_cgroups(), "its cgroup");
  return left;
}

void require_host_memory(std::uint64_t bytes, const std::string& what, const std::string& remedy) {
  const HostMemoryLeft left = host_memory_left();
  if (bytes <= left.bytes) return;
  const auto mebibytes = [](std::uint64_t amount) { return static_cast<double>(amount) / (1 << 20); };
  throw HostShortage(fmt::format("{}: needs {:.0f} MiB of this computer's memory, {:.0f} MiB are left ({}): {}", what,
                                 mebibytes(bytes), mebibytes(left.bytes), left.limit, remedy));
}

}  // namespace kernbench
