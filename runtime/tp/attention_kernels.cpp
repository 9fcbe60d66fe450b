#include "runtime/tp/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "runtime/tp/gemm_bound.h"
#include "runtime/tp/launch_bound.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tcm_room.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
constexpr std::int64_t kKeys = 128;    ///< of a step, at most. assumed: four arrays high, so that its fill is hidden
constexpr std::int64_t kTogether = 2;  ///< blocks on the way over the same keys: the array works for one of them
                                       ///< while the math engine works for the other
constexpr std::size_t kAhead = 4;      ///< steps whose keys and values are under way. assumed: what the memory of a
                                       ///< PE at the other end of a SIP takes
constexpr std::size_t kAheadOfSharers = 2;  ///< rounds, of a step of each PE that shares them. assumed: as of a GEMM
constexpr std::int64_t kQueryRows = 64;     ///< of a block, at most. assumed: two arrays wide
constexpr std::int64_t kFewestTokens = 8;   ///< of a block: fewer would read the keys again for too little work
constexpr double kMasked = -1e30;           ///< a score that has no weight beside any other

/// Keys of a step and rows of a block of queries, at most: fewer where a launch's share of TCM is small.
struct AttentionTiles {
  std::int64_t keys = kKeys, rows = kQueryRows;
};
AttentionTiles attention_tiles(std::uint64_t share, std::int64_t head_dim, DType dtype) {
  const std::uint64_t item = size_of(dtype), wide = size_of(compute_type(dtype));
  // Scores of both blocks and what becomes of those of one; queries, sums and results; keys and values under way.
  const auto bytes = [&](const AttentionTiles& t) {
    const auto keys = static_cast<std::uint64_t>(t.keys), rows = static_cast<std::uint64_t>(t.rows),
               cols = static_cast<std::uint64_t>(head_dim);
    return 10 * rows * keys * wide + kTogether * rows * cols * (item + 3 * wide) +
           2 * (kAhead + kAheadOfSharers + 1) * keys * cols * item;
  };
  constexpr std::int64_t kFewestKeys = 8, kFewKeys = 32, kFewestRows = 8;
  AttentionTiles tiles;
  while (bytes(tiles) > tcm_room(share)) {
    if (tiles.keys > kFewKeys || (tiles.rows <= kFewestRows && tiles.keys > kFewestKeys)) {
      tiles.keys /= 2;
    } else if (tiles.rows > kFewestRows) {
      tiles.rows /= 2;
    } else {
      break;
    }
  }
  return tiles;
}

/// What the kernels get beside the bases.
struct AttentionCall {
  TensorGeometry queries, keys, values, context, partial, numbers;
  Va partial_va = 0, numbers_va = 0;
  QueryLayout layout;
  CacheLayout cache;
  std::int64_t head_dim = 0, past = 0;
  double scale = 0;
  std::uint64_t pes_of_cube = 0;  ///< pes_of_every_cube() of the cache
};

/// The part of a sequence that one PE holds: positions of its pages, below `end`.
struct KeyPart {
  std::int64_t first_row = 0;  ///< of the cache
  std::int64_t count = 0;      ///< rows that are there
};
KeyPart key_part(const CacheLayout& cache, std::int64_t sequence, std::int64_t place, std::int64_t end) {
  KeyPart part;
  const std::int64_t pages = (end + cache.page - 1) / cache.page;  // of all
  if (place >= pages) return part;
  const std::int64_t own = (pages - place + cache.run - 1) / cache.run;
  part.first_row = cache.row(sequence, place * cache.page);
  const std::int64_t last = place + (own - 1) * cache.run;  // its last page
  part.count = (own - 1) * cache.page + std::min(cache.page, end - last * cache.page);
  return part;
}

/// Queries of one block on their way over keys and values: the largest score of each so far, the sum of their weights,
/// and the weighted sum of values, all in terms of that largest score.
class OnlineSoftMax {
 public:
  OnlineSoftMax(Tl& tl, const AttentionCall& call, const Tile& queries)
      : tl_(tl),
        call_(call),
        wide_(compute_type(call.queries.dtype)),
        rows_(queries.shape().rows),
        turned_(tl.transpose(queries)),
        most_(tl.fill({rows_, 1}, wide_, kMasked)),
        weight_(tl.fill({rows_, 1}, wide_, 0)),
        sum_(tl.fill({rows_, call.head_dim}, wide_, 0)),
        scale_(tl.fill({1, 1}, wide_, call.scale)) {}

  /// The scores of a step's keys: keys x rows, not scaled yet. The array's part, which may be asked for ahead.
  Tile scores(const Tile& keys) {
    Tile& none = zeros_[keys.shape().rows];
    if (!none) none = tl_.fill({keys.shape().rows, rows_}, wide_, 0);
    return tl_.dot(keys, turned_, none);
  }
  /// `raw`: scores() of these keys. `positions`: 1 x keys, or an empty tile where every query sees every key; `seen`:
  /// rows x 1, the last that each sees.
  void step(const Tile& raw, const Tile& values, const Tile& positions, const Tile& seen) {
    Tile scores = tl_.transpose(raw) * scale_;
    if (positions) {
      const Tile mask = tl_.math(MathOp::less_equal, {positions, seen});
      scores = tl_.select(mask, scores, tl_.fill({1, 1}, wide_, kMasked));
    }
    const Tile most = tl_.maximum(most_, tl_.reduce(ReduceKind::max, scores, 1));
    const Tile weights = tl_.exp(scores - most), kept = tl_.exp(most_ - most);
    const Tile narrow = as_type(tl_, weights, call_.queries.dtype);
    weight_ = weight_ * kept + tl_.reduce(ReduceKind::sum, weights, 1);
    sum_ = tl_.dot(narrow, values, sum_ * kept);
    most_ = most;
  }
  Tile result() { return as_type(tl_, sum_ / weight_, call_.queries.dtype); }
  const Tile& most() const { return most_; }
  const Tile& weight() const { return weight_; }
  const Tile& sum() const { return sum_; }

 private:
  Tl& tl_;
  const AttentionCall& call_;
  DType wide_;
  std::int64_t rows_;
  Tile turned_, most_, weight_, sum_, scale_;
  std::map<std::int64_t, Tile> zeros_;  ///< what scores begin with, by keys
};

/// Positions of keys [first, first + count) of what the PE at `place` holds of a sequence.
Tile positions_of(Tl& tl, const CacheLayout& cache, std::int64_t place, std::int64_t first, std::int64_t count) {
  const std::int64_t page = first / cache.page;
  const bool together = cache.run == 1 || (first + count - 1) / cache.page == page;
  if (together) return tl.arange(count, DType::i32, cache.position(place, first));
  // Every page but the first is `run` pages behind the one before.
  const auto number = [&](std::int64_t value) { return tl.fill({1, 1}, DType::i32, static_cast<double>(value)); };
  const Tile slot = tl.arange(count, DType::i32, first), pages = slot / number(cache.page);
  return slot + pages * number((cache.run - 1) * cache.page) + number(place * cache.page);
}

/// Where the kernels read, and one block of queries of a sequence over what one PE holds of its cache.
struct AttentionViews {
  AttentionViews(Va queries, Va keys, Va values, Va context, const AttentionCall& call)
      : queries(queries, call.queries),
        keys(keys, call.keys),
        values(values, call.values),
        context(context, call.context) {}
  TensorView queries, keys, values, context;
};

Tile load_queries(Tl& tl, const AttentionViews& views, const AttentionCall& call, std::int64_t sequence,
                  std::int64_t block) {
  const std::int64_t rows = call.layout.tokens_of(block) * call.layout.group;
  const TensorView::Place at = views.queries.at(call.layout.row(sequence, block), 0);
  return tl.load(at.va, {rows, call.head_dim}, call.queries.dtype, at.row_stride);
}

/// Queries of a sequence that walk over its keys together.
struct QueryBlock {
  std::int64_t number = 0, first = 0, end = 0;  ///< block; position of its first token, behind its last
  Tile seen;                                    ///< rows x 1: the last position that each sees; empty: all of them
  OnlineSoftMax state;
};

/// Keys of a sequence that are one piece of a PE's memory.
struct KeyStep {
  std::int64_t place = 0;  ///< PE of the sequence
  std::int64_t at = 0;     ///< of what it holds of the sequence
  std::int64_t count = 0;  ///< keys
  std::int64_t row = 0;    ///< of the cache
};
/// All keys below `end` that `places` PEs hold, of `first` before others, at most `keys` a step. Every cube goes round
/// in a stride of its own: in one, all would cross the same links at once.
std::vector<KeyStep> steps_of(const CacheLayout& cache, std::int64_t sequence, std::int64_t first, std::int64_t places,
                              std::int64_t end, std::int64_t keys) {
  std::int64_t stride = 2 * first % cache.run + 1;
  while (std::gcd(stride, cache.run) != 1) ++stride;
  std::vector<KeyStep> steps;
  for (std::int64_t i = 0; i < places; ++i) {
    const std::int64_t place = (first + i * stride) % cache.run;
    const KeyPart part = key_part(cache, sequence, place, end);
    for (std::int64_t at = 0; at < part.count; at += keys)
      steps.push_back({place, at, std::min(keys, part.count - at), part.first_row + at});
  }
  return steps;
}

/// PEs of one cube that hold parts of the same sequence: keys and values come to them once, each fetches one of so many
/// steps and sends it to the others.
struct Sharers {
  std::int64_t first = 0;     ///< place in the sequence of the first of them; the others follow
  std::vector<unsigned> pes;  ///< by place
  std::size_t self = 0;       ///< which of them this PE is
};
Sharers sharers_of(const AttentionCall& call, std::int64_t sequence, std::int64_t self, const Tl& tl) {
  Sharers sharers;
  const std::int64_t begin = call.cache.pe_of(sequence, 0);
  if (call.pes_of_cube == 0) return {self - begin, {static_cast<unsigned>(tl.program_id(0))}, 0};
  const std::vector<unsigned> pes = by_place(call.pes_of_cube);
  std::vector<ShardSpec> shards = call.keys.shards();
  shards.erase(std::remove_if(shards.begin(), shards.end(), [](const auto& shard) { return shard.region.empty(); }),
               shards.end());
  const int cube = shards.at(static_cast<std::size_t>(self)).cube;
  std::int64_t number = 0;
  for (const ShardSpec& shard : shards) {
    if (shard.cube == cube && number >= begin && number < begin + call.cache.run) {
      if (sharers.pes.empty()) sharers.first = number - begin;
      if (number == self) sharers.self = sharers.pes.size();
      sharers.pes.push_back(pes.at(static_cast<std::size_t>(shard.pe)));
    }
    ++number;
  }
  return sharers;
}

/// Blocks of queries over the steps of a sequence. Products of a block's queries with the next keys come before what
/// makes weights of the ones before, so that the array and the math engine work side by side. Keys that all of a block
/// see need no mask, those that none sees are left out.
class Walk {
 public:
  /// `sharers`: who goes over the same steps.
  Walk(Tl& tl, const AttentionViews& views, const AttentionCall& call, std::vector<QueryBlock>& blocks,
       std::vector<KeyStep> steps, const Sharers& sharers)
      : tl_(tl), views_(views), call_(call), blocks_(blocks), sharers_(sharers), steps_(std::move(steps)) {}
  void run() {
    const std::size_t every = sharers_.pes.size();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const std::size_t fetched = std::max(i + kAhead, (i / every + kAheadOfSharers) * every);
      for (; fetched_ < std::min(fetched, steps_.size()); ++fetched_) fetch(fetched_);
      for (; asked_ < std::min(i + kAhead, steps_.size()); ++asked_) ask(asked_);
      const KeyStep& step = steps_[i];
      const std::int64_t earliest = call_.cache.position(step.place, step.at),
                         latest = call_.cache.position(step.place, step.at + step.count - 1);
      Tile positions;
      for (QueryBlock& block : blocks_) {
        if (earliest >= block.end) continue;
        const bool masked = latest > block.first && block.seen;
        if (masked && !positions) positions = positions_of(tl_, call_.cache, step.place, step.at, step.count);
        const Tile raw = block.state.scores(there_.front().keys);
        weigh();
        next_ = Next{&block, raw, there_.front().values, masked ? positions : Tile()};
      }
      there_.pop_front();
    }
    weigh();
  }

 private:
  struct Loaded {
    Tile keys, values;
  };
  struct Next {
    QueryBlock* block = nullptr;
    Tile raw, values, positions;
  };
  bool is_own(std::size_t number) const { return number % sharers_.pes.size() == sharers_.self; }
  /// Of a step of this PE's own: from memory, and on to the others.
  void fetch(std::size_t number) {
    if (!is_own(number)) return;
    const KeyStep& step = steps_[number];
    const Shape shape{step.count, call_.head_dim};
    const TensorView::Place key = views_.keys.at(step.row, 0), value = views_.values.at(step.row, 0);
    const Tile keys = tl_.load(key.va, shape, call_.keys.dtype, key.row_stride);
    own_.push_back({keys, tl_.load(value.va, shape, call_.keys.dtype, value.row_stride)});
    for (std::size_t i = 1; i < sharers_.pes.size(); ++i) {
      const Direction to = Direction::local(sharers_.pes[(sharers_.self + i) % sharers_.pes.size()]);
      tl_.send(to, own_.back().keys);
      tl_.send(to, own_.back().values);
    }
  }
  /// The step is to be there soon.
  void ask(std::size_t number) {
    if (is_own(number)) {
      there_.push_back(own_.front());
      own_.pop_front();
      return;
    }
    const Shape shape{steps_[number].count, call_.head_dim};
    const Direction from = Direction::local(sharers_.pes[number % sharers_.pes.size()]);
    const Tile keys = tl_.recv(from, shape, call_.keys.dtype);
    there_.push_back({keys, tl_.recv(from, shape, call_.keys.dtype)});
  }
  /// The weights of the last products.
  void weigh() {
    if (next_.block != nullptr) next_.block->state.step(next_.raw, next_.values, next_.positions, next_.block->seen);
    next_.block = nullptr;
  }

  Tl& tl_;
  const AttentionViews& views_;
  const AttentionCall& call_;
  std::vector<QueryBlock>& blocks_;
  const Sharers& sharers_;
  const std::vector<KeyStep> steps_;
  std::size_t fetched_ = 0, asked_ = 0;
  std::deque<Loaded> own_, there_;  // fetched and not asked for yet; asked for
  Next next_;
};

/// For each row of a block, heads of the group one after the other, the position of its token.
Tile seen_by(Tl& tl, std::int64_t group, std::int64_t tokens, std::int64_t first) {
  const Tile rows = tl.arange(group * tokens, DType::i32);
  const Tile count = tl.fill({1, 1}, DType::i32, static_cast<double>(tokens));
  const Tile token = rows - rows / count * count;
  return tl.transpose(token + tl.fill({1, 1}, DType::i32, static_cast<double>(first)));
}

/// Stores a block's result, heads [first, first + heads) of the group.
void store_context(Tl& tl, const AttentionViews& views, const AttentionCall& call, std::int64_t sequence,
                   std::int64_t block, std::int64_t first_head, std::int64_t heads, const Tile& result) {
  const QueryLayout& layout = call.layout;
  const std::int64_t tokens = layout.tokens_of(block);
  const std::int64_t row = sequence / layout.kv_heads * layout.length + block * layout.tile;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t column = (sequence % layout.kv_heads * layout.group + first_head + head) * call.head_dim;
    const TensorView::Place at = views.context.at(row, column);
    tl.store(at.va, heads == 1 ? result : tl.slice(result, head * tokens, tokens), at.row_stride);
  }
}

/// Blocks of queries dealt to the PEs of each sequence, there and back, so that late blocks, which see more, and early
/// ones come to each.
void attention_kernel(Va queries, Va keys, Va values, Va context, const AttentionCall& call, Tl& tl) {
  const AttentionViews views(queries, keys, values, context, call);
  const CacheLayout& cache = call.cache;
  const QueryLayout& layout = call.layout;
  const std::int64_t self = own_shard(keys, call.keys, tl).number;
  const std::int64_t count = (layout.length + layout.tile - 1) / layout.tile;
  const std::int64_t keys_a_step = attention_tiles(tl.tcm(), call.head_dim, call.queries.dtype).keys;
  for (std::int64_t sequence = 0; sequence < cache.sequences; ++sequence) {
    const std::int64_t place = self - cache.pe_of(sequence, 0);
    if (place < 0 || place >= cache.run) continue;
    const Sharers sharers = sharers_of(call, sequence, self, tl);
    const auto block_of = [&](std::int64_t round, std::int64_t of) {
      return round * cache.run + (round % 2 == 0 ? of : cache.run - 1 - of);
    };
    for (std::int64_t round = 0; round * cache.run < count; round += kTogether) {
      std::vector<QueryBlock> blocks;
      std::int64_t end = 0;  // of what the sharers' queries see
      for (std::int64_t of_walk = round; of_walk < round + kTogether; ++of_walk) {
        for (std::size_t i = 0; i < sharers.pes.size(); ++i) {
          const std::int64_t of = sharers.first + static_cast<std::int64_t>(i), block = block_of(of_walk, of);
          if (block >= count) continue;
          const std::int64_t tokens = layout.tokens_of(block), first = call.past + block * layout.tile;
          end = std::max(end, first + tokens);
          if (of != place) continue;
          blocks.push_back({block, first, first + tokens,
                            layout.length > 1 ? seen_by(tl, layout.group, tokens, first) : Tile(),
                            OnlineSoftMax(tl, call, load_queries(tl, views, call, sequence, block))});
        }
      }
      Walk(tl, views, call, blocks, steps_of(cache, sequence, sharers.first, cache.run, end, keys_a_step), sharers)
          .run();
      for (QueryBlock& block : blocks)
        store_context(tl, views, call, sequence, block.number, 0, layout.group, block.state.result());
    }
  }
}

/// A single token: each PE over its own part of the cache.
void partial_kernel(Va queries, Va keys, Va values, Va context, const AttentionCall& call, Tl& tl) {
  const AttentionViews views(queries, keys, values, context, call);
  const TensorView sums(call.partial_va, call.partial), numbers(call.numbers_va, call.numbers);
  const CacheLayout& cache = call.cache;
  const std::int64_t self = own_shard(keys, call.keys, tl).number, sequence = self / cache.run;
  const std::int64_t end = call.past + 1, pages = (end + cache.page - 1) / cache.page, place = self % cache.run;
  if (sequence >= cache.sequences || place >= pages) return;
  std::vector<QueryBlock> blocks;
  blocks.push_back({0, call.past, end, Tile(), OnlineSoftMax(tl, call, load_queries(tl, views, call, sequence, 0))});
  const Sharers alone{place, {static_cast<unsigned>(tl.program_id(0))}, 0};
  const std::int64_t keys_a_step = attention_tiles(tl.tcm(), call.head_dim, call.queries.dtype).keys;
  Walk(tl, views, call, blocks, steps_of(cache, sequence, place, 1, end, keys_a_step), alone).run();
  OnlineSoftMax& state = blocks.front().state;
  tl.store(sums.at(self * call.layout.group, 0).va, state.sum());
  tl.store(numbers.at(self, 0).va, tl.transpose(state.most()));
  tl.store(numbers.at(cache.pes + self, 0).va, tl.transpose(state.weight()));
}

/// Puts the PEs' sums together, a head of a group on each PE of its sequence.
void combine_kernel(Va keys, Va context, const AttentionCall& call, Tl& tl) {
  const AttentionViews views(0, keys, 0, context, call);
  const TensorView sums(call.partial_va, call.partial), numbers(call.numbers_va, call.numbers);
  const CacheLayout& cache = call.cache;
  const std::int64_t self = own_shard(keys, call.keys, tl).number, sequence = self / cache.run;
  if (sequence >= cache.sequences) return;
  const std::int64_t group = call.layout.group, place = self % cache.run, first = sequence * cache.run;
  const std::int64_t used = std::min(cache.run, (call.past + cache.page) / cache.page);  // PEs that hold a position
  if (place >= group) return;
  const DType wide = call.partial.dtype;
  const Tile most = tl.load(numbers.at(first, 0).va, {used, group}, wide);
  const Tile weight = tl.load(numbers.at(cache.pes + first, 0).va, {used, group}, wide);
  const Tile factor = tl.exp(most - tl.reduce(ReduceKind::max, most, 0));
  const Tile total = tl.transpose(tl.reduce(ReduceKind::sum, weight * factor, 0));  // group x 1
  const Tile turned = tl.transpose(factor);                                         // group x used
  for (std::int64_t head = place; head < group; head += cache.run) {
    const Tile parts = tl.load(sums.at(first * group + head, 0).va, {used, call.head_dim}, wide, group * call.head_dim);
    const Tile own = group == 1 ? turned : tl.slice(turned, head, 1);  // a slice of a single row would be of columns
    const Tile sum = tl.dot(own, parts) / tl.slice(total, head, 1);
    store_context(tl, views, call, sequence, 0, head, 1, as_type(tl, sum, call.context.dtype));
  }
}
}  // namespace

std::int64_t query_tile(const MachineMap& map, const KvCache& cache, std::int64_t group, std::int64_t length) {
  const std::uint64_t share = map.tcm.bytes / map.engines.kernel_contexts;
  const AttentionTiles tiles = attention_tiles(share, cache.options().head_dim, cache.options().dtype);
  const std::int64_t most = std::max<std::int64_t>(1, tiles.rows / group);
  const std::int64_t blocks = kTogether * cache.layout().run;  // so many for each PE of the sequence
  const std::int64_t fair = (length + blocks - 1) / blocks;
  return std::min(length, std::clamp(fair, std::min(kFewestTokens, most), most));
}

bool splits_cache(const CacheLayout& cache, std::int64_t length) { return length == 1 && cache.run > 1; }

namespace {
/// Numbers that differ by less than one in `parts` become one.
std::int64_t coarse(std::int64_t value, std::int64_t parts) {
  std::int64_t step = 1;
  while (2 * step * parts <= value) step *= 2;
  return value / step * step;
}
}  // namespace

std::vector<std::int64_t> decode_work(const QueryLayout& layout, const CacheLayout& cache, std::int64_t head_dim,
                                      std::int64_t past) {
  const std::int64_t end = past + 1, pages = (end + cache.page - 1) / cache.page, used = std::min(cache.run, pages);
  const std::int64_t longest = key_part(cache, 0, 0, end).count;  // the first PE has the first page of each round
  return {layout.kv_heads, layout.group, cache.sequences,      cache.run,      cache.page,
          head_dim,        used,         coarse(longest, 256), coarse(end, 64)};
}

namespace {
/// Two products for every query and key that it sees, on the arrays or the math engines, and at least the exponential
/// of every score; keys and values that are there, queries and result once.
LaunchBound attention_bound(const MachineMap& map, const AttentionOperands& operands, const KvCache& cache) {
  const KvCacheOptions& kept = cache.options();
  const QueryLayout& layout = operands.layout;
  const auto length = static_cast<double>(layout.length), past = static_cast<double>(operands.past);
  const double queries = static_cast<double>(kept.batch * kept.heads * layout.group) * length;
  const double scores = queries * (past + (length + 1) / 2), macs = 2 * scores * static_cast<double>(kept.head_dim);
  const double there =
      (past + length) * static_cast<double>(cache.layout().sequences) / static_cast<double>(cache.keys().shape().rows);
  const std::set<PeCoord> pes = holders({cache.keys()});
  const PeEngines e = map.rates(*pes.begin()).engines;
  const CellRate cell = cell_rate(e, kept.dtype);
  const auto all = static_cast<double>(pes.size());
  const double own = operands.partial ? 0 : 1;
  LaunchBound bound =
      stream_bound(map, "attention",
                   {{operands.queries}, {cache.keys(), there}, {cache.values(), there}, {operands.context, own, own}});
  const double lanes = static_cast<double>(e.math_lanes) * static_cast<double>(e.math_hz) * all;
  const double cells = static_cast<double>(e.gemm_rows) * e.gemm_cols * static_cast<double>(cell.at_once) /
                       static_cast<double>(cell.cycles) * static_cast<double>(e.gemm_hz) * all;
  const Ps latency = e.dispatch + least_access(map, *pes.begin()) + way_there_and_back(map, *pes.begin());
  const auto array = static_cast<Ps>(std::min(macs / cells, 2 * macs / lanes) * 1e12),
             math = static_cast<Ps>(scores / lanes * 1e12);
  bound.flops = 2 * macs;
  if (latency + std::max(array, math) <= bound.time) return bound;
  bound.time = latency + std::max(array, math);
  bound.by = latency > std::max(array, math) ? "latency" : array >= math ? "array" : "math";
  return bound;
}
}  // namespace

std::vector<Handle> attend(Context& context, const std::string& name, const AttentionOperands& operands,
                           const KvCache& cache) {
  AttentionCall call;
  call.queries = geometry_of(operands.queries);
  call.keys = geometry_of(cache.keys());
  call.values = geometry_of(cache.values());
  call.context = geometry_of(operands.context);
  call.partial = geometry_of(operands.partial);
  call.numbers = geometry_of(operands.numbers);
  call.layout = operands.layout;
  call.cache = cache.layout();
  call.head_dim = cache.options().head_dim;
  call.pes_of_cube = pes_of_every_cube(cache.keys());
  call.past = operands.past;
  call.scale = 1 / std::sqrt(static_cast<double>(call.head_dim));
  LaunchOptions options = on_pes_of(cache.keys());
  options.bound = attention_bound(context.map(), operands, cache);
  if (operands.layout.length == 1)
    options.work = decode_work(operands.layout, cache.layout(), call.head_dim, call.past);
  if (!operands.partial) {
    options.cube_queues = cache.layout().run > 1 && call.pes_of_cube != 0;
    return {context.launch_async(name, options, attention_kernel, operands.queries, cache.keys(), cache.values(),
                                 operands.context, call)};
  }
  call.partial_va = operands.partial.va();
  call.numbers_va = operands.numbers.va();
  const Handle sums = context.launch_async(name, options, partial_kernel, operands.queries, cache.keys(),
                                           cache.values(), operands.context, call);
  options.bound = stream_bound(context.map(), "combine", {{operands.context, 1, 1}});
  return {sums, context.launch_async(name + ".combine", options, combine_kernel, cache.keys(), operands.context, call)};
}

}  // namespace kernbench::tp
