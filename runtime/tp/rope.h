#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kernbench::tp {

/// How frequencies of rotary positions are lowered for sequences beyond those that a model was trained on first.
/// Source: transformers, modeling_rope_utils.py; Llama 3.1: factor 8, low 1, high 4, original 8,192.
struct RopeScaling {
  double factor = 1;    ///< low frequencies are divided by it; 1: none is
  double original = 0;  ///< positions of the first training; 0: all are divided ("linear")
  /// Of wavelengths above original / low all of the factor, below original / high nothing, between them a part.
  double low = 0, high = 0;
};

/// By how much pair `pair` of a head of `head_dim` elements turns from a position to the next, radian:
/// theta^(-2 pair / head_dim), scaled.
inline double rotary_frequency(double theta, const RopeScaling& scaling, std::int64_t pair, std::int64_t head_dim) {
  const double frequency = std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
  const double lowered = frequency / scaling.factor;
  if (scaling.original == 0) return lowered;
  constexpr double kTurn = 6.283185307179586;                 // radian
  const double turns = scaling.original * frequency / kTurn;  // within the positions of the first training
  const double kept = std::clamp((turns - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
  return (1 - kept) * lowered + kept * frequency;
}

}  // namespace kernbench::tp
