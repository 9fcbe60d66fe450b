#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/tp/kv_cache.h"
#include "runtime/tp/linear.h"
#include "runtime/tp/rotary.h"

namespace kernbench::tp {

/// Options of an attention layer.
struct AttentionOptions {
  std::string name = "attention";  ///< of the layer: prefix of its tensors' and launches' names
  DType dtype = DType::f16;        ///< of weights, input, output and cache; scores are f32
  std::int64_t heads = 1;          ///< query heads of all ranks
  std::int64_t kv_heads = 1;       ///< key/value heads of all ranks; each serves heads / kv_heads query heads. Fewer
                                   ///< than ranks: several ranks keep a copy of the same one, as in Megatron
  std::int64_t head_dim = 1;       ///< elements of a head
  bool bias = false;               ///< of both projections
  bool sequence_parallel = false;  ///< rows of input and output are split over the ranks (regions.h)
  int overlap_chunks = 1;          ///< of the rows, in the output projection (LinearOptions)
  std::int64_t page = 32;          ///< positions that a cache keeps together
  LinearPlacement placement;       ///< inside each SIP, of both projections
};

/// What a pass writes, placed beforehand by place().
struct AttentionTensors {
  ForwardTensors qkv;       ///< (batch * length, own heads)
  Tensor queries;           ///< rows of head dim, by QueryLayout
  Tensor partial, numbers;  ///< where a sequence's cache is split: sums of the PEs, f32; their maxima and weights
  Tensor context;           ///< (batch * length, own query heads * head dim)
  ForwardTensors output;    ///< what forward returns
};

/// Causal self-attention with a KV cache: multi-head, or grouped-query with fewer key/value heads. Rank r owns query
/// heads [r h, (r + 1) h) and the key/value heads that they use. QKV column-parallel, output row-parallel.
///
/// Scores never leave TCM: a PE holds a block of queries and walks over keys and values (online soft max). Many tokens
/// are dealt to the PEs in blocks. A single one is split over the PEs that hold its sequence's cache, each of which
/// reads its own part; a second launch puts their sums together.
class SelfAttention {
 public:
  /// Places the rank's weights, zero-filled. Throws std::invalid_argument naming layer, dimension and world size where
  /// the ranks do not divide the heads, of ranks and key/value heads neither divides the other, or the key/value heads
  /// do not divide the query heads.
  ///
  /// width  columns of input and output
  SelfAttention(const ParallelState& state, std::int64_t width, AttentionOptions options);

  /// Of the whole model: (width, heads * head_dim), twice (width, kv_heads * head_dim), (heads * head_dim, width).
  void load_weights(const WeightPattern& q, const WeightPattern& k, const WeightPattern& v, const WeightPattern& out);
  /// (1, columns) of the same four; std::logic_error without biases.
  void load_biases(const WeightPattern& q, const WeightPattern& k, const WeightPattern& v, const WeightPattern& out);

  /// A cache for this layer; throws as KvCache does.
  KvCache cache(std::int64_t batch, std::int64_t positions) const;
  /// Tensors of passes of `length` tokens of each of the cache's sequences.
  AttentionTensors place(const KvCache& cache, std::int64_t length) const;
  void prepare(const Tensor& x,
               const AttentionTensors& tensors) const;  ///< installs the queues of such passes; every rank calls it

  /// x (batch * length, width), sequence after sequence -> the same shape on every rank. The tokens' keys and values
  /// are appended to the cache; each token sees what was there and itself. 4 launches and an all-reduce, with a split
  /// cache 5 launches, with biases one more; waits (pass.h). Throws as KvCache::append, and on another shape or dtype.
  /// Sequence-parallel: both are this rank's rows, by an all-gather and a reduce-scatter.
  ///
  /// rotary  an empty one: positions are not turned
  Tensor forward(const Tensor& x, KvCache& cache, const RotaryTable& rotary, const AttentionTensors& tensors) const;
  Tensor forward(const Tensor& x, KvCache& cache, const RotaryTable& rotary) const;  ///< places the tensors, too

  // The parts of forward, one after the other, so that each can be timed.
  Tensor project(const Tensor& x, const AttentionTensors& tensors) const;  ///< queries, keys and values
  /// Rotary embedding, cache and scores: what goes by positions, into `tensors.context`.
  void core(const Tensor& qkv, KvCache& cache, const RotaryTable& rotary, const AttentionTensors& tensors) const;
  Tensor output(const AttentionTensors& tensors) const;  ///< of `tensors.context`

 private:
  int row_shares() const;  // of the rows of input and output
  std::int64_t own_columns() const { return (own_heads_ + 2 * own_kv_heads_) * options_.head_dim; }
  WeightPattern fused(const WeightPattern& q, const WeightPattern& k, const WeightPattern& v) const;

  ParallelState state_;
  std::int64_t width_;
  AttentionOptions options_;
  std::int64_t own_heads_ = 0, own_kv_heads_ = 0;
  std::optional<ColumnParallelLinear> qkv_;
  std::optional<RowParallelLinear> out_;
};

}  // namespace kernbench::tp
