#pragma once
#include <cstdint>
#include <string>

#include "runtime/tp/kv_cache.h"
#include "runtime/tp/rotary.h"

namespace kernbench::tp {

/// Tensors of the launches of an attention. All on one SIP, of the cache's dtype but for the partial sums.
struct AttentionOperands {
  Tensor queries;         ///< rows of head dim, by `layout`
  QueryLayout layout;     ///< of the queries
  Tensor context;         ///< (batch * length, query heads * head dim): the result; rows lie one after the other
  Tensor partial;         ///< (PEs * group, head dim) f32; an empty handle: every PE walks over all of a sequence
  Tensor numbers;         ///< (2 * PEs, group) f32: maxima of the PEs, then their weights
  std::int64_t past = 0;  ///< positions in the cache before those of the queries
};

/// context = softmax(queries keys^T / sqrt(head dim), causal) values. Submits one launch, or two with `partial`, and
/// returns the last.
Handle attend(Context& context, const std::string& name, const AttentionOperands& operands, const KvCache& cache);

/// Tokens of a block of queries: as many as keep every PE of a sequence busy, within what one block may have.
std::int64_t query_tile(const CacheLayout& cache, std::int64_t group, std::int64_t length);
/// One token whose sequence lies on several PEs: its attention is split over them.
bool splits_cache(const CacheLayout& cache, std::int64_t length);

}  // namespace kernbench::tp
