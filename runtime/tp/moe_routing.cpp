#include "runtime/tp/moe_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace kernbench::tp {

namespace {
/// source: S. Vigna, splitmix64.c (public domain)
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Popularity of each expert: which one is the n-th is by the seed.
std::vector<double> log_weights(const AssumedRouting& assumed, std::int64_t experts) {
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t e = 0; e < static_cast<std::size_t>(experts); ++e)
    order.emplace_back(mixed(mixed(assumed.seed + 1) + e), e);
  std::sort(order.begin(), order.end());
  std::vector<double> weights(order.size());
  for (std::size_t place = 0; place < order.size(); ++place)
    weights[order[place].second] = -*assumed.skew * std::log(static_cast<double>(place + 1));
  return weights;
}
}  // namespace

std::vector<std::int32_t> assumed_choices(const AssumedRouting& assumed, std::int64_t tokens, std::int64_t experts,
                                          std::int64_t per_token) {
  std::vector<std::int32_t> choices;
  choices.reserve(static_cast<std::size_t>(tokens * per_token));
  if (!assumed.skew) {
    for (std::int64_t i = 0; i < tokens * per_token; ++i) choices.push_back(static_cast<std::int32_t>(i % experts));
    return choices;
  }
  const std::vector<double> weights = log_weights(assumed, experts);
  std::vector<std::pair<double, std::int32_t>> keys(weights.size());
  for (std::int64_t token = 0; token < tokens; ++token) {
    // The largest of log weight + Gumbel noise are draws without replacement by the weights.
    const std::uint64_t base = mixed(mixed(assumed.seed + 2) + static_cast<std::uint64_t>(token));
    for (std::size_t e = 0; e < keys.size(); ++e) {
      const double uniform = (static_cast<double>(mixed(base + e) >> 11) + 0.5) * 0x1p-53;
      keys[e] = {std::log(-std::log(uniform)) - weights[e], static_cast<std::int32_t>(e)};
    }
    std::partial_sort(keys.begin(), keys.begin() + per_token, keys.end());
    for (std::int64_t j = 0; j < per_token; ++j) choices.push_back(keys[static_cast<std::size_t>(j)].second);
  }
  return choices;
}

std::int64_t rows_in_use(std::int64_t rows) {
  constexpr std::int64_t kStep = 16;  // assumed: rows of the array of the default machine
  if (rows > kStep) return (rows + kStep - 1) / kStep * kStep;
  std::int64_t power = rows > 0 ? 1 : 0;
  while (power < rows) power *= 2;
  return power;
}

std::int64_t MoeRouting::tokens_of_rank(const MoeShape& shape, int rank) {
  const std::int64_t rows = rows_of_rank(shape);
  return std::clamp<std::int64_t>(shape.tokens - rank * rows, 0, rows);
}

MoeRouting::MoeRouting(const MoeShape& shape, std::vector<std::int32_t> choices)
    : shape_(shape),
      rows_(rows_of_rank(shape)),
      choices_(std::move(choices)),
      place_(choices_.size()),
      per_expert_(static_cast<std::size_t>(shape.experts)) {
  const std::int64_t k = shape_.per_token, experts = shape_.experts;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i] < 0 || choices_[i] >= experts) {
      throw std::runtime_error(
          fmt::format("router: token {} has no choice {} among the {} experts: its logits are no numbers",
                      i / static_cast<std::size_t>(k), i % static_cast<std::size_t>(k), experts));
    }
  }
  const std::int64_t capacity =
      shape_.capacity_factor > 0
          ? static_cast<std::int64_t>(
                std::ceil(shape_.capacity_factor * static_cast<double>(rows_ * k) / static_cast<double>(experts)))
          : rows_;
  std::int64_t most = 0;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    const std::size_t begin = static_cast<std::size_t>(std::min(rank * rows_, shape_.tokens) * k),
                      end = begin + static_cast<std::size_t>(tokens_of_rank(shape_, rank) * k);
    std::vector<std::int64_t> count(static_cast<std::size_t>(experts));  // sent to each expert
    for (std::size_t i = begin; i < end; ++i) {
      std::int64_t& own = count[static_cast<std::size_t>(choices_[i])];
      place_[i] = own < capacity ? own++ : -1;
      if (place_[i] < 0) ++dropped_;
    }
    std::vector<std::int64_t> first(count.size());  // of an expert in its rank's block
    const auto of_rank = static_cast<std::size_t>(experts / shape_.ranks);
    for (std::size_t e = 0; e < count.size(); ++e) {
      if (e % of_rank != 0) first[e] = first[e - 1] + count[e - 1];
      most = std::max(most, first[e] + count[e]);
      per_expert_[e] += count[e];
    }
    for (std::size_t i = begin; i < end; ++i) {
      if (place_[i] >= 0) place_[i] += first[static_cast<std::size_t>(choices_[i])];
    }
  }
  block_ = rows_in_use(most);
}

std::vector<std::int32_t> MoeRouting::send_rows(int rank) const {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(shape_.ranks * block_), -1);
  const std::int64_t k = shape_.per_token, first = std::min(rank * rows_, shape_.tokens);
  for (std::int64_t i = 0; i < tokens_of_rank(shape_, rank) * k; ++i) {
    const auto choice = static_cast<std::size_t>(first * k + i);
    if (place_[choice] >= 0)
      rows[static_cast<std::size_t>(owner(choices_[choice]) * block_ + place_[choice])] =
          static_cast<std::int32_t>(i / k);
  }
  return rows;
}

std::vector<std::int32_t> MoeRouting::expert_rows(std::int64_t expert) const {
  std::vector<std::int32_t> rows;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i] != expert || place_[i] < 0) continue;
    const std::int64_t source = static_cast<std::int64_t>(i) / shape_.per_token / rows_;
    rows.push_back(static_cast<std::int32_t>(source * block_ + place_[i]));
  }
  return rows;
}

std::vector<std::int32_t> MoeRouting::slots(int rank) const {
  std::vector<std::int32_t> slots;
  const std::int64_t k = shape_.per_token, first = std::min(rank * rows_, shape_.tokens);
  for (std::int64_t i = 0; i < tokens_of_rank(shape_, rank) * k; ++i) {
    const auto choice = static_cast<std::size_t>(first * k + i);
    slots.push_back(
        static_cast<std::int32_t>(place_[choice] < 0 ? -1 : owner(choices_[choice]) * block_ + place_[choice]));
  }
  return slots;
}

}  // namespace kernbench::tp
