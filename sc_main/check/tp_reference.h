#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tp/transformer.h"

namespace kernbench {

/// A language model on the host: whole matrices, no ranks, no tiles, in f64. What the machine keeps in memory is
/// rounded to the dtype here, too.
struct HostTransformer {
  tp::Model model;
  std::int64_t layers = 0;
  DType dtype = DType::f16;
  tp::ModelWeights weights;
  std::int64_t context = 0;                ///< positions that the caches hold from the start
  tp::Transformer::Contents keys, values;  ///< of those; heads of all ranks together

  /// Of models with experts, by layer: the machine's choices for each row of run(), ~expert where it was dropped. The
  /// host follows them where its own logits say so, too, up to roundings; empty: it chooses by itself.
  std::vector<std::vector<std::int32_t>> routing;
  /// Choices of the machine for which that does not hold, or that are one twice.
  mutable std::uint64_t misrouted = 0;

  using Values = std::vector<double>;
  /// Tokens, sequences of `length` one after the other -> rows of the embedding at positions from `context` on.
  Values embed(const std::vector<std::int64_t>& tokens, std::int64_t length) const;
  /// All layers, on rows of sequences of `length`.
  Values run(Values x, std::int64_t length) const;
  /// The last norm and the output matrix: (rows, vocabulary).
  Values logits(const Values& x) const;
  /// Of few logits the largest can be a sum that cancels: what one is by chance, the root of the sum of its squared
  /// products. 0 of many.
  double logit_scale(const Values& x) const;

 private:
  Values linear(const Values& x, std::int64_t in, std::int64_t out, const std::string& name, bool round) const;
  Values norm(const Values& x, const std::string& name) const;
  Values attention(const Values& x, std::int64_t length, std::size_t layer, const std::string& name) const;
  void attend(const Values& q, const Values& k, const Values& v, std::int64_t entry, std::int64_t length,
              std::size_t layer, Values& into) const;
  void turn(Values& x, std::int64_t heads, std::int64_t length) const;
  Values mlp(const Values& x, const std::string& name) const;
  Values experts(const Values& x, std::size_t layer, const std::string& name) const;
};

/// Choices of a pass through a mixture of experts, token after token (~expert: dropped), that were dropped or kept
/// against the capacity: each of the `ranks` that tokens come from sends each expert the first ceil(F R k / E) of those
/// that chose it, R = tokens / ranks rounded up. `capacity_factor` F; 0: nothing is dropped.
std::uint64_t wrong_drops(const std::vector<std::int32_t>& choices, std::int64_t per_token, std::int64_t experts,
                          std::int64_t ranks, double capacity_factor);

/// How far results may lie from the host's: roundings of the dtype at some sixteen places of a layer and of the ends,
/// of the order of the largest value, or of `scale` if that is more.
double transformer_tolerance(DType dtype, std::int64_t layers, const std::vector<double>& expected, double scale = 0);

}  // namespace kernbench
