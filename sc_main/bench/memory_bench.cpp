#include <string>

#include "sc_main/bench/bench.h"
#include "sc_main/process/cpu_time.h"
#include "sc_main/rigs/hbm_bench.h"

namespace kernbench::bench {
namespace {
constexpr std::uint64_t kRequests = 2'000'000;

Measured run_hbm(const HbmBench& bench) {
  const double begin = process::user_cpu_s();
  const std::uint64_t units = bench.run(kRequests);
  return {static_cast<double>(units), process::user_cpu_s() - begin, 0, peak_bytes()};
}

/// Of Ramulator2: sequential and random, engine alone.
Peer peer_of(const std::string& name) {
  if (name == "hbm_engine_sequential") return {"Ramulator2", 49};
  if (name == "hbm_engine_random") return {"Ramulator2", 195};
  return {};
}
}  // namespace

std::vector<Bench> memory_benches(Grade grade) {
  std::vector<Bench> list;
  for (const HbmBench& one : hbm_benches()) {
    const std::string name = one.name;
    const bool fast = name.find("_fast_") != std::string::npos;
    if (fast != (grade == Grade::fast)) continue;
    list.push_back({name,
                    one.unit,
                    "",
                    {{Bound::Of::loops_per_unit, one.loops}},
                    [one] { return run_hbm(one); },
                    true,
                    peer_of(name)});
  }
  return list;
}

}  // namespace kernbench::bench
