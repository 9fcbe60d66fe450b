#include "runtime/tp/gemm_kernel.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "runtime/tp/own_shard.h"
#include "tlm/kernel/activation.h"

namespace kernbench::tp {

Tile finish(Tl& tl, Tile sum, const std::optional<TensorView::Place>& bias, std::int64_t cols, DType dtype,
            Activation activation) {
  if (bias) sum = sum + tl.cast(tl.load(bias->va, {1, cols}, dtype), sum.dtype());
  if (const auto op = to_math(activation)) sum = tl.math(*op, {sum});
  return as_type(tl, sum, dtype);
}

namespace {

/// A GEMM as one PE works on it: where its operands lie, and its loops.
class GemmLoops {
 public:
  GemmLoops(Va a, Va b, Va bias, Va c, const GemmCall& call, Tl& tl)
      : a_(a, call.a, call.first_row),
        b_(b, call.b),
        bias_(bias, call.bias),
        c_(c, call.c),
        call_(call),
        has_bias_(bias != 0),
        splits_(call.mapping.kind == GemmMapping::Kind::split),
        tl_(tl) {
    k_ = {0, call.a.shape.cols};
    if (splits_) {
      look_around_cube();
    } else {
      part_ = own_shard(c, call.c, tl).region;
    }
    std::vector<std::int64_t> b_cuts;
    b_.row_cuts(k_.begin, k_.begin + k_.length, b_cuts);
    steps_ = pieces(k_.begin, k_.begin + k_.length, std::move(b_cuts), call.mapping.tile_k);
    if (call.mapping.kind == GemmMapping::Kind::stream) begin_at_own_rows();
    std::vector<std::int64_t> row_cuts, col_cuts;
    const std::int64_t end = part_.row + part_.rows, end_col = part_.col + part_.cols;
    a_.row_cuts(part_.row, end, row_cuts);
    groups_ = pieces(part_.row, end, std::move(row_cuts), call.mapping.tile_m * call.mapping.row_blocks);
    b_.col_cuts(part_.col, end_col, col_cuts);
    if (has_bias_) bias_.col_cuts(part_.col, end_col, col_cuts);
    columns_ = pieces(part_.col, end_col, std::move(col_cuts), call.mapping.tile_n);
  }

  void run() {
    switch (call_.mapping.kind) {
      case GemmMapping::Kind::vector:
        for (const Piece& cols : columns_) vector_columns(cols);
        return;
      case GemmMapping::Kind::passed:
        column_group(columns_);  // all PEs of a cube take part in every pass of a: one pass
        return;
      case GemmMapping::Kind::stream:
      case GemmMapping::Kind::split:
        break;
    }
    for (std::size_t begin = 0; begin < columns_.size();) {
      std::vector<Piece> group;
      std::int64_t width = 0;
      while (begin < columns_.size() && (group.empty() || width + columns_[begin].length <= call_.mapping.tile_n)) {
        width += columns_[begin].length;
        group.push_back(columns_[begin++]);
      }
      column_group(group);
    }
  }

 private:
  /// The sums of a block of c: steps of k go to `sums` in turn, so that one does not wait for the result of the last.
  struct Block {
    Piece rows, cols;
    std::size_t column = 0;  ///< which of the group's
    std::vector<Tile> sums{};
    std::size_t next = 0;
  };

  /// A PE of the cube, and the rows of c that it holds.
  struct Owner {
    unsigned pe = 0;
    Piece rows;
  };

  /// Of a split k: this PE's part of it, who else has some, and who holds which rows of c.
  void look_around_cube() {
    const auto self = static_cast<int>(tl_.program_id(0)), cube = static_cast<int>(tl_.program_id(1));
    k_ = {0, 0};
    for (const ShardSpec& shard : call_.b.shards()) {
      if (shard.cube != cube || shard.region.empty()) continue;
      sharers_.push_back(static_cast<unsigned>(shard.pe));
      if (shard.pe == self) k_ = {shard.region.row, shard.region.rows};
    }
    std::sort(sharers_.begin(), sharers_.end());
    for (const ShardSpec& shard : call_.c.shards()) {
      if (shard.cube != cube || shard.region.empty()) continue;
      owners_.push_back({static_cast<unsigned>(shard.pe), {shard.region.row, shard.region.rows}});
      const std::int64_t begin = part_.rows == 0 ? shard.region.row : std::min(part_.row, shard.region.row);
      const std::int64_t end = std::max(part_.row + part_.rows, shard.region.row + shard.region.rows);
      part_ = {begin, shard.region.col, end - begin, shard.region.cols};
    }
  }

  std::int64_t depth() const { return k_.length; }
  DType dtype() const { return call_.c.dtype; }

  /// Where PEs hold different rows of b, each begins with its own and goes round: otherwise all would read from one
  /// memory at a time.
  void begin_at_own_rows() {
    const auto self = static_cast<int>(tl_.program_id(0)), cube = static_cast<int>(tl_.program_id(1));
    for (const ShardSpec& shard : call_.b.shards()) {
      if (shard.cube != cube || shard.pe != self || shard.region.empty()) continue;
      const auto own = [&](const Piece& step) { return step.begin >= shard.region.row; };
      std::rotate(steps_.begin(), std::find_if(steps_.begin(), steps_.end(), own), steps_.end());
      return;
    }
  }

  Tile load(const TensorView& view, const Piece& rows, const Piece& cols) const {
    const TensorView::Place at = view.at(rows.begin, cols.begin);
    return tl_.load(at.va, {rows.length, cols.length}, dtype(), at.row_stride);
  }

  /// The parts of k of a step in which a lies in one piece.
  std::vector<Piece> parts_of(const Piece& step) const {
    std::vector<std::int64_t> cuts;
    a_.col_cuts(step.begin, step.begin + step.length, cuts);
    return pieces(step.begin, step.begin + step.length, std::move(cuts), step.length);
  }

  void column_group(const std::vector<Piece>& columns) {
    std::uint64_t bytes = 0;
    for (const Piece& cols : columns) bytes += static_cast<std::uint64_t>(cols.length * depth()) * size_of(dtype());
    keeps_ = groups_.size() > 1 && bytes <= call_.kept_bytes;
    kept_.assign(columns.size() * steps_.size(), Tile());
    for (const Piece& group : groups_) {
      std::vector<Block> blocks = blocks_of(group, columns);
      if (call_.mapping.kind == GemmMapping::Kind::passed) {
        passed_rows(group, columns, blocks);
      } else {
        streamed_rows(columns, blocks);
      }
      for (Block& block : blocks) {
        if (splits_) {
          exchange(block);
        } else {
          store(block.rows, block.cols, sum_of(block));
        }
      }
    }
  }

  std::vector<Block> blocks_of(const Piece& group, const std::vector<Piece>& columns) const {
    std::vector<Block> blocks;
    for (const Piece& rows : pieces(group.begin, group.begin + group.length, {}, call_.mapping.tile_m)) {
      for (std::size_t column = 0; column < columns.size(); ++column) {
        blocks.push_back({rows, columns[column], column});
        blocks.back().sums.resize(static_cast<std::size_t>(call_.mapping.chains));
      }
    }
    return blocks;
  }

  void streamed_rows(const std::vector<Piece>& columns, std::vector<Block>& blocks) {
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      const std::vector<Tile> b = weights(columns, step);
      for (const Piece& part : parts_of(steps_[step])) {
        Tile x;
        for (Block& block : blocks) {
          if (block.column == 0) x = recent(load(a_, block.rows, part), of_a_, kTilesOfA);
          add(block, x, rows_of(b[block.column], steps_[step], part));
        }
      }
      if (!keeps_) forget(step, columns.size());
    }
  }

  /// Each PE of the cube fetches every n-th part of a group's rows and passes it on; two rounds ahead of the products.
  void passed_rows(const Piece& group, const std::vector<Piece>& columns, std::vector<Block>& blocks) {
    const std::vector<unsigned> pes = pes_of_cube();
    const auto self = static_cast<unsigned>(tl_.program_id(0));
    struct Part {
      std::size_t step;
      Piece k;
    };
    std::vector<Part> parts;
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      for (const Piece& k : parts_of(steps_[step])) parts.push_back({step, k});
    }
    const std::size_t rounds = (parts.size() + pes.size() - 1) / pes.size();
    // Cubes begin at different parts, so that not all of them read from the same memories at once.
    const auto first = static_cast<std::size_t>(tl_.program_id(1)) % rounds;
    const auto part_of = [&](std::size_t round, std::size_t pe) {
      return ((first + round) % rounds) * pes.size() + pe;
    };
    std::deque<Tile> own;
    const auto fetch = [&](std::size_t round) {
      for (std::size_t pe = 0; pe < pes.size(); ++pe) {
        const std::size_t part = part_of(round, pe);
        if (pes[pe] != self || part >= parts.size()) continue;
        own.push_back(load(a_, group, parts[part].k));
        for (std::size_t i = 1; i < pes.size(); ++i) {
          tl_.send(Direction::local(pes[(pe + i) % pes.size()]), own.back());
        }
      }
    };
    constexpr std::size_t kAhead = 2;
    for (std::size_t round = 0; round < std::min(kAhead, rounds); ++round) fetch(round);
    for (std::size_t round = 0; round < rounds; ++round) {
      std::vector<std::pair<const Part*, Tile>> here;
      for (std::size_t pe = 0; pe < pes.size(); ++pe) {
        const std::size_t index = part_of(round, pe);
        if (index >= parts.size()) continue;
        const Part& part = parts[index];
        if (pes[pe] == self) {
          here.emplace_back(&part, own.front());
          own.pop_front();
        } else {
          here.emplace_back(&part, tl_.recv(Direction::local(pes[pe]), {group.length, part.k.length}, dtype()));
        }
      }
      for (const auto& [part, x] : here) weights(columns, part->step);
      if (round + kAhead < rounds) fetch(round + kAhead);
      for (const auto& [part, x] : here) {
        const std::vector<Tile> b = weights(columns, part->step);
        for (Block& block : blocks) {
          add(block, rows_of(x, group, block.rows), rows_of(b[block.column], steps_[part->step], part->k));
        }
      }
    }
    if (!keeps_) kept_.assign(kept_.size(), Tile());
  }

  std::vector<unsigned> pes_of_cube() const {
    std::vector<unsigned> pes;
    for (unsigned pe = 0; pe < 64; ++pe) {
      if ((call_.pes_of_cube >> pe & 1) != 0) pes.push_back(pe);
    }
    return pes;
  }

  /// Keeps the last tiles of an operand, so that the next one does not take the place of one that the array still
  /// reads: that many loads run ahead.
  static constexpr std::size_t kTilesOfA = 8, kTilesOfB = 3;
  static Tile recent(const Tile& tile, std::deque<Tile>& tiles, std::size_t most) {
    tiles.push_back(tile);
    if (tiles.size() > most) tiles.pop_front();
    return tile;
  }

  /// b of a step, by column of the group; loaded when first asked for.
  std::vector<Tile> weights(const std::vector<Piece>& columns, std::size_t step) {
    std::vector<Tile> tiles;
    for (std::size_t column = 0; column < columns.size(); ++column) {
      Tile& tile = kept_[step * columns.size() + column];
      if (!tile) tile = recent(load(b_, steps_[step], columns[column]), of_b_, kTilesOfB * columns.size());
      tiles.push_back(tile);
    }
    return tiles;
  }
  void forget(std::size_t step, std::size_t columns) {
    for (std::size_t column = 0; column < columns; ++column) kept_[step * columns + column] = Tile();
  }

  /// The rows `part` of a tile with the rows `whole`.
  Tile rows_of(const Tile& tile, const Piece& whole, const Piece& part) const {
    return part.length == whole.length ? tile : tl_.slice(tile, part.begin - whole.begin, part.length);
  }

  void add(Block& block, const Tile& x, const Tile& b) {
    Tile& sum = block.sums[block.next];
    if (!sum) sum = tl_.fill({block.rows.length, block.cols.length}, compute_type(dtype()), 0);
    sum = tl_.dot(x, b, sum);
    block.next = (block.next + 1) % block.sums.size();
  }

  /// The sum of all chains; they are given up.
  Tile sum_of(Block& block) {
    Tile sum = block.sums.front();
    for (std::size_t i = 1; i < block.sums.size(); ++i) {
      if (block.sums[i]) sum = sum + block.sums[i];
    }
    block.sums.clear();
    return sum;
  }

  /// Every PE of the cube has a partial sum of the block: each sends to the others the rows of c that they hold, and
  /// adds what it gets, always in the order of the PEs. Block by block, so that nobody's messages wait for ever.
  void exchange(Block& block) {
    const auto self = static_cast<unsigned>(tl_.program_id(0));
    const Tile own = sum_of(block);
    const auto common = [&](const Piece& rows) {
      const std::int64_t begin = std::max(rows.begin, block.rows.begin);
      return Piece{begin, std::min(rows.begin + rows.length, block.rows.begin + block.rows.length) - begin};
    };
    std::size_t first = 0;  // the owner behind this PE, so that not all send to one at once
    while (first < owners_.size() && owners_[first].pe <= self) ++first;
    for (std::size_t i = 0; own && i < owners_.size(); ++i) {
      const Owner& owner = owners_[(first + i) % owners_.size()];
      const Piece rows = common(owner.rows);
      if (owner.pe != self && rows.length > 0) tl_.send(Direction::local(owner.pe), rows_of(own, block.rows, rows));
    }
    for (const Owner& owner : owners_) {
      const Piece rows = common(owner.rows);
      if (owner.pe != self || rows.length <= 0) continue;
      Tile sum;
      for (const unsigned pe : sharers_) {
        const Tile part = pe == self
                              ? rows_of(own, block.rows, rows)
                              : tl_.recv(Direction::local(pe), {rows.length, block.cols.length}, compute_type(dtype()));
        sum = sum ? sum + part : part;
      }
      store(rows, block.cols, std::move(sum));
    }
  }

  void store(const Piece& rows, const Piece& cols, Tile sum) {
    std::optional<TensorView::Place> bias;
    if (has_bias_) bias = bias_.at(0, cols.begin);
    const Tile result = finish(tl_, std::move(sum), bias, cols.length, dtype(), call_.activation);
    const TensorView::Place c = c_.at(rows.begin, cols.begin);
    tl_.store(c.va, result, c.row_stride);
  }

  /// Without the array: each step of b is widened once, then weighted by a row of a and summed down its columns.
  void vector_columns(const Piece& cols) {
    for (const Piece& group : groups_) {
      const auto rows = static_cast<std::size_t>(group.length);
      std::vector<Tile> sums(rows);
      for (const Piece& step : steps_) {
        const Tile b = widened(load(b_, step, cols));
        for (const Piece& part : parts_of(step)) {
          const Tile own = rows_of(b, step, part);
          for (std::size_t row = 0; row < rows; ++row) {
            const TensorView::Place at = a_.at(group.begin + static_cast<std::int64_t>(row), part.begin);
            const Tile x = widened(tl_.load(at.va, {part.length, 1}, dtype()));
            const Tile sum = tl_.reduce(ReduceKind::sum, own * x, 0);
            sums[row] = sums[row] ? sums[row] + sum : sum;
          }
        }
      }
      for (std::size_t row = 0; row < rows; ++row) {
        store({group.begin + static_cast<std::int64_t>(row), 1}, cols, sums[row]);
      }
    }
  }
  Tile widened(const Tile& tile) {
    return tile.dtype() == compute_type(dtype()) ? tile : tl_.cast(tile, compute_type(dtype()));
  }

  const TensorView a_, b_, bias_, c_;
  const GemmCall& call_;
  const bool has_bias_, splits_;
  Region part_{0, 0, 0, 0};
  Piece k_;                        // that this PE sums over
  std::vector<unsigned> sharers_;  // of a split k: PEs of the cube that sum over some of it, in order
  std::vector<Owner> owners_;      // likewise: of rows of c
  Tl& tl_;
  std::vector<Piece> steps_, groups_, columns_;  // of k, rows and columns
  std::deque<Tile> of_a_, of_b_;
  bool keeps_ = false;
  std::vector<Tile> kept_;  // b, by step and column of the group
};

}  // namespace

void gemm_kernel(Va a, Va b, Va bias, Va c, const GemmCall& call, Tl& tl) { GemmLoops(a, b, bias, c, call, tl).run(); }

}  // namespace kernbench::tp
