#include "runtime/tp/gemm_kernel.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "runtime/tp/gemm_exchange.h"
#include "runtime/tp/gemm_layout.h"
#include "runtime/tp/gemm_ring.h"
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

/// The loops of a GEMM on one PE, by mapping.
class GemmLoops {
 public:
  GemmLoops(Va a, Va b, Va bias, Va c, const GemmCall& call, Tl& tl, std::optional<TensorView> residual = {})
      : call_(call),
        tl_(tl),
        exchange_(exchanges_sums(call.mapping.kind) ? std::optional<SumExchange>(std::in_place, c, call, tl)
                                                    : std::nullopt),
        layout_(a, b, bias, c, call, exchange_ ? &*exchange_ : nullptr, tl, std::move(residual)) {}

  void run() {
    switch (call_.mapping.kind) {
      case GemmMapping::Kind::vector:
        for (const Piece& cols : layout_.columns) vector_columns(cols);
        return;
      case GemmMapping::Kind::passed:
        column_group(layout_.columns);  // all PEs of a cube take part in every pass of a: one pass
        return;
      case GemmMapping::Kind::ring:
        for (const Piece& group : layout_.groups) blocks_in_turn(group);
        pass_on(0);
        store_received();
        return;
      case GemmMapping::Kind::stream:
      case GemmMapping::Kind::split:
      case GemmMapping::Kind::lanes:
        break;
    }
    for (std::size_t begin = 0; begin < layout_.columns.size();) {
      std::vector<Piece> group;
      std::int64_t width = 0;
      while (begin < layout_.columns.size() &&
             (group.empty() || width + layout_.columns[begin].length <= call_.mapping.tile_n)) {
        width += layout_.columns[begin].length;
        group.push_back(layout_.columns[begin++]);
      }
      column_group(group);
    }
    pass_on(0);
    store_received();
  }

 private:
  /// The sums of a block of c: steps of k go to `sums` in turn, so that one does not wait for the result of the last.
  struct Block {
    Piece rows, cols;
    std::size_t column = 0;  ///< which of the group's
    std::vector<Tile> sums{};
    std::size_t next = 0;
  };

  DType dtype() const { return call_.c.dtype; }

  Tile load(const TensorView& view, const Piece& rows, const Piece& cols) const {
    const TensorView::Place at = view.at(rows.begin, cols.begin);
    return tl_.load(at.va, {rows.length, cols.length}, dtype(), at.row_stride);
  }

  void column_group(const std::vector<Piece>& columns) {
    std::uint64_t bytes = 0;
    for (const Piece& cols : columns)
      bytes += static_cast<std::uint64_t>(cols.length * layout_.k.length) * size_of(dtype());
    keeps_ = layout_.groups.size() > 1 && bytes <= call_.kept_bytes;
    kept_.assign(columns.size() * layout_.steps.size(), Tile());
    for (std::size_t at = 0; at < layout_.groups.size(); ++at) {
      const Piece& group = layout_.groups[at];
      std::vector<Block> blocks = blocks_of(group, columns);
      if (call_.mapping.kind == GemmMapping::Kind::passed) {
        passed_rows(group, columns, blocks);
      } else if (call_.mapping.kind == GemmMapping::Kind::lanes) {
        weighted_rows(columns, blocks);
      } else {
        streamed_rows(
            columns, blocks,
            at + 1 < layout_.groups.size() ? layout_.rows_of_group(layout_.groups[at + 1]) : std::vector<Piece>());
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

  std::vector<Block> blocks_of(const Piece& group, const std::vector<Piece>& columns) const {
    std::vector<Block> blocks;
    for (const Piece& rows : layout_.rows_of_group(group)) {
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

  /// The columns of a step of the block's rows. A tile's columns are no tile, but rows are: a span of several steps is
  /// turned over on the math engine, cut, and the step turned back.
  Tile step_of_a(Rows& have, const Block& block, const GemmLayout::Step& step) {
    const Piece& span = layout_.spans[step.span];
    const bool cut = span.length != step.k.length, one_row = block.rows.length == 1;
    if (have.span != step.span) {
      const Tile tile = have.next ? have.next : held(load(layout_.a, block.rows, span), kTilesOfA, 'a');
      have = {step.span, cut && !one_row ? tl_.transpose(tile) : tile, Tile()};
    }
    if (!cut) return have.tile;
    const Tile own = tl_.slice(have.tile, step.k.begin - span.begin, step.k.length);
    return one_row ? own : tl_.transpose(own);
  }

  /// `next`: the rows that follow, whose first span is asked for ahead.
  void streamed_rows(const std::vector<Piece>& columns, std::vector<Block>& blocks, const std::vector<Piece>& next) {
    std::vector<Rows> have(blocks.size() / columns.size());
    for (std::size_t row = 0; row < std::min(have.size(), ahead_.size()); ++row) have[row].next = ahead_[row];
    ahead_.clear();
    std::vector<Tile> x(have.size());
    const std::vector<GemmLayout::Step>& steps = layout_.steps;
    const std::size_t every = std::max<std::size_t>(1, steps.size() / (finished_.size() + 2));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const GemmLayout::Step& step = steps[i];
      // a first: it may come from afar.
      x.front() = step_of_a(have.front(), blocks.front(), step);
      const std::vector<Tile> b = weights(columns, i);
      for (std::size_t row = 1; row < x.size(); ++row) {
        x[row] = step_of_a(have[row], blocks[row * columns.size()], step);
      }
      const bool begins = i == 0 || steps[i - 1].span != step.span;
      const bool goes_on = i + 1 < steps.size() && steps[i + 1].span == step.span;
      if (exchange_ && begins && goes_on) weights(columns, i + 1);  // needed before the next span
      for (std::size_t row = 0; exchange_ && begins && step.span + 1 < layout_.spans.size() && row < x.size(); ++row) {
        have[row].next = load(layout_.a, blocks[row * columns.size()].rows, layout_.spans[step.span + 1]);
      }
      for (std::size_t row = 0; exchange_ && i + 1 == steps.size() && row < next.size(); ++row) {
        ahead_.push_back(load(layout_.a, next[row], layout_.spans.front()));
      }
      for (std::size_t at = 0; at < blocks.size(); ++at) {
        add(blocks[at], x[at / columns.size()], b[blocks[at].column]);
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
      for (const Piece& span : layout_.spans) {
        const TensorView::Place at = layout_.a.at(blocks[row * columns.size()].rows.begin, span.begin);
        x[row].push_back(tl_.load(at.va, {span.length, 1}, dtype()));
      }
    }
    const auto wide = [&](std::size_t i) {
      std::vector<Tile> tiles;
      if (i == layout_.steps.size()) return tiles;
      for (const Tile& tile : weights(columns, i)) tiles.push_back(widened(tile));
      if (!keeps_) forget(i, columns.size());
      return tiles;
    };
    std::vector<Tile> next = wide(0);
    for (std::vector<Tile>& row : x) {
      for (Tile& tile : row) tile = widened(tile);
    }
    for (std::size_t i = 0; i < layout_.steps.size(); ++i) {
      const std::vector<Tile> own = std::exchange(next, wide(i + 1));
      const GemmLayout::Step& step = layout_.steps[i];
      const std::int64_t first = step.k.begin - layout_.spans[step.span].begin;
      for (std::size_t at = 0; at < blocks.size(); ++at) {
        const Tile weight = tl_.slice(x[at / columns.size()][step.span], first, step.k.length);
        const Tile sum = tl_.reduce(ReduceKind::sum, own[blocks[at].column] * weight, 0);
        Tile& all = blocks[at].sums.front();
        all = all ? all + sum : sum;
      }
    }
  }

  /// Each PE of the cube fetches a group's rows of every n-th step and passes them on; two rounds ahead of the
  /// products.
  void passed_rows(const Piece& group, const std::vector<Piece>& columns, std::vector<Block>& blocks) {
    const std::vector<unsigned> pes = by_place(call_.pes_of_cube);
    const auto self = static_cast<unsigned>(tl_.program_id(0));
    const std::vector<GemmLayout::Step>& steps = layout_.steps;
    const std::size_t rounds = (steps.size() + pes.size() - 1) / pes.size();
    // Cubes begin at different steps, so that not all of them read from the same memories at once.
    const auto first = layout_.copies.over_cubes ? 0 : static_cast<std::size_t>(tl_.program_id(1)) % rounds;
    const auto step_of = [&](std::size_t round, std::size_t pe) {
      return ((first + round) % rounds) * pes.size() + pe;
    };
    std::deque<Tile> own;
    const auto fetch = [&](std::size_t round) {
      for (std::size_t pe = 0; pe < pes.size(); ++pe) {
        const std::size_t step = step_of(round, pe);
        if (pes[pe] != self || step >= steps.size()) continue;
        own.push_back(load(layout_.a, group, steps[step].k));
        for (std::size_t i = 1; i < pes.size(); ++i) {
          tl_.send(Direction::local(pes[(pe + i) % pes.size()]), own.back());
        }
      }
    };
    constexpr std::size_t kAhead = 2;
    for (std::size_t round = 0; round < std::min(kAhead, rounds); ++round) fetch(round);
    for (std::size_t round = 0; round < rounds; ++round) {
      std::vector<std::pair<std::size_t, Tile>> here;
      for (std::size_t pe = 0; pe < pes.size(); ++pe) {
        const std::size_t step = step_of(round, pe);
        if (step >= steps.size()) continue;
        if (pes[pe] == self) {
          here.emplace_back(step, own.front());
          own.pop_front();
        } else {
          here.emplace_back(step, tl_.recv(Direction::local(pes[pe]), {group.length, steps[step].k.length}, dtype()));
        }
      }
      for (const auto& [step, x] : here) weights(columns, step);
      if (round + kAhead < rounds) fetch(round + kAhead);
      for (const auto& [step, x] : here) {
        const std::vector<Tile> b = weights(columns, step);
        for (Block& block : blocks) add(block, rows_of(x, group, block.rows), b[block.column]);
      }
    }
    if (!keeps_) kept_.assign(kept_.size(), Tile());
  }

  /// A group's rows times all of b, as its blocks come round the cubes; the sums of one block are exchanged behind the
  /// products of the next.
  void blocks_in_turn(const Piece& group) {
    const auto self = static_cast<int>(tl_.program_id(1)), w = static_cast<int>(call_.cube_w);
    const std::vector<RingTurn> turns = ring_turns(w, static_cast<int>(tl_.num_programs(1)) / w, self);
    const std::vector<Piece> rows = layout_.rows_of_group(group);
    std::vector<Tile> a;                     // by rows and steps
    std::map<int, std::vector<Tile>> going;  // by cube: b of the blocks that are to go on
    std::deque<std::pair<int, std::vector<Tile>>> here;
    const auto load_a = [&](const Piece& block) {
      for (const GemmLayout::Step& step : layout_.steps) a.push_back(load(layout_.a, block, step.k));
    };
    if (!rows.empty()) load_a(rows.front());
    here.emplace_back(self, own_block(self));
    going.emplace(here.back());
    for (std::size_t row = 1; row < rows.size(); ++row) load_a(rows[row]);
    for (std::size_t turn = 0; !here.empty() || turn < turns.size();) {
      while (turn < turns.size() && here.size() <= kBlocksAhead) {
        const RingTurn& now = turns[turn++];
        const std::optional<RingHop>&comes = now.comes, &goes = now.goes;
        std::vector<Tile> tiles = pass_block(comes, goes, goes ? going.at(goes->cube) : std::vector<Tile>());
        if (goes && goes->cube != self) going.erase(goes->cube);
        if (!comes) continue;
        const auto leaves = [&](const RingTurn& later) { return later.goes && later.goes->cube == comes->cube; };
        if (std::any_of(turns.begin(), turns.end(), leaves)) going.emplace(comes->cube, tiles);
        here.emplace_back(comes->cube, std::move(tiles));
      }
      if (here.empty()) continue;
      multiply_block(group, rows.size(), a, layout_.columns_of_cube.at(here.front().first), here.front().second);
      here.pop_front();
    }
  }

  /// b of the PE's own block, by columns and steps.
  std::vector<Tile> own_block(int cube) {
    std::vector<Tile> tiles;
    for (const Piece& cols : layout_.columns_of_cube.at(cube)) {
      for (const GemmLayout::Step& step : layout_.steps) tiles.push_back(load(layout_.b, step.k, cols));
    }
    return tiles;
  }

  /// A turn of the ring, message by message: `tiles` go on, and those that come are given back.
  std::vector<Tile> pass_block(const std::optional<RingHop>& comes, const std::optional<RingHop>& goes,
                               const std::vector<Tile>& tiles) {
    std::vector<Tile> come;
    std::vector<Shape> shapes;
    if (comes) {
      for (const Piece& cols : layout_.columns_of_cube.at(comes->cube)) {
        for (const GemmLayout::Step& step : layout_.steps) shapes.push_back({step.k.length, cols.length});
      }
    }
    for (std::size_t i = 0; i < std::max(shapes.size(), tiles.size()); ++i) {
      if (i < shapes.size()) come.push_back(tl_.recv(comes->way, shapes[i], dtype()));
      if (i < tiles.size()) tl_.send(goes->way, tiles[i]);
    }
    return come;
  }

  void multiply_block(const Piece& group, std::size_t rows, const std::vector<Tile>& a,
                      const std::vector<Piece>& columns, const std::vector<Tile>& b) {
    const std::size_t steps = layout_.steps.size();
    for (std::size_t column = 0; column < columns.size(); ++column) {
      std::vector<Block> blocks = blocks_of(group, {columns[column]});
      for (std::size_t step = 0; step < steps; ++step) {
        for (std::size_t row = 0; row < rows; ++row) add(blocks[row], a[row * steps + step], b[column * steps + step]);
      }
      pass_on(0);
      for (Block& block : blocks) finished_.push_back(std::move(block));
      if (!finished_.empty()) pass_on(finished_.size() - 1);
    }
  }

  /// Blocks of b that are on their way while one is worked on.
  static constexpr std::size_t kBlocksAhead = 2;

  /// Keeps the last tiles of an operand, so that the next one does not take the place of one that the array still
  /// reads: that many loads run ahead.
  static constexpr std::size_t kTilesOfA = 8, kTilesOfB = 3;
  static constexpr std::size_t kNone = ~std::size_t{0};
  Tile held(const Tile& tile, std::size_t most, char operand) const {
    tl_.hold(tile, most, static_cast<unsigned>(operand));
    return tile;
  }

  /// b of a step, by column of the group; loaded when first asked for.
  std::vector<Tile> weights(const std::vector<Piece>& columns, std::size_t step) {
    std::vector<Tile> tiles;
    for (std::size_t column = 0; column < columns.size(); ++column) {
      Tile& tile = kept_[step * columns.size() + column];
      if (!tile) tile = held(load(layout_.b, layout_.steps[step].k, columns[column]), kTilesOfB * columns.size(), 'b');
      tiles.push_back(tile);
    }
    return tiles;
  }
  /// b of a step that has been used.
  void forget(std::size_t step, std::size_t columns) {
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
    if (layout_.has_bias) bias = layout_.bias.at(0, cols.begin);
    if (layout_.residual) residual = layout_.residual->at(rows.begin, cols.begin);
    const Tile result = finish(tl_, std::move(sum), bias, cols.length, dtype(), call_.activation, residual);
    const TensorView::Place c = layout_.c.at(rows.begin, cols.begin);
    tl_.store(c.va, result, c.row_stride);
  }

  /// Without the array: each step of b is widened once, then weighted by a row of a and summed down its columns.
  void vector_columns(const Piece& cols) {
    for (const Piece& group : layout_.groups) {
      const auto rows = static_cast<std::size_t>(group.length);
      std::vector<Tile> sums(rows);
      for (const GemmLayout::Step& step : layout_.steps) {
        const Tile b = widened(load(layout_.b, step.k, cols));
        for (std::size_t row = 0; row < rows; ++row) {
          const TensorView::Place at = layout_.a.at(group.begin + static_cast<std::int64_t>(row), step.k.begin);
          const Tile x = widened(tl_.load(at.va, {step.k.length, 1}, dtype()));
          const Tile sum = tl_.reduce(ReduceKind::sum, b * x, 0);
          sums[row] = sums[row] ? sums[row] + sum : sum;
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

  const GemmCall& call_;
  Tl& tl_;
  std::optional<SumExchange> exchange_;  // of a split k
  const GemmLayout layout_;
  std::vector<Tile> ahead_;                                      // of a: the next group's first span, by block of rows
  std::deque<Block> finished_;                                   // of a split k: to be exchanged
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
