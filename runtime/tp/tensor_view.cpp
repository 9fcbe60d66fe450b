#include "runtime/tp/tensor_view.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace kernbench::tp {

namespace {
/// Appends `next` to `block` if the two together are one dense row-major block: a row that goes on, or more full rows.
bool joins(ShardSpec& block, const ShardSpec& next) {
  if (next.offset_bytes != block.offset_bytes + block.nbytes) return false;
  Region& a = block.region;
  const Region& b = next.region;
  if (a.rows == 1 && b.rows == 1 && b.row == a.row && b.col == a.col + a.cols) {
    a.cols += b.cols;
  } else if (b.col == a.col && b.cols == a.cols && b.row == a.row + a.rows) {
    a.rows += b.rows;
  } else {
    return false;
  }
  block.nbytes += next.nbytes;
  return true;
}
}  // namespace

TensorView::TensorView(Va base, const TensorGeometry& geometry, std::int64_t first_row)
    : base_(base), item_(size_of(geometry.dtype)), first_row_(first_row) {
  std::set<std::uint64_t> seen;
  for (const ShardSpec& shard : geometry.shards()) {
    if (!shard.region.empty() && seen.insert(shard.offset_bytes).second) blocks_.push_back(shard);
  }
  for (std::size_t before = 0; before != blocks_.size();) {  // rows first, then what they make up
    before = blocks_.size();
    std::vector<ShardSpec> joined;
    for (const ShardSpec& block : blocks_) {
      if (joined.empty() || !joins(joined.back(), block)) joined.push_back(block);
    }
    blocks_ = std::move(joined);
  }
}

TensorView::Place TensorView::at(std::int64_t row, std::int64_t col) const {
  for (const ShardSpec& shard : blocks_) {
    const std::int64_t r = row + first_row_ - shard.region.row, c = col - shard.region.col;
    if (r < 0 || r >= shard.region.rows || c < 0 || c >= shard.region.cols) continue;
    const auto element = static_cast<std::uint64_t>(r * shard.region.cols + c);
    return {base_ + shard.offset_bytes + element * item_, shard.region.cols};
  }
  throw std::out_of_range("no shard holds the element");
}

void TensorView::row_cuts(std::int64_t begin, std::int64_t end, std::vector<std::int64_t>& cuts) const {
  for (const ShardSpec& shard : blocks_) {
    const std::int64_t row = shard.region.row - first_row_;
    if (row > begin && row < end) cuts.push_back(row);
  }
}

void TensorView::col_cuts(std::int64_t begin, std::int64_t end, std::vector<std::int64_t>& cuts) const {
  for (const ShardSpec& shard : blocks_) {
    if (shard.region.col > begin && shard.region.col < end) cuts.push_back(shard.region.col);
  }
}

std::vector<Piece> pieces(std::int64_t begin, std::int64_t end, std::vector<std::int64_t> cuts, std::int64_t longest) {
  cuts.push_back(end);
  std::sort(cuts.begin(), cuts.end());
  std::vector<Piece> list;
  for (const std::int64_t cut : cuts) {
    while (begin < cut) {
      list.push_back({begin, std::min(cut - begin, longest)});
      begin += list.back().length;
    }
  }
  return list;
}

}  // namespace kernbench::tp
