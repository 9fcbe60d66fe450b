#include "runtime/tp/row_parts.h"

#include <algorithm>

namespace kernbench::tp {

namespace {
std::vector<std::int64_t> cuts_of(const TensorView& view, std::int64_t columns) {
  std::vector<std::int64_t> cuts;
  view.col_cuts(0, columns, cuts);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

/// Width of equal shards, 0 if they are not.
std::int64_t equal_width(const std::vector<std::int64_t>& cuts, std::int64_t columns) {
  const std::int64_t width = cuts.front();
  if (columns % width != 0 || static_cast<std::int64_t>(cuts.size()) != columns / width - 1) return 0;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i] != width * static_cast<std::int64_t>(i + 1)) return 0;
  }
  return width;
}
}  // namespace

std::vector<RowPart> row_parts(const std::vector<const TensorView*>& views, std::int64_t columns, std::int64_t begin,
                               std::int64_t end, bool gathers) {
  std::vector<std::int64_t> all;
  std::int64_t width = columns;
  bool alike = gathers && begin == 0 && end == columns;
  for (const TensorView* view : views) {
    const std::vector<std::int64_t> cuts = cuts_of(*view, columns);
    if (cuts.empty()) continue;
    const std::int64_t own = equal_width(cuts, columns);
    alike = alike && own != 0 && (width == columns || width == own);
    if (own != 0) width = own;
    all.insert(all.end(), cuts.begin(), cuts.end());
  }
  if (alike) return {{0, columns / width, width}};
  if (begin > 0) all.push_back(begin);
  if (end < columns) all.push_back(end);
  std::vector<RowPart> parts;
  for (const Piece& piece : pieces(0, columns, all, columns)) parts.push_back({piece.begin, 1, piece.length});
  return parts;
}

Tile load_rows(Tl& tl, const TensorView& view, const RowPart& part, std::int64_t row, std::int64_t rows, DType dtype) {
  const TensorView::Place first = view.at(row, part.col);
  if (part.parts == 1) return tl.load(first.va, {rows, part.width}, dtype, first.row_stride);
  if (first.row_stride > part.width) return tl.load(first.va, {part.parts, part.width}, dtype);
  // Equal shards: each row of one has the width of the part, and whole shards lie between those of two of them.
  std::vector<std::int64_t> index;
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(part.width) * size_of(dtype);
  for (std::int64_t i = 0; i < part.parts; ++i) {
    const Va va = view.at(row, part.col + i * part.width).va;
    index.push_back(static_cast<std::int64_t>((va - first.va) / row_bytes));
  }
  return tl.gather(first.va, index, part.width, dtype);
}

void store_rows(Tl& tl, const TensorView& view, const RowPart& part, std::int64_t row, const Tile& tile) {
  const TensorView::Place first = view.at(row, part.col);
  tl.store(first.va, tile, part.parts == 1 ? first.row_stride : 0);
}

}  // namespace kernbench::tp
