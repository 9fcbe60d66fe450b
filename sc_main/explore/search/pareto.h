#pragma once
#include <cstddef>
#include <vector>

namespace kernbench::search {

/// What is wanted of a figure.
enum class Goal { minimize, maximize };

/// As a cost: smaller is better, whatever the goal.
inline double cost(double value, Goal goal) { return goal == Goal::minimize ? value : -value; }

/// Costs of one point, one for each objective.
using Costs = std::vector<double>;

/// `a` is nowhere worse than `b`, and somewhere better.
bool dominates(const Costs& a, const Costs& b);

/// Indices, ascending, of the points that no other dominates. Of equal points the first alone is in it. Points with a
/// NaN are in no front.
std::vector<std::size_t> pareto_front(const std::vector<Costs>& points);

/// The worst cost in each objective over a front. REQUIRES: `front` is not empty.
Costs nadir(const std::vector<Costs>& front);
/// A reference point for hypervolumes: the nadir moved away by a tenth of its own size in each objective.
Costs reference_point(const Costs& nadir);

/// Volume that `points` dominate within `reference`; points beyond the reference add nothing. All of one length.
double hypervolume(const std::vector<Costs>& points, const Costs& reference);

}  // namespace kernbench::search
