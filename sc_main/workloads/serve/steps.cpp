#include "sc_main/workloads/serve/steps.h"

#include <algorithm>
#include <cmath>

#include "runtime/tp/kv_cache.h"

namespace kernbench::serve {

namespace {
constexpr std::int64_t kFine = 64;  ///< below, powers of two and half as much again; from there on powers of two

/// PEs of a sequence, and sequences of a PE: from so many on one more is so little that linear is near.
constexpr std::int64_t kLeaps = 5;

/// Simulated numbers on both sides of a value that is at least 1 and at most `most`; equal where it is one.
std::pair<std::int64_t, std::int64_t> around(double value, std::int64_t most) {
  std::int64_t low = 1;
  while (static_cast<double>(2 * low) <= value) low *= 2;
  std::int64_t high = 2 * low;
  if (low > 1 && low < kFine) {
    const std::int64_t middle = low + low / 2;
    (value >= static_cast<double>(middle) ? low : high) = middle;
  }
  if (value <= static_cast<double>(most)) {
    // Of a power of two so near the most that they say the same, the most serves for both.
    const auto near = [most](std::int64_t number) { return number > kFine && 4 * number > 3 * most; };
    if (near(high)) high = most;
    if (near(low)) low /= 2;
    high = std::min(high, most);
  }
  if (value == static_cast<double>(low)) return {low, low};
  return {value == static_cast<double>(high) ? high : low, high};
}

Cost mix(const Cost& a, const Cost& b, double of_b) {
  return Cost::joined(a, b, [of_b](double low, double high) { return low + (high - low) * of_b; });
}

Cost times(const Cost& cost, double factor) {
  return Cost::joined(cost, cost, [factor](double one, double) { return one * factor; });
}

double share_of(double value, std::int64_t low, std::int64_t high) {
  return low == high ? 0 : (value - static_cast<double>(low)) / static_cast<double>(high - low);
}
}  // namespace

const Cost& StepCosts::at(const Part& part) {
  const auto found = known_.find(part);
  if (found != known_.end()) return found->second;
  return known_.emplace(part, measure_(part)).first->second;
}

Cost StepCosts::along(Part::Kind kind, std::int64_t size, double past) {
  if (past == 0) return at({kind, size, 0});
  std::pair<std::int64_t, std::int64_t> sides{0, std::min(kFine, range_.positions)};
  if (past >= static_cast<double>(kFine)) sides = around(past, range_.positions);
  const auto [low, high] = sides;
  const Cost first = at({kind, size, low});
  return low == high ? first : mix(first, at({kind, size, high}), share_of(past, low, high));
}

std::pair<std::int64_t, std::int64_t> StepCosts::sides_of(Part::Kind kind, double size) const {
  auto [low, high] = around(size, range_.tokens);
  if (kind != Part::Kind::decode || range_.pes == 0) return {low, high};
  const auto layout = [this](std::int64_t batch) {
    const tp::CacheLayout of = tp::cache_layout(batch * range_.heads, range_.pes, 1, 1);
    return std::pair(std::min(of.run, kLeaps), std::min(of.of_each_pe, kLeaps));
  };
  const std::int64_t batch = std::llround(size);
  while (layout(low) != layout(batch)) ++low;
  while (layout(high) != layout(batch)) --high;
  if (low == batch) high = low;
  if (high == batch) low = high;
  return {low, high};
}

Cost StepCosts::between(Part::Kind kind, double size, double past) {
  const auto [low, high] = sides_of(kind, size);
  const Cost first = along(kind, low, past);
  if (low == high) return first;
  const Cost second = along(kind, high, past);
  const double share = share_of(size, low, high);
  if (kind != Part::Kind::prompt) return mix(first, second, share);
  return times(mix(times(first, 1 / static_cast<double>(low)), times(second, 1 / static_cast<double>(high)), share),
               size);
}

StepCost StepCosts::sum(const Step& step, const CostOf& cost_of) const {
  using Kind = Part::Kind;
  StepCost cost;
  const auto tokens = static_cast<double>(step.tokens());
  cost.layers = cost_of(Kind::dense, tokens, 0);
  for (const Chunk& chunk : step.prompts)
    cost.layers += cost_of(Kind::prompt, static_cast<double>(chunk.tokens), static_cast<double>(chunk.past));
  if (step.batch > 0) {
    Cost decode = cost_of(Kind::decode, static_cast<double>(step.batch), step.positions);
    if (step.fullest != step.positions)
      decode.time = cost_of(Kind::decode, static_cast<double>(step.batch), step.fullest).time;
    cost.layers += decode;
  }
  if (range_.ends) cost.embedding = cost_of(Kind::embedding, tokens, 0);
  if (range_.ends && step.batch + step.ends > 0)
    cost.logits = cost_of(Kind::logits, static_cast<double>(step.batch + step.ends), 0);
  if (range_.sends) cost.send = cost_of(Kind::send, tokens, 0);
  return cost;
}

StepCost StepCosts::of(const Step& step) {
  return sum(step, [this](Part::Kind kind, double size, double past) { return between(kind, size, past); });
}

StepCost StepCosts::exactly(const Step& step) {
  return sum(step, [this](Part::Kind kind, double size, double past) {
    return measure_({kind, std::llround(size), std::llround(past)});
  });
}

}  // namespace kernbench::serve
