#include "runtime/tp/tensor_view.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace kernbench::tp {

TensorView::TensorView(const Tensor& tensor) : base_(tensor.va()), item_(size_of(tensor.dtype())) {
  std::set<std::uint64_t> seen;
  for (const ShardSpec& shard : tensor.shards()) {
    if (!shard.region.empty() && seen.insert(shard.offset_bytes).second) shards_.push_back(shard);
  }
}

TensorView::Place TensorView::at(std::int64_t row, std::int64_t col) const {
  for (const ShardSpec& shard : shards_) {
    const std::int64_t r = row - shard.region.row, c = col - shard.region.col;
    if (r < 0 || r >= shard.region.rows || c < 0 || c >= shard.region.cols) continue;
    const auto element = static_cast<std::uint64_t>(r * shard.region.cols + c);
    return {base_ + shard.offset_bytes + element * item_, shard.region.cols};
  }
  throw std::out_of_range("no shard holds the element");
}

void TensorView::row_cuts(std::int64_t begin, std::int64_t end, std::vector<std::int64_t>& cuts) const {
  for (const ShardSpec& shard : shards_) {
    if (shard.region.row > begin && shard.region.row < end) cuts.push_back(shard.region.row);
  }
}

void TensorView::col_cuts(std::int64_t begin, std::int64_t end, std::vector<std::int64_t>& cuts) const {
  for (const ShardSpec& shard : shards_) {
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
