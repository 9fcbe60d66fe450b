#pragma once
#include <cstdint>
#include <vector>

#include "ccl/contract/grid.h"
#include "tlm/kernel/tl.h"

/// What kernels of collectives are written with: slices of memory and phases over them.
namespace kernbench::ccl {

/// A run of elements in memory.
struct Slice {
  Va va = 0;
  std::int64_t count = 0;
  std::size_t item = 1;  ///< bytes per element

  /// Part `i` of `n` that differ by at most one element; the first ones are the longer.
  Slice part(std::int64_t i, std::int64_t n) const {
    const std::int64_t each = count / n, longer = count % n;
    const std::int64_t begin = i * each + (i < longer ? i : longer);
    return {va + static_cast<Va>(begin) * item, each + (i < longer ? 1 : 0), item};
  }
  bool empty() const { return count == 0; }
};

/// A collective call on one PE: loads, stores and queue messages of slices, and the reduction.
///
/// Sums of f16 and bf16 are rounded to the dtype at every addition (docs/decisions/0030-reduction-precision.md).
class Verbs {
 public:
  /// `contributions`: how many values are reduced into one; `avg` divides by it.
  Verbs(Tl& tl, std::int64_t contributions);

  /// This PE's part of the tensor at `base`.
  Slice own(Va base) const;
  Va in() const { return tl_.call().in; }
  Va out() const { return tl_.call().out; }
  std::size_t item() const { return size_of(dtype_); }  ///< bytes of an element
  Tile load(Va va, std::int64_t count) { return tl_.load(va, {1, count}, dtype_); }
  void store(Va va, const Tile& tile) { tl_.store(va, tile); }
  Tile slice(const Tile& tile, std::int64_t begin, std::int64_t count) { return tl_.slice(tile, begin, count); }
  Tile receive(Direction from, std::int64_t count) { return tl_.recv(from, {1, count}, dtype_); }
  Tile load(const Slice& slice) { return tl_.load(slice.va, {1, slice.count}, dtype_); }
  void store(const Slice& slice, const Tile& tile) { tl_.store(slice.va, tile); }
  void send(Direction to, const Tile& tile) { tl_.send(to, tile); }
  Tile receive(Direction from, const Slice& like) { return tl_.recv(from, {1, like.count}, dtype_); }
  void wait(const Tile& tile) { tl_.wait(tile); }
  Tile combine(const Tile& own, const Tile& other);
  /// What a complete reduction still needs: the division of `avg`.
  Tile finish(const Tile& reduced);

  int slots() const { return slots_; }
  /// Elements of one message when `bytes` go one way: the algorithm's `chunk_bytes` if that is set; otherwise a quarter
  /// of them and at least 512 B. At most a slot.
  std::int64_t message_elements(std::int64_t bytes) const;

 private:
  Tl& tl_;
  DType dtype_;
  ReduceOp op_;
  std::int64_t contributions_;
  std::int64_t slot_bytes_, chunk_bytes_;
  int slots_;
  Tile divisor_;
};

/// Calls f(block, step) for every block and step so that blocks overlap: step s of block b falls into round b + s *
/// gap. All PEs walk in the same order, which is what keeps queues free of deadlock: a message sent in a round is
/// received in that round, and used `gap` rounds later.
template <class F>
void skewed(std::int64_t blocks, int steps, int gap, F&& f) {
  for (std::int64_t round = 0; round < blocks + std::int64_t{steps - 1} * gap; ++round) {
    for (int step = steps - 1; step >= 0; --step) {
      const std::int64_t block = round - std::int64_t{step} * gap;
      if (block >= 0 && block < blocks) f(block, step);
    }
  }
}

/// Reduces `slice` over the ring and leaves the result on all of its ranks: reduce-scatter, then all-gather, in both
/// directions at once where there are more than two ranks.
///
/// Each rank sends 2(p-1)/p of the slice, half of it each way. 2(p-1) dependent steps. Chunk c is summed in the order
/// of the ring from rank c on, by one rank, and only copied afterwards: all ranks end with the same bits.
void ring_all_reduce(Verbs& verbs, const RingPosition& ring, Slice slice);

/// Reduces `slice` up a tree and sends the result down again, message by message, both at once.
///
/// Each edge carries the slice once in each direction; 2 * height dependent steps. The root's sum is what all copy. A
/// node at depth d works on message m upwards and m - 2 d (1 + lambda) downwards in the same round, which never blocks
/// with 1 + lambda slots, whatever the real latency (docs/constructions.md, Queues).
void tree_all_reduce(Verbs& verbs, const TreePosition& tree, Slice slice);

/// Copies the root's `slices` to every node of the tree.
void tree_broadcast(Verbs& verbs, const TreePosition& tree, const std::vector<Slice>& slices);

/// All-gather over a line of PEs: PE i of them holds `parts[i]`, and each ends with all of it.
/// `before`, `after`: queues to the neighbours, which the ends do not use.
void line_all_gather(Verbs& verbs, const std::vector<std::vector<Slice>>& parts, int index, Direction before,
                     Direction after);

}  // namespace kernbench::ccl
