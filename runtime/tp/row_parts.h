#pragma once
#include <cstdint>
#include <vector>

#include "runtime/tp/tensor_view.h"
#include "tlm/kernel/tl.h"

namespace kernbench::tp {

/// Columns [col, col + parts * width) of a row, which a kernel holds as a tile of `parts` x `width`: rows that lie in
/// equal shards, one after the other in memory, come by a single gather instead of a load for each shard.
struct RowPart {
  std::int64_t col = 0, parts = 1, width = 0;
};

/// How whole rows of some tensors of one width are held in TCM, so that arithmetic on them can meet.
///
/// One part where all lie in one piece (then several rows may be one tile); one of equal shards where those that do not
/// agree on them; else a part for each column at which one of them is cut.
///
/// views     what is read and written; the same columns of each meet
/// begin     columns [begin, end) are written, all are read
/// gathers   what is written lies in one piece, so that equal shards may be held side by side
std::vector<RowPart> row_parts(const std::vector<const TensorView*>& views, std::int64_t columns, std::int64_t begin,
                               std::int64_t end, bool gathers);

/// Loads `part` of rows [row, row + rows). REQUIRES: rows is 1 if the part has several; no view is cut between them.
Tile load_rows(Tl& tl, const TensorView& view, const RowPart& part, std::int64_t row, std::int64_t rows, DType dtype);
/// The other way. REQUIRES: the part lies in one piece.
void store_rows(Tl& tl, const TensorView& view, const RowPart& part, std::int64_t row, const Tile& tile);

}  // namespace kernbench::tp
