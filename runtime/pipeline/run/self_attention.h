#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/pipeline/graph.h"

namespace kernbench::pipeline {

/// Self-attention of a decoder layer as exporters write it: a projection is split into heads, queries and keys are
/// turned by their positions (x cos + rotate_half(x) sin) or not, keys and values are repeated for groups of queries,
/// and heads are put side by side again behind a causal scaled_dot_product_attention.
struct SelfAttentionMatch {
  std::size_t projection = 0;                 ///< node (batch * length, [q heads | k heads | v heads] * head_dim)
  std::size_t result = 0;                     ///< node (batch * length, heads * head_dim)
  std::optional<std::size_t> cosines, sines;  ///< inputs (length, head_dim)
  std::vector<std::size_t> absorbed;          ///< nodes before the result that are of no other use
  std::int64_t batch = 1, length = 1, heads = 1, kv_heads = 1, head_dim = 1;
};

/// What `node` is the middle of; nothing if any part of it differs, or somebody else reads what lies between.
std::optional<SelfAttentionMatch> match_self_attention(const Graph& graph, std::size_t node);

}  // namespace kernbench::pipeline
