#include "sc_main/explore/search/pareto.h"

#include <algorithm>
#include <cmath>

namespace kernbench::search {

bool dominates(const Costs& a, const Costs& b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

std::vector<std::size_t> pareto_front(const std::vector<Costs>& points) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool whole = std::none_of(points[i].begin(), points[i].end(), [](double v) { return std::isnan(v); });
    if (whole) order.push_back(i);
  }
  // In lexical order nothing is dominated by what comes after it: each is held against the front so far.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<std::size_t> front;
  for (const std::size_t candidate : order) {
    const bool beaten = std::any_of(front.begin(), front.end(), [&](std::size_t member) {
      return points[member] == points[candidate] || dominates(points[member], points[candidate]);
    });
    if (!beaten) front.push_back(candidate);
  }
  std::sort(front.begin(), front.end());
  return front;
}

Costs nadir(const std::vector<Costs>& front) {
  Costs worst = front.front();
  for (const Costs& point : front) {
    for (std::size_t i = 0; i < worst.size(); ++i) worst[i] = std::max(worst[i], point[i]);
  }
  return worst;
}

Costs reference_point(const Costs& nadir) {
  Costs reference = nadir;
  for (double& value : reference) value += 0.1 * std::abs(value);
  return reference;
}

}  // namespace kernbench::search
