#pragma once
#include <sys/resource.h>

namespace kernbench {

/// Seconds of user and system time of the processes that this one has run and that have ended: other load on the
/// machine does not count.
inline double children_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

}  // namespace kernbench
