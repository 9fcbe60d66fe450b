#include "sc_main/workloads/serve/steps.h"

#include <cmath>

namespace kernbench::serve {

namespace {
/// Points of the grid on both sides of a value that is at least 1; equal where it is one.
std::pair<std::int64_t, std::int64_t> around(double value) {
  std::int64_t low = 1;
  while (static_cast<double>(2 * low) <= value) low *= 2;
  std::int64_t high = 2 * low;
  if (low > 1 && value >= 1.5 * static_cast<double>(low)) {
    low += low / 2;
  } else if (low > 1) {
    high = low + low / 2;
  }
  return {low, value == static_cast<double>(low) ? low : high};
}

Cost between(const Cost& a, const Cost& b, double share) {
  const auto mix = [share](double low, double high) { return low + (high - low) * share; };
  return {mix(a.time, b.time), mix(a.flops, b.flops), mix(a.bytes, b.bytes)};
}

double share_of(double value, std::int64_t low, std::int64_t high) {
  return low == high ? 0 : (value - static_cast<double>(low)) / static_cast<double>(high - low);
}
}  // namespace

const Cost& StepCosts::at(const StepKind& kind) {
  const auto found = known_.find(kind);
  if (found != known_.end()) return found->second;
  return known_.emplace(kind, simulate_(kind)).first->second;
}

Cost StepCosts::along(std::int64_t batch, double positions) {
  const auto [low, high] = around(positions);
  const Cost first = at({batch, low});
  return low == high ? first : between(first, at({batch, high}), share_of(positions, low, high));
}

Cost StepCosts::of(const Step& step) {
  if (step.prefill) return along(0, step.positions);
  const auto [low, high] = around(static_cast<double>(step.batch));
  const Cost first = along(low, step.positions);
  return low == high
             ? first
             : between(first, along(high, step.positions), share_of(static_cast<double>(step.batch), low, high));
}

}  // namespace kernbench::serve
