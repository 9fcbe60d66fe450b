#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace kernbench::tp {

/// Routing where there are no values (--data off): which experts tokens would choose.
struct AssumedRouting {
  /// Nothing: balanced, choice j of token t is expert (t k + j) mod E. Otherwise experts are as popular as Zipf's law
  /// has it: the n-th most popular one with weight n^-skew, which of them that is and what a token draws by the seed;
  /// 0: all alike, by chance.
  std::optional<double> skew;
  std::uint64_t seed = 0;
};

/// Choices of `tokens` tokens, `per_token` different experts each, token after token. The same for the same arguments
/// on every platform and in every layer.
std::vector<std::int32_t> assumed_choices(const AssumedRouting& assumed, std::int64_t tokens, std::int64_t experts,
                                          std::int64_t per_token);

/// Sizes of a pass through a mixture of experts.
struct MoeShape {
  std::int64_t tokens = 0, experts = 0, per_token = 0;
  int ranks = 1;               ///< that share the experts: rank r has experts [r E / ranks, (r + 1) E / ranks)
  double capacity_factor = 0;  ///< 0: no token is dropped
};

/// Rows that are computed of `rows`: the next power of two to 16, then the next multiple of 16, as kernels of few
/// shapes have it; 0 of 0.
std::int64_t rows_in_use(std::int64_t rows);

/// Where the tokens of a pass go: what the host makes of all choices. Rank s has tokens [s R, (s + 1) R), R = tokens /
/// ranks rounded up. What it sends to rank d is block d of its buffer, of `block` rows: the choices of d's experts,
/// expert after expert and in each token after token; rank d finds it in block s of its own.
///
/// With a capacity factor f each rank sends each expert at most ceil(f R k / E) tokens, its first ones; the others are
/// dropped: these experts' parts are missing from their sums, and the weights of what is left stay as they are.
class MoeRouting {
 public:
  /// choices  of all tokens, token after token. Throws std::runtime_error on an expert that there is not, as logits
  ///          that are no numbers give
  MoeRouting(const MoeShape& shape, std::vector<std::int32_t> choices);

  static std::int64_t rows_of_rank(const MoeShape& shape) { return (shape.tokens + shape.ranks - 1) / shape.ranks; }
  /// Of them, those that are tokens.
  static std::int64_t tokens_of_rank(const MoeShape& shape, int rank);

  std::int64_t block() const { return block_; }  ///< rows of a block, the same for all pairs of ranks
  /// For each row of the send buffer of `rank` the token among the rank's own; -1: padding.
  std::vector<std::int32_t> send_rows(int rank) const;
  /// For each token of an expert, in order of source and token, its row of the receive buffer of the expert's rank.
  std::vector<std::int32_t> expert_rows(std::int64_t expert) const;
  /// For each choice of each token of `rank` its row of the send buffer; -1: dropped.
  std::vector<std::int32_t> slots(int rank) const;

  const std::vector<std::int32_t>& choices() const { return choices_; }
  bool dropped(std::size_t choice) const { return place_[choice] < 0; }
  std::int64_t dropped() const { return dropped_; }
  const std::vector<std::int64_t>& tokens_per_expert() const { return per_expert_; }  ///< without those dropped

 private:
  std::int64_t owner(std::int64_t expert) const { return expert / (shape_.experts / shape_.ranks); }

  MoeShape shape_;
  std::int64_t rows_, block_ = 0, dropped_ = 0;
  std::vector<std::int32_t> choices_;
  std::vector<std::int64_t> place_;  // of each choice in the block of its pair of ranks; -1: dropped
  std::vector<std::int64_t> per_expert_;
};

}  // namespace kernbench::tp
