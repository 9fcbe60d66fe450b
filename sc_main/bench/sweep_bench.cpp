#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "sc_main/bench/bench.h"
#include "sc_main/process/program.h"

namespace kernbench::bench {
namespace {
/// 2 presets x 500 rows of A: a grid of 1,000 points.
std::string sweep_text(Grade grade) {
  return fmt::format(
      "workload: gemm_single_pe\noptions: {{fidelity: {}, check: 0}}\n"
      "axes:\n  topology: [minimal, default]\n  m: {{from: 1, to: 500}}\n"
      "objectives:\n  - {{name: time_ns, goal: minimize}}\n",
      to_string(grade));
}

/// Runs the tool's own sweep, to a store of its own, and reads what it says of itself.
Measured run_sweep(Grade grade) {
  const Folder folder;
  std::ofstream(folder.file("sweep.yaml")) << sweep_text(grade);
  const std::vector<std::string> words{process::own_path(),     "sweep",  folder.file("sweep.yaml"), "--store",
                                       folder.file("s.sqlite"), "--json", folder.file("s.json"),     "-q"};
  if (process::run_program(words).code != 0) throw std::runtime_error("the sweep of the benchmark failed");
  std::ifstream in(folder.file("s.json"));
  const auto host = nlohmann::json::parse(in).at("host");
  Measured measured;
  measured.units = host.at("points_run").get<double>();
  measured.cpu_s = host.at("points_cpu_s").get<double>() + host.at("own_cpu_s").get<double>();
  measured.overhead_ms = host.at("overhead_ms_per_point").get<double>();
  measured.idle_percent = 100 * (1 - host.at("busy_fraction").get<double>());
  return measured;
}
}  // namespace

std::vector<Bench> sweep_benches(Grade grade) {
  // Less than 20 ms per point beside elaboration and simulation, cores at 90 % or better.
  return {{"sweep_1000_points",
           "point",
           "",
           {{Bound::Of::overhead_ms, 20}, {Bound::Of::idle_percent, 10}},
           [grade] { return run_sweep(grade); },
           false}};
}

}  // namespace kernbench::bench
