#pragma once
#include <cstdint>
#include <vector>

namespace kernbench {

/// Speed of the HBM model on one HBM2-2000 channel (both pseudo channels, queue of 32 bursts, bank groups interleaved),
/// saturated with reads. What `kernbench bench` times; none of them touches contents.
struct HbmBench {
  const char* name;  ///< e.g. "hbm_engine_sequential"
  const char* unit;  ///< what run() counts: "request of 32 B", "burst of 32 B"
  double loops;      ///< at most so many calibration loops per unit (spec, Speed to reach)
  /// Makes at least `requests` requests; returns the units. Once per process where it needs SystemC.
  std::uint64_t (*run)(std::uint64_t requests);
};

const std::vector<HbmBench>& hbm_benches();

}  // namespace kernbench
