#pragma once
#include <fmt/format.h>

#include <string>

namespace kernbench::sweep {

/// A sweep of the misbehaving workload: `points` of them, each of which takes some milliseconds.
inline std::string plain_sweep(int points, int ms = 0, const std::string& how = "ok") {
  return fmt::format(
      "workload: misbehaving\nplugins: ['{}']\ntopology: minimal\noptions: {{ms: {}, how: {}}}\n"
      "axes:\n  n: {{from: 1, to: {}}}\nobjectives:\n  - {{name: time_ns, goal: minimize}}\n",
      KERNBENCH_MISBEHAVING, ms, how, points);
}

}  // namespace kernbench::sweep
