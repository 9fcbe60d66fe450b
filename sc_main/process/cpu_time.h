#pragma once
#include <sys/resource.h>

namespace kernbench::process {

inline double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// Of what a process used: its own code, and the kernel's for it.
inline double cpu_s(const rusage& usage) { return seconds(usage.ru_utime) + seconds(usage.ru_stime); }

/// What this process has used so far.
inline rusage own_usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

/// CPU time of its own code.
inline double user_cpu_s() { return seconds(own_usage().ru_utime); }

}  // namespace kernbench::process
