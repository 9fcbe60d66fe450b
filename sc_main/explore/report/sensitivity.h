#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "sc_main/explore/report/study.h"

namespace kernbench::report {

/// What one value (or range of values) of an axis comes to, over all points that have it.
struct Level {
  std::string label;  ///< the value, or "low to high"
  double position;    ///< on the axis; of a range its middle
  std::size_t points;
  double mean, lowest, highest;  ///< of the metric
};

/// How much one axis by itself decides a metric.
struct Effect {
  std::size_t axis = 0;
  /// Share of the metric's variance that lies between the axis' levels, 0 to 1; NaN: too few points to tell.
  double share = 0;
  std::vector<Level> levels;
};

/// Effects of all axes on metric `metric`, in the order of the axes.
struct Sensitivity {
  bool log = false;  ///< the variance is that of the metric's logarithm, because it spans a factor of 20
  /// Every combination of levels occurs equally often: shares then add up to at most 1, what is missing is interaction
  /// of axes. Otherwise each share is adjusted for the number of its levels (epsilon squared), for a few random points
  /// would seem to explain anything.
  bool balanced = false;
  std::vector<Effect> effects;
};

/// Over the points with status ok and a figure. An axis of numbers with more than twelve values is cut into eight
/// ranges of equally many points.
Sensitivity sensitivity(const Study& study, std::size_t metric);

}  // namespace kernbench::report
