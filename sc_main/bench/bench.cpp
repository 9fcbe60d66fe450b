#include "sc_main/bench/bench.h"

#include "sc_main/process/cpu_time.h"

namespace kernbench::bench {
double peak_bytes() { return static_cast<double>(process::own_usage().ru_maxrss) * 1024; }

std::vector<Bench> benches(Grade grade) {
  std::vector<Bench> all;
  for (const std::vector<Bench>& part : {noc_benches(grade), memory_benches(grade), machine_benches(grade),
                                         kernel_benches(), sweep_benches(grade), watch_benches(grade)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace kernbench::bench
