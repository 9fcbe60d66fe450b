#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/tp/parallel_state.h"
#include "tlm/kernel/tl.h"

namespace kernbench::tp {

/// Where the rows of a KV cache lie, on the PE as on the host. A sequence is one key/value head of one entry of the
/// batch. The PEs are cut into as many runs as there are sequences; each run keeps its sequence in pages of some
/// positions, dealt to its PEs in turn, so that all of them hold about as much whatever the length. Where there are
/// more sequences than PEs, each PE keeps some whole ones. What a PE holds of a sequence is one piece of memory.
struct CacheLayout {
  std::int64_t sequences = 0;   ///< batch entries times heads
  std::int64_t pes = 0;         ///< that the cache spreads over
  std::int64_t run = 1;         ///< PEs of a sequence
  std::int64_t of_each_pe = 1;  ///< sequences that a PE has a part of
  std::int64_t pages = 0;       ///< of one sequence on one PE
  std::int64_t page = 0;        ///< positions
  std::int64_t positions = 0;   ///< that a sequence may have
  /// That a PE keeps, of all its sequences.
  std::int64_t rows_of_pe() const { return of_each_pe * pages * page; }
  /// Of all PEs.
  std::int64_t rows() const { return pes * rows_of_pe(); }
  /// Number of the PE, in the order of shards, that has page `index` of a sequence.
  std::int64_t pe_of(std::int64_t sequence, std::int64_t index) const {
    return sequences <= pes ? sequence * run + index % run : sequence % pes;
  }
  /// Position of one of those that a PE keeps of a sequence, in their order. `place`: of the PE in its run.
  std::int64_t position(std::int64_t place, std::int64_t index) const {
    return (index / page * run + place) * page + index % page;
  }
  /// Row of a position, and of all that follow in its page.
  std::int64_t row(std::int64_t sequence, std::int64_t position) const {
    const std::int64_t index = position / page, kept = sequences <= pes ? 0 : sequence / pes;
    return pe_of(sequence, index) * rows_of_pe() + (kept * pages + index / run) * page + position % page;
  }
};

/// `sequences` of up to `positions` each, over `pes` PEs. REQUIRES: all are 1 or more.
CacheLayout cache_layout(std::int64_t sequences, std::int64_t pes, std::int64_t positions, std::int64_t page);

/// Options of a cache.
struct KvCacheOptions {
  std::string name = "attention";  ///< of the layer
  DType dtype = DType::f16;        ///< of keys and values
  std::int64_t batch = 1;          ///< sequences of tokens
  std::int64_t heads = 1;          ///< key/value heads of this rank
  std::int64_t head_dim = 1;       ///< elements of a key
  std::int64_t positions = 1;      ///< that each may have
  std::int64_t page = 32;          ///< positions that lie together. assumed: the rows of the GEMM array
};

/// Keys and values of one layer and rank. A handle: copies share the memory, each has its own length.
class KvCache {
 public:
  KvCache() = default;  ///< none
  /// Places it; takes the simulated time of the map messages. Throws std::invalid_argument on sizes below 1, and
  /// OutOfDeviceMemory with layer, dimensions and bytes if the memory of a PE is too small.
  KvCache(Context& context, const KvCacheOptions& options);

  const Tensor& keys() const { return keys_; }                ///< a position a row, by layout()
  const Tensor& values() const { return values_; }            ///< likewise
  const CacheLayout& layout() const { return layout_; }       ///< where rows lie
  const KvCacheOptions& options() const { return options_; }  ///< as given
  std::int64_t length() const { return length_; }             ///< positions that are there
  /// Makes room for `count` positions more and returns where they begin. Throws std::invalid_argument with layer and
  /// numbers if the cache has fewer left.
  std::int64_t append(std::int64_t count);
  /// value(entry, head, position, i) of the batch's entry and this rank's head.
  using Contents = std::function<double(std::int64_t entry, std::int64_t head, std::int64_t position, std::int64_t i)>;
  /// Contents of positions [0, count), as if as many had been appended. Whatever there was is gone. Throws as append.
  void fill(std::int64_t count, const Contents& keys, const Contents& values);
  /// Forgets what is beyond. REQUIRES: length <= length().
  void truncate(std::int64_t length) { length_ = length; }
  std::uint64_t bytes() const;  ///< of keys and values

 private:
  KvCacheOptions options_;
  CacheLayout layout_;
  Tensor keys_, values_;
  std::int64_t length_ = 0;
};

}  // namespace kernbench::tp
