#pragma once
#include <atomic>
#include <functional>
#include <vector>

#include "sc_main/explore/sweep/evaluator.h"
#include "sc_main/explore/sweep/points.h"

namespace kernbench::sweep {

/// Has every point that may run do what comes before its simulation, each in a process of its own: its machine is
/// resolved and built, and its workload checks its options.
///
/// Throws ConfigError with all that would be refused, each at the value of the axis that is to blame; Interrupted.
void check_points(const SweepFile& file, const PointMaker& maker, const std::vector<Point>& points, unsigned jobs,
                  const std::function<void(const Progress&)>& progress, const std::atomic<bool>& stop);

}  // namespace kernbench::sweep
