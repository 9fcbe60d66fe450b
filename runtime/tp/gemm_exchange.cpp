#include "runtime/tp/gemm_exchange.h"

#include <algorithm>
#include <utility>

#include "runtime/tp/own_shard.h"

namespace kernbench::tp {

Piece SumExchange::held(const Owner& owner, const Piece& rows, const Piece& cols) {
  const Region& part = owner.part;
  if (cols.begin < part.col || cols.begin >= part.col + part.cols) return {rows.begin, 0};
  const std::int64_t begin = std::max(part.row, rows.begin);
  return {begin, std::min(part.row + part.rows, rows.begin + rows.length) - begin};
}

SumExchange::SumExchange(Va c, const GemmCall& call, Tl& tl) : wide_(compute_type(call.c.dtype)), tl_(tl) {
  const auto self = static_cast<unsigned>(tl.program_id(0));
  const auto cube = static_cast<int>(tl.cube_place(c));
  const std::vector<unsigned> pes = by_place(call.pes_of_cube);
  const auto pe_of = [&](const ShardSpec& shard) { return pes.at(static_cast<std::size_t>(shard.pe)); };
  for (const ShardSpec& shard : call.b.shards()) {
    if (shard.cube != cube || shard.region.empty()) continue;
    sharers_.push_back(pe_of(shard));
    if (sharers_.back() == self) k_ = {shard.region.row, shard.region.rows};
  }
  std::sort(sharers_.begin(), sharers_.end());
  for (const ShardSpec& shard : call.c.shards()) {
    if (shard.cube != cube || shard.region.empty()) continue;
    owners_.push_back({pe_of(shard), shard.region});
    const Region& own = shard.region;
    if (part_.empty()) part_ = own;
    const std::int64_t row = std::min(part_.row, own.row), col = std::min(part_.col, own.col);
    part_ = {row, col, std::max(part_.row + part_.rows, own.row + own.rows) - row,
             std::max(part_.col + part_.cols, own.col + own.cols) - col};
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
    const Piece theirs = held(owner, rows, cols);
    if (owner.pe != self && theirs.length > 0) tl_.send(Direction::local(owner.pe), own_rows(theirs));
  }
}

std::vector<SumExchange::Sum> SumExchange::receive() {
  std::vector<Sum> sums;
  if (!open_) return sums;
  const auto self = static_cast<unsigned>(tl_.program_id(0));
  for (const Owner& owner : owners_) {
    const Piece rows = held(owner, sent_.rows, sent_.cols);
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
