#include "models/pe/dma/burst_plan.h"

#include <algorithm>

namespace kernbench::pe {

BurstPlan::BurstPlan(const Op& op, std::uint32_t burst_bytes) : op_(op), burst_bytes_(burst_bytes) {
  const TileRef& tile = op.kind == OpKind::store ? op.in[0] : op.out;
  tcm_ = tile.tcm;
  row_bytes_ = std::uint64_t{tile.cols} * size_of(tile.dtype);
  rows_ = row_bytes_ == 0 ? 0 : tile.rows;
  if (op.kind != OpKind::gather && op.stride_bytes == row_bytes_) {
    row_bytes_ *= rows_;
    rows_ = std::min<std::uint64_t>(rows_, 1);
  }
}

bool BurstPlan::next_row() {
  if (row_ == rows_) return false;
  const std::uint64_t row = op_.kind == OpKind::gather ? static_cast<std::uint64_t>(op_.detail->index[row_]) : row_;
  const Va va = op_.va + row * op_.stride_bytes;
  if (va != va_) mapped_.bytes = 0;
  va_ = va;
  left_ = row_bytes_;
  ++row_;
  return true;
}

BurstPlan::Next BurstPlan::next(Mmu& mmu, Burst& burst) {
  if (left_ == 0 && !next_row()) return Next::end;
  burst.walk = 0;
  if (const std::uint64_t page = mmu.page(va_); page != page_) {
    burst.walk = mmu.look_up(page);
    page_ = page;
  }
  if (mapped_.bytes == 0) {
    const auto translation = mmu.translate(va_);
    if (!translation) return Next::fault;
    mapped_ = *translation;
  }
  const std::uint64_t to_boundary = burst_bytes_ - mapped_.target.offset % burst_bytes_;
  const auto bytes = static_cast<std::uint32_t>(std::min({left_, mapped_.bytes, to_boundary}));
  burst.at = mapped_.target;
  burst.tcm = tcm_;
  burst.bytes = bytes;
  va_ += bytes;
  left_ -= bytes;
  tcm_ += bytes;
  mapped_.target.offset += bytes;
  mapped_.bytes -= bytes;
  return Next::burst;
}

}  // namespace kernbench::pe
