#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace kernbench {

/// Ways in which a program on the host touches a tensor's contents. The set is closed: each of them waits first until
/// nothing that could change or still read the contents is under way, and nothing else does.
enum class HostAccess : std::uint8_t {
  to_host,
  data,
  at,
  call_operator,
  stream_output,
  to_string,
  bytes_to_host,
  copy_from_source,
  copy_from_target,
  write_bytes,
  free
};

/// One row of the registry.
struct HostEntryPoint {
  HostAccess access;  ///< which
  const char* name;   ///< as a program spells it
  bool reads;         ///< the contents
  bool writes;        ///< overwrites the contents, or gives their memory back
};

/// The registry of entry points, in the order of HostAccess.
inline constexpr std::array<HostEntryPoint, 11> kHostEntryPoints{{
    {HostAccess::to_host, "to_host()", true, false},
    {HostAccess::data, "data()", true, false},
    {HostAccess::at, "at(row, col)", true, false},
    {HostAccess::call_operator, "operator()(row, col)", true, false},
    {HostAccess::stream_output, "operator<<", true, false},
    {HostAccess::to_string, "to_string(tensor)", true, false},
    {HostAccess::bytes_to_host, "bytes_to_host(copy)", true, false},
    {HostAccess::copy_from_source, "copy_from(source), of the source", true, false},
    {HostAccess::copy_from_target, "copy_from(source), of the target", false, true},
    {HostAccess::write_bytes, "write_bytes(data)", false, true},
    {HostAccess::free, "free()", false, true},
}};

/// How often each entry point was used and how often it had to wait, for tests and reports.
struct HostAccessCounts {
  std::uint64_t used = 0;    ///< times
  std::uint64_t waited = 0;  ///< of them
};
using HostAccessTable = std::array<HostAccessCounts, kHostEntryPoints.size()>;

}  // namespace kernbench
