#include <fmt/format.h>

#include "sc_main/bench/bench.h"
#include "sc_main/rigs/bare_mesh.h"

namespace kernbench::bench {
namespace {
/// 8 x 8, uniform, packets of 8 flits, 4 virtual channels of 8 flits: the case of the specification, "Speed to reach".
Measured run_mesh(double load, bool fast) {
  BareMeshConfig config;
  config.load = load;
  config.fast = fast;
  config.warmup = 10'000;
  config.window = static_cast<std::uint64_t>(20'000 / load) * (fast ? 4 : 1);
  config.drain = 0;
  const BareMeshResult result = run_bare_mesh(config);
  return {static_cast<double>(result.packets), result.cpu_s, static_cast<double>(result.cycles), peak_bytes()};
}
}  // namespace

std::vector<Bench> noc_benches(Grade grade) {
  const bool fast = grade == Grade::fast;
  std::vector<Bench> list;
  for (const double load : {0.1, 0.3}) {
    const double most = load < 0.2 ? (fast ? 15 : 80) : (fast ? 20 : 130);
    list.push_back({fmt::format("noc_8x8_uniform_8_flits_4_vcs_load_{:g}", load),
                    "packet",
                    "simulated cycle",
                    {{Bound::Of::loops_per_unit, most}},
                    [load, fast] { return run_mesh(load, fast); },
                    true,
                    {"BookSim2", 1600}});
  }
  return list;
}

}  // namespace kernbench::bench
