#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/placement_units.h"
#include "sc_main/check/numerics.h"
#include "tlm/kernel/call.h"

namespace kernbench {

/// What a collective is asked to do, apart from its size.
struct CollectiveCase {
  CollectiveOp op = CollectiveOp::all_reduce;
  DType dtype = DType::f16;
  ReduceOp reduce_op = ReduceOp::sum;
  Scope scope = Scope::sip;
  bool in_place = true;
  int root = 0;  ///< group rank
  int ranks = 1;
  DPPolicy in_policy, out_policy;  ///< equal in place
};

/// A rectangle of a tensor, row by row.
struct TileView {
  Region region;
  std::int64_t columns = 0;  ///< of the tensor
  std::int64_t count() const { return region.rows * region.cols; }
  /// Index in the tensor's row-major contents.
  std::size_t at(std::int64_t element) const {
    return static_cast<std::size_t>((region.row + element / region.cols) * columns + region.col +
                                    element % region.cols);
  }
};

/// Part of what a rank holds: elements [offset, offset + n) of a tile.
struct Place {
  int rank = 0;  ///< of the group
  TileView tile;
  std::int64_t offset = 0;
};

/// A block of n elements: where it comes from and where it has to be in the end.
struct Flow {
  std::vector<Place> sources;       ///< in tensors `in`; several: they are reduced
  std::vector<Place> destinations;  ///< in tensors `out`
  bool reduces = false;
};

/// Shapes and meaning of a collective for blocks of `n` elements, as docs/collectives.md defines it: contributor
/// k = rank * C + u is the u-th tile of a rank, p = ranks * C.
class CollectiveLayout {
 public:
  /// Throws std::invalid_argument where the placement does not fit the operation.
  CollectiveLayout(const CollectiveCase& c, const PlacementUnits& units, std::int64_t n);

  int contributions() const { return case_.ranks * per_rank_; }
  Shape in_shape() const { return in_shape_; }    ///< of every rank that has one
  Shape out_shape() const { return out_shape_; }  ///< in place: as in
  bool has_in(int rank) const;
  bool has_out(int rank) const;  ///< a tensor beside `in`, or in place
  std::int64_t block() const { return n_; }
  std::vector<Flow> flows() const;  ///< by where they go

 private:
  TileView in_tile(int u) const { return in_tiles_[static_cast<std::size_t>(u)]; }
  TileView out_tile(int u) const { return out_tiles_[static_cast<std::size_t>(u)]; }

  CollectiveCase case_;
  std::int64_t n_;
  int per_rank_ = 1;  ///< C
  Shape in_shape_, out_shape_;
  std::vector<TileView> in_tiles_, out_tiles_;  ///< of a rank; one that is the whole tensor where it is a whole
};

/// The size, as the operation counts it, of blocks of which every shard has `elements` elements.
std::uint64_t size_of_shards(const CollectiveCase& c, const PlacementUnits& units, std::int64_t elements);

/// p: contributors of all ranks.
int contributions_of(const CollectiveCase& c, const PlacementUnits& units);
/// Blocks that the operation counts in its size: nccl-tests takes the whole array of p blocks for some, one block for
/// the others.
int blocks_in_size(CollectiveOp op, int contributions);
/// busbw / algbw for p contributions. Source: the notes on performance of nccl-tests.
double bus_factor(CollectiveOp op, int contributions);

/// What the ranks' inputs are made of, rank r's of stream r: exact to reduce.
Pattern input_pattern(const CollectiveCase& c, const PlacementUnits& units, std::uint64_t seed);

/// Bytes of the tensors before and after, by rank; of `out` each copy, none on ranks that have no `out`.
struct CollectiveData {
  std::vector<std::vector<std::uint8_t>> inputs;
  std::vector<std::vector<std::vector<std::uint8_t>>> outputs;
};
/// Element by element: what is only moved must agree to the bit; reductions as Reference says, and all ranks and copies
/// with each other to the bit.
Comparison compare_collective(const CollectiveCase& c, const CollectiveLayout& layout, const CollectiveData& data);

}  // namespace kernbench
