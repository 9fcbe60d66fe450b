#pragma once
#include <cstdint>
#include <string>

#include "runtime/tp/kv_cache.h"
#include "runtime/tp/parallel_state.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

/// Cosines and sines of rotary position embedding, f32, for positions from 0 on: element i of the first half of a head
/// turns against element i of the second by position / theta^(2 i / head_dim) (as in Llama's published weights). One
/// serves all layers of a rank.
class RotaryTable {
 public:
  RotaryTable() = default;  ///< none: heads stay as they are
  /// Places and fills it, a copy in each cube. Throws std::invalid_argument on an odd head dimension.
  RotaryTable(const ParallelState& state, std::int64_t positions, std::int64_t head_dim, double theta);
  explicit operator bool() const { return static_cast<bool>(table_); }  ///< there is one
  const Tensor& table() const { return table_; }                        ///< (positions, head_dim): cosines, sines

 private:
  Tensor table_;
};

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

}  // namespace kernbench::tp
