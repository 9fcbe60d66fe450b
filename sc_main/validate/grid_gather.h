#pragma once
#include <cstdint>

#include "tlm/machine/fidelity.h"

namespace kernbench::validate {

/// An all-gather over a grid of ranks on preset `astra`, by the algorithm that `auto` takes.
struct GridGather {
  bool wraps = false;  ///< a torus
  unsigned w = 2, h = 2;
  std::uint64_t bytes = 0;  ///< that every rank ends with
  std::uint64_t bytes_per_second = 0;
  double latency_ns = 0;
  Fidelity fidelity;

  /// Packets of 256 B that cross links at least, all together: what a run costs.
  double packets() const { return (static_cast<double>(w) * h - 1) * static_cast<double>(bytes) / 256; }
};

/// Builds the machine and runs it once; nanoseconds from the first kernel's start to the last one's end. Once per
/// process. Throws std::runtime_error if the run fails.
double run_grid_gather(const GridGather& gather);

}  // namespace kernbench::validate
