#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tp/kv_cache.h"
#include "runtime/tp/rotary.h"

namespace kernbench::tp {

/// How queries stand for the attention's kernel: blocks of `tile` tokens, in each of them the heads of a group, in each
/// head its tokens, so that a block is one tile of rows that share a key/value head.
struct QueryLayout {
  std::int64_t kv_heads = 1;  ///< of the rank
  std::int64_t group = 1;     ///< query heads of each
  std::int64_t length = 1;    ///< tokens of a sequence
  std::int64_t tile = 1;      ///< tokens of a block; the last may have fewer
  std::int64_t tokens_of(std::int64_t block) const {
    return length - block * tile < tile ? length - block * tile : tile;
  }
  /// First row of a block of a sequence (entry of the batch * kv_heads + head).
  std::int64_t row(std::int64_t sequence, std::int64_t block) const {
    return (sequence * length + block * tile) * group;
  }
};

/// Takes what a QKV projection left, (batch * length, [q heads | k heads | v heads] * head_dim), apart: turns queries
/// and keys by their position, and writes queries in their layout, keys and values into the cache from `start` on. One
/// launch and one pass, on the PEs that hold the projection. Submits and returns at once.
Handle rotate_and_store(Context& context, const std::string& name, const Tensor& qkv, const Tensor& queries,
                        const QueryLayout& layout, const KvCache& cache, const RotaryTable& rotary, std::int64_t start);

/// What the attention of one token after `past` others costs, as LaunchOptions::work: how many PEs of a sequence hold a
/// position, how many positions the PE with the most holds (to a 256th: they set the time) and how many there are in
/// all (to a 64th: they set the energy). The last page, which grows, lies on a PE that waits for fuller ones.
std::vector<std::int64_t> decode_work(const QueryLayout& layout, const CacheLayout& cache, std::int64_t head_dim,
                                      std::int64_t past);

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
/// returns them in order.
std::vector<Handle> attend(Context& context, const std::string& name, const AttentionOperands& operands,
                           const KvCache& cache);

/// Tokens of a block of queries: as many as keep every PE of a sequence busy, within what one block may have and TCM
/// holds.
std::int64_t query_tile(const MachineMap& map, const KvCache& cache, std::int64_t group, std::int64_t length);
/// One token whose sequence lies on several PEs: its attention is split over them.
bool splits_cache(const CacheLayout& cache, std::int64_t length);

}  // namespace kernbench::tp
