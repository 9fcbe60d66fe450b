#include "runtime/tp/gemm_kernel.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "runtime/tp/gemm_exchange.h"
#include "runtime/tp/own_shard.h"
#include "tlm/kernel/activation.h"

namespace kernbench::tp {

Tile finish(Tl& tl, Tile sum, const std::optional<TensorView::Place>& bias, std::int64_t cols, DType dtype,
            Activation activation, const std::optional<TensorView::Place>& residual) {
  if (bias) sum = sum + tl.cast(tl.load(bias->va, {1, cols}, dtype), sum.dtype());
  if (const auto op = to_math(activation)) sum = tl.math(*op, {sum});
  if (residual) {
    const Tile added = tl.load(residual->va, sum.shape(), dtype, sum.shape().rows == 1 ? 0 : residual->row_stride);
    sum = sum + as_type(tl, added, sum.dtype());
  }
  return as_type(tl, sum, dtype);
}

namespace {

/// A GEMM as one PE works on it: where its operands lie, and its loops.
class GemmLoops {
 public:
  GemmLoops(Va a, Va b, Va bias, Va c, const GemmCall& call, Tl& tl, std::optional<TensorView> residual = {})
      : a_(a, call.a, call.first_row),
        b_(b, call.b),
        bias_(bias, call.bias),
        c_(c, call.c),
        residual_(std::move(residual)),
        call_(call),
        has_bias_(bias != 0),
        copies_(copies_of(call.c)),
        tl_(tl) {
    if (exchanges_sums(call.mapping.kind)) exchange_.emplace(call, tl);
    k_ = {0, call.a.shape.cols};
    if (exchange_) {
      k_ = exchange_->own_k();
      part_ = exchange_->sums();
    } else {
      part_ = own_shard(c, call.c, tl).region;
    }
    std::vector<std::int64_t> b_cuts;
    b_.row_cuts(k_.begin, k_.begin + k_.length, b_cuts);
    steps_ = pieces(k_.begin, k_.begin + k_.length, std::move(b_cuts), call.mapping.tile_k);
    if (call.mapping.kind == GemmMapping::Kind::stream && !copies_.any) begin_at_own_rows();
    std::vector<std::int64_t> row_cuts, col_cuts;
    const std::int64_t end = part_.row + part_.rows, end_col = part_.col + part_.cols;
    a_.row_cuts(part_.row, end, row_cuts);
    if (residual_) residual_->row_cuts(part_.row, end, row_cuts);
    groups_ = pieces(part_.row, end, std::move(row_cuts), block_rows() * call.mapping.row_blocks);
    begin_by_cube();
    find_spans();
    b_.col_cuts(part_.col, end_col, col_cuts);
    if (has_bias_) bias_.col_cuts(part_.col, end_col, col_cuts);
    if (residual_) residual_->col_cuts(part_.col, end_col, col_cuts);
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
      case GemmMapping::Kind::lanes:
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
    pass_on(0);
    store_received();
  }

 private:
  /// Steps in which a lies in one piece, and of those the neighbours that are loaded at once.
  struct Part {
    std::size_t step = 0;
    Piece k;
    std::size_t span = 0;
  };

  /// The sums of a block of c: steps of k go to `sums` in turn, so that one does not wait for the result of the last.
  struct Block {
    Piece rows, cols;
    std::size_t column = 0;  ///< which of the group's
    std::vector<Tile> sums{};
    std::size_t next = 0;
  };

  std::int64_t depth() const { return k_.length; }
  std::int64_t block_rows() const { return call_.mapping.kind == GemmMapping::Kind::lanes ? 1 : call_.mapping.tile_m; }
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

  /// Where a is cut over cubes, each cube begins somewhere else: all would read from one memory at a time. By `split`,
  /// at other rows first. PEs of a cube exchange block after block: their order is the same for all of them, also for
  /// one that has rows of c and nothing of k.
  void begin_by_cube() {
    std::vector<std::int64_t> cuts;
    a_.col_cuts(0, call_.a.shape.cols, cuts);
    if (cuts.empty() || groups_.empty() || call_.mapping.kind == GemmMapping::Kind::passed) return;
    const auto cube = static_cast<std::size_t>(tl_.program_id(1)),
               cubes = static_cast<std::size_t>(tl_.num_programs(1));
    const auto rotate_steps = [&](std::size_t first) {
      if (copies_.over_cubes || steps_.empty()) return;
      std::rotate(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(first % steps_.size()), steps_.end());
    };
    if (!exchange_) return rotate_steps(cube * steps_.size() / cubes);
    const auto blocks = static_cast<std::size_t>(call_.mapping.row_blocks);
    const std::size_t group = cube % groups_.size();
    std::rotate(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(group), groups_.end());
    first_block_ = cube / groups_.size();
    rotate_steps(first_block_ / blocks);
  }

  /// A shard of c lies on several PEs, and of those in several cubes. Copies have to have the same bits: sums over them
  /// take one order of k.
  struct Copies {
    bool any = false, over_cubes = false;
  };
  static Copies copies_of(const TensorGeometry& c) {
    Copies copies;
    std::map<std::uint64_t, int> cubes;  // by place in c
    for (const ShardSpec& shard : c.shards()) {
      if (shard.region.empty()) continue;
      const auto [known, fresh] = cubes.emplace(shard.offset_bytes, shard.cube);
      copies.any |= !fresh;
      copies.over_cubes |= !fresh && known->second != shard.cube;
    }
    return copies;
  }

  /// Rows of a that are short pieces of long ones fall on few channels: up to `span` of them come at once, and steps
  /// are cut out of them in TCM.
  void find_spans() {
    std::vector<std::int64_t> cuts;
    a_.col_cuts(0, call_.a.shape.cols, cuts);
    const auto widest = std::max(call_.mapping.tile_k, call_.span);
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      for (const Piece& k : parts_of(steps_[step])) {
        const bool joins = !spans_.empty() && spans_.back().begin + spans_.back().length == k.begin &&
                           spans_.back().length + k.length <= widest &&
                           std::find(cuts.begin(), cuts.end(), k.begin) == cuts.end();
        if (joins) {
          spans_.back().length += k.length;
        } else {
          spans_.push_back(k);
        }
        parts_.push_back({step, k, spans_.size() - 1});
      }
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
    for (std::size_t at = 0; at < groups_.size(); ++at) {
      const Piece& group = groups_[at];
      std::vector<Block> blocks = blocks_of(group, columns);
      if (call_.mapping.kind == GemmMapping::Kind::passed) {
        passed_rows(group, columns, blocks);
      } else if (call_.mapping.kind == GemmMapping::Kind::lanes) {
        weighted_rows(columns, blocks);
      } else {
        streamed_rows(columns, blocks, at + 1 < groups_.size() ? rows_of_group(groups_[at + 1]) : std::vector<Piece>());
      }
      if (exchange_) {
        pass_on(0);
        for (Block& block : blocks) finished_.push_back(std::move(block));
        pass_on(finished_.size() - 1);
      } else {
        for (Block& block : blocks) store(block.rows, block.cols, sum_of(block));
      }
    }
  }

  std::vector<Piece> rows_of_group(const Piece& group) const {
    std::vector<Piece> rows = pieces(group.begin, group.begin + group.length, {}, block_rows());
    std::rotate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(first_block_ % rows.size()), rows.end());
    return rows;
  }

  std::vector<Block> blocks_of(const Piece& group, const std::vector<Piece>& columns) const {
    std::vector<Block> blocks;
    for (const Piece& rows : rows_of_group(group)) {
      for (std::size_t column = 0; column < columns.size(); ++column) {
        blocks.push_back({rows, columns[column], column});
        blocks.back().sums.resize(static_cast<std::size_t>(call_.mapping.chains));
      }
    }
    return blocks;
  }

  /// What there is of a for one block of rows: a span, on its side where steps are cut out of it, and the next one.
  struct Rows {
    std::size_t span = kNone;
    Tile tile, next;
  };

  /// The columns `part` of the block's rows. A tile's columns are no tile, but rows are: a span of several parts is
  /// turned over on the math engine, cut, and the part turned back.
  Tile part_of_a(Rows& have, const Block& block, const Part& part) {
    const Piece& span = spans_[part.span];
    const bool cut = span.length != part.k.length, one_row = block.rows.length == 1;
    if (have.span != part.span) {
      const Tile tile = have.next ? have.next : recent(load(a_, block.rows, span), of_a_, kTilesOfA);
      have = {part.span, cut && !one_row ? tl_.transpose(tile) : tile, Tile()};
    }
    if (!cut) return have.tile;
    const Tile own = tl_.slice(have.tile, part.k.begin - span.begin, part.k.length);
    return one_row ? own : tl_.transpose(own);
  }

  /// `next`: the rows that follow, whose first span is asked for ahead.
  void streamed_rows(const std::vector<Piece>& columns, std::vector<Block>& blocks, const std::vector<Piece>& next) {
    std::vector<Rows> have(blocks.size() / columns.size());
    for (std::size_t row = 0; row < std::min(have.size(), ahead_.size()); ++row) have[row].next = ahead_[row];
    ahead_.clear();
    std::vector<Tile> x(have.size());
    const std::size_t every = std::max<std::size_t>(1, parts_.size() / (finished_.size() + 2));
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      // a first: it may come from afar.
      x.front() = part_of_a(have.front(), blocks.front(), part);
      const std::vector<Tile> b = weights(columns, part.step);
      for (std::size_t row = 1; row < x.size(); ++row) {
        x[row] = part_of_a(have[row], blocks[row * columns.size()], part);
      }
      const bool begins = i == 0 || parts_[i - 1].span != part.span;
      const bool goes_on = i + 1 < parts_.size() && parts_[i + 1].span == part.span;
      if (exchange_ && begins && goes_on) weights(columns, parts_[i + 1].step);  // needed before the next span
      for (std::size_t row = 0; exchange_ && begins && part.span + 1 < spans_.size() && row < x.size(); ++row) {
        have[row].next = load(a_, blocks[row * columns.size()].rows, spans_[part.span + 1]);
      }
      for (std::size_t row = 0; exchange_ && i + 1 == parts_.size() && row < next.size(); ++row) {
        ahead_.push_back(load(a_, next[row], spans_.front()));
      }
      for (std::size_t at = 0; at < blocks.size(); ++at) {
        add(blocks[at], x[at / columns.size()], rows_of(b[blocks[at].column], steps_[part.step], part.k));
      }
      if (!keeps_) forget(i, columns.size());
      if ((i + 1) % every != 0) continue;
      finished_.empty() ? store_received() : pass_on(finished_.size() - 1);
    }
  }

  /// On the math engine: each step of b is widened once, then weighted by a row of a and summed down its columns.
  void weighted_rows(const std::vector<Piece>& columns, std::vector<Block>& blocks) {
    std::vector<std::vector<Tile>> x(blocks.size() / columns.size());
    for (std::size_t row = 0; row < x.size(); ++row) {
      for (const Piece& span : spans_) {
        const TensorView::Place at = a_.at(blocks[row * columns.size()].rows.begin, span.begin);
        x[row].push_back(tl_.load(at.va, {span.length, 1}, dtype()));
      }
    }
    const auto wide = [&](std::size_t i) {
      std::vector<Tile> tiles;
      if (i == parts_.size()) return tiles;
      const Part& part = parts_[i];
      for (const Tile& tile : weights(columns, part.step)) {
        tiles.push_back(widened(rows_of(tile, steps_[part.step], part.k)));
      }
      if (!keeps_) forget(i, columns.size());
      return tiles;
    };
    std::vector<Tile> next = wide(0);
    for (std::vector<Tile>& row : x) {
      for (Tile& tile : row) tile = widened(tile);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::vector<Tile> own = std::exchange(next, wide(i + 1));
      const Piece &k = parts_[i].k, &span = spans_[parts_[i].span];
      for (std::size_t at = 0; at < blocks.size(); ++at) {
        const Tile weight = tl_.slice(x[at / columns.size()][parts_[i].span], k.begin - span.begin, k.length);
        const Tile sum = tl_.reduce(ReduceKind::sum, own[blocks[at].column] * weight, 0);
        Tile& all = blocks[at].sums.front();
        all = all ? all + sum : sum;
      }
    }
  }

  /// Each PE of the cube fetches every n-th part of a group's rows and passes it on; two rounds ahead of the products.
  void passed_rows(const Piece& group, const std::vector<Piece>& columns, std::vector<Block>& blocks) {
    const std::vector<unsigned> pes = pes_of_cube();
    const auto self = static_cast<unsigned>(tl_.program_id(0));
    const std::vector<Part>& parts = parts_;
    const std::size_t rounds = (parts.size() + pes.size() - 1) / pes.size();
    // Cubes begin at different parts, so that not all of them read from the same memories at once.
    const auto first = copies_.over_cubes ? 0 : static_cast<std::size_t>(tl_.program_id(1)) % rounds;
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
  static constexpr std::size_t kNone = ~std::size_t{0};
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
  /// b of a step whose last part has been used.
  void forget(std::size_t part, std::size_t columns) {
    const std::size_t step = parts_[part].step;
    if (part + 1 < parts_.size() && parts_[part + 1].step == step) return;
    for (std::size_t column = 0; column < columns; ++column) kept_[step * columns + column] = Tile();
  }

  /// The rows `part` of a tile with the rows `whole`.
  Tile rows_of(const Tile& tile, const Piece& whole, const Piece& part) const {
    return part.length == whole.length ? tile : tl_.slice(tile, part.begin - whole.begin, part.length);
  }

  void add(Block& block, const Tile& x, const Tile& b) {
    Tile& sum = block.sums[block.next];
    sum = tl_.dot(x, b, sum ? sum : zeros({block.rows.length, block.cols.length}));
    block.next = (block.next + 1) % block.sums.size();
  }

  /// What sums begin with: made once, so that none of them waits for the math engine.
  Tile zeros(Shape shape) {
    Tile& tile = zeros_[{shape.rows, shape.cols}];
    if (!tile) tile = tl_.fill(shape, compute_type(dtype()), 0);
    return tile;
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

  /// Of a split k: blocks whose products are issued are sent and added, one after the other, until `left` of them are
  /// left.
  void pass_on(std::size_t left) {
    while (finished_.size() > left) {
      store_received();
      Block& block = finished_.front();
      exchange_->send(block.rows, block.cols, sum_of(block));
      finished_.pop_front();
    }
  }
  void store_received() {
    if (!exchange_) return;
    for (SumExchange::Sum& sum : exchange_->receive()) store(sum.rows, sum.cols, std::move(sum.tile));
  }

  void store(const Piece& rows, const Piece& cols, Tile sum) {
    std::optional<TensorView::Place> bias, residual;
    if (has_bias_) bias = bias_.at(0, cols.begin);
    if (residual_) residual = residual_->at(rows.begin, cols.begin);
    const Tile result = finish(tl_, std::move(sum), bias, cols.length, dtype(), call_.activation, residual);
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
  const std::optional<TensorView> residual_;
  const GemmCall& call_;
  const bool has_bias_;
  const Copies copies_;
  Region part_{0, 0, 0, 0};
  Piece k_;                              // that this PE sums over
  std::optional<SumExchange> exchange_;  // of a split k
  Tl& tl_;
  std::vector<Piece> steps_, groups_, columns_;  // of k, rows and columns
  std::vector<Part> parts_;
  std::vector<Piece> spans_;
  std::size_t first_block_ = 0;  // of a group's rows
  std::vector<Tile> ahead_;      // of a: the next group's first span, by block of rows
  std::deque<Block> finished_;   // of a split k: to be exchanged
  std::deque<Tile> of_a_, of_b_;
  std::map<std::pair<std::int64_t, std::int64_t>, Tile> zeros_;  // by rows and columns
  bool keeps_ = false;
  std::vector<Tile> kept_;  // b, by step and column of the group
};

}  // namespace

void gemm_kernel(Va a, Va b, Va bias, Va c, const GemmCall& call, Tl& tl) { GemmLoops(a, b, bias, c, call, tl).run(); }

void gemm_residual_kernel(Va a, Va b, Va bias, Va residual, Va c, const GemmResidualCall& call, Tl& tl) {
  GemmLoops(a, b, bias, c, call.gemm, tl, TensorView(residual, call.residual)).run();
}

}  // namespace kernbench::tp
