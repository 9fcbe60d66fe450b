#include "sc_main/bench/bench.h"

#include <sys/resource.h>

#include <iterator>

namespace kernbench::bench {
namespace {
rusage usage() {
  rusage all{};
  getrusage(RUSAGE_SELF, &all);
  return all;
}
}  // namespace

double user_cpu_s() {
  const timeval time = usage().ru_utime;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double peak_bytes() { return static_cast<double>(usage().ru_maxrss) * 1024; }

std::vector<Bench> benches(Grade grade) {
  std::vector<Bench> all;
  for (const std::vector<Bench>& part : {noc_benches(grade), memory_benches(grade), machine_benches(grade),
                                         kernel_benches(), sweep_benches(grade), watch_benches(grade)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace kernbench::bench
