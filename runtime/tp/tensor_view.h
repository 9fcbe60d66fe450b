#pragma once
#include <cstdint>
#include <vector>

#include "runtime/tensor_geometry.h"

namespace kernbench::tp {

/// Where the elements of a placed tensor lie in virtual memory, for kernels that reach any part of it from any PE. The
/// packed range has no gaps, so shards that go on where the one before ends are one block: a single row is one whatever
/// its placement.
class TensorView {
 public:
  TensorView() = default;  ///< of no tensor
  /// Of its rows from `first_row` on, which is row 0 of the view.
  TensorView(Va base, const TensorGeometry& geometry, std::int64_t first_row = 0);

  /// First element of a part of a block, and the distance between its rows.
  struct Place {
    Va va = 0;
    std::int64_t row_stride = 0;  ///< elements
  };
  /// Of element (row, col). REQUIRES: it is inside the tensor.
  Place at(std::int64_t row, std::int64_t col) const;

  /// Adds the borders between blocks that lie strictly inside [begin, end) to `cuts`.
  void row_cuts(std::int64_t begin, std::int64_t end, std::vector<std::int64_t>& cuts) const;
  void col_cuts(std::int64_t begin, std::int64_t end, std::vector<std::int64_t>& cuts) const;

 private:
  Va base_ = 0;
  std::uint64_t item_ = 1;
  std::int64_t first_row_ = 0;
  std::vector<ShardSpec> blocks_;  // one of each set of copies, none empty; neighbours in memory joined
};

/// [begin, end) in pieces that end at every cut and are at most `longest`.
struct Piece {
  std::int64_t begin = 0, length = 0;
};
std::vector<Piece> pieces(std::int64_t begin, std::int64_t end, std::vector<std::int64_t> cuts, std::int64_t longest);

}  // namespace kernbench::tp
