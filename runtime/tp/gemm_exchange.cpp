#include "runtime/tp/gemm_exchange.h"

#include <algorithm>
#include <utility>

#include "runtime/tp/own_shard.h"

namespace kernbench::tp {

namespace {
Piece rows_in_both(const Piece& a, const Piece& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::min(a.begin + a.length, b.begin + b.length) - begin};
}
}  // namespace

SumExchange::SumExchange(const GemmCall& call, Tl& tl) : wide_(compute_type(call.c.dtype)), tl_(tl) {
  const auto self = static_cast<int>(tl.program_id(0)), cube = static_cast<int>(tl.program_id(1));
  for (const ShardSpec& shard : call.b.shards()) {
    if (shard.cube != cube || shard.region.empty()) continue;
    sharers_.push_back(static_cast<unsigned>(shard.pe));
    if (shard.pe == self) k_ = {shard.region.row, shard.region.rows};
  }
  std::sort(sharers_.begin(), sharers_.end());
  for (const ShardSpec& shard : call.c.shards()) {
    if (shard.cube != cube || shard.region.empty()) continue;
    owners_.push_back({static_cast<unsigned>(shard.pe), {shard.region.row, shard.region.rows}});
    const std::int64_t begin = part_.rows == 0 ? shard.region.row : std::min(part_.row, shard.region.row);
    const std::int64_t end = std::max(part_.row + part_.rows, shard.region.row + shard.region.rows);
    part_ = {begin, shard.region.col, end - begin, shard.region.cols};
  }
}

Tile SumExchange::own_rows(const Piece& rows) const {
  const bool all = rows.length == sent_.rows.length;
  return all ? sent_.tile : tl_.slice(sent_.tile, rows.begin - sent_.rows.begin, rows.length);
}

void SumExchange::send(const Piece& rows, const Piece& cols, Tile sum) {
  open_ = true;
  sent_ = {rows, cols, std::move(sum)};
  const auto self = static_cast<unsigned>(tl_.program_id(0));
  std::size_t first = 0;  // the owner behind this PE, so that not all send to one at once
  while (first < owners_.size() && owners_[first].pe <= self) ++first;
  for (std::size_t i = 0; sent_.tile && i < owners_.size(); ++i) {
    const Owner& owner = owners_[(first + i) % owners_.size()];
    const Piece theirs = rows_in_both(owner.rows, rows);
    if (owner.pe != self && theirs.length > 0) tl_.send(Direction::local(owner.pe), own_rows(theirs));
  }
}

std::vector<SumExchange::Sum> SumExchange::receive() {
  std::vector<Sum> sums;
  if (!open_) return sums;
  const auto self = static_cast<unsigned>(tl_.program_id(0));
  for (const Owner& owner : owners_) {
    const Piece rows = rows_in_both(owner.rows, sent_.rows);
    if (owner.pe != self || rows.length <= 0) continue;
    Tile sum;
    for (const unsigned pe : sharers_) {
      const Tile part =
          pe == self ? own_rows(rows) : tl_.recv(Direction::local(pe), {rows.length, sent_.cols.length}, wide_);
      sum = sum ? sum + part : part;
    }
    sums.push_back({rows, sent_.cols, std::move(sum)});
  }
  open_ = false;
  sent_ = {};
  return sums;
}

}  // namespace kernbench::tp
