#include "runtime/tp/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "runtime/tp/attention_kernels.h"
#include "runtime/tp/launch_bound.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tcm_room.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
constexpr std::int64_t kRotaryRows = 256;  ///< of a tile. assumed: with the columns of half a head well below a share

/// What the kernel gets beside the bases.
struct RotaryCall {
  TensorGeometry qkv, queries, keys, values, table;
  QueryLayout layout;
  CacheLayout cache;
  std::int64_t head_dim = 0, start = 0, stripes = 1;
  Va table_va = 0;  ///< 0: heads are not turned
};

/// One head's part of the projection, as a kernel takes it apart.
struct HeadPart {
  enum class Kind { query, key, value } kind = Kind::query;
  std::int64_t head = 0;    ///< of its kind
  std::int64_t within = 0;  ///< column in the head
};

HeadPart head_part(const RotaryCall& call, std::int64_t col) {
  const std::int64_t queries = call.layout.kv_heads * call.layout.group, head = col / call.head_dim;
  HeadPart part;
  part.within = col % call.head_dim;
  part.kind = head < queries                          ? HeadPart::Kind::query
              : head < queries + call.layout.kv_heads ? HeadPart::Kind::key
                                                      : HeadPart::Kind::value;
  part.head = part.kind == HeadPart::Kind::query ? head
              : part.kind == HeadPart::Kind::key ? head - queries
                                                 : head - queries - call.layout.kv_heads;
  return part;
}

/// Columns [begin, end) of the projection in pieces that lie in one half of one head and are not cut, nor their
/// partners in the other half. A head of an odd number of elements is not turned: it has one part.
std::vector<Piece> head_pieces(const TensorView& qkv, const RotaryCall& call, std::int64_t begin, std::int64_t end) {
  const std::int64_t half = call.head_dim % 2 == 0 ? call.head_dim / 2 : call.head_dim;
  std::vector<std::int64_t> cuts, blocks;
  for (std::int64_t col = (begin / half + 1) * half; col < end; col += half) cuts.push_back(col);
  qkv.col_cuts(0, call.qkv.shape.cols, blocks);
  for (const std::int64_t block : blocks) {
    for (const std::int64_t cut : {block - half, block, block + half}) {
      if (cut > begin && cut < end) cuts.push_back(cut);
    }
  }
  return pieces(begin, end, std::move(cuts), half);
}

/// Row of the result of token `t` of batch entry `entry`, and how many tokens follow it there.
struct Target {
  TensorView::Place at;
  std::int64_t tokens = 0;
};
Target target_of(const TensorView& queries, const TensorView& keys, const TensorView& values, const RotaryCall& call,
                 const HeadPart& part, std::int64_t entry, std::int64_t t) {
  const QueryLayout& layout = call.layout;
  if (part.kind == HeadPart::Kind::query) {
    const std::int64_t sequence = entry * layout.kv_heads + part.head / layout.group, block = t / layout.tile;
    const std::int64_t count = layout.tokens_of(block), first = t - block * layout.tile;
    const std::int64_t row = layout.row(sequence, block) + part.head % layout.group * count + first;
    return {queries.at(row, part.within), count - first};
  }
  const std::int64_t position = call.start + t;
  const std::int64_t row = call.cache.row(entry * layout.kv_heads + part.head, position);
  const TensorView& view = part.kind == HeadPart::Kind::key ? keys : values;
  return {view.at(row, part.within), call.cache.page - position % call.cache.page};
}

/// Columns from `col` on of the table, of as many positions from `position` on as `shape` has rows. PEs of a cube turn
/// the same positions: by rows that lie on one of them all would read from one memory.
Tile angles_of(Tl& tl, const TensorView& table, const RotaryCall& call, std::int64_t position, Shape shape,
               std::int64_t col) {
  const std::int64_t of_stripe = call.table.shape.rows / call.stripes;
  std::vector<std::int64_t> index;
  for (std::int64_t p = position; p < position + shape.rows; ++p)
    index.push_back(p % call.stripes * of_stripe + p / call.stripes);
  const TensorView::Place first = table.at(index.front(), col);
  const DType dtype = call.table.dtype;
  if (call.stripes == 1 || shape.rows == 1) return tl.load(first.va, shape, dtype, first.row_stride);
  return tl.gather(table.at(0, col).va, index, shape.cols, dtype, first.row_stride);
}

void rotary_kernel(Va qkv, Va queries, Va keys, Va values, const RotaryCall& call, Tl& tl) {
  const TensorView in(qkv, call.qkv), query_view(queries, call.queries), key_view(keys, call.keys),
      value_view(values, call.values), table(call.table_va, call.table);
  const Region own = own_shard(qkv, call.qkv, tl).region;
  const DType dtype = call.qkv.dtype, wide = compute_type(dtype);
  const std::int64_t half = call.head_dim / 2, end = own.row + own.rows, length = call.layout.length;
  for (const Piece& cols : head_pieces(in, call, own.col, own.col + own.cols)) {
    const HeadPart part = head_part(call, cols.begin);
    // Two tiles of the projection and two of the table, as they are and in f32 (f64), their products and the result.
    const std::int64_t most =
        std::max<std::int64_t>(1, fitting_elements(tl, kRotaryRows * cols.length, 10 * size_of(wide)) / cols.length);
    const bool turns = call.table_va != 0 && part.kind != HeadPart::Kind::value;
    for (std::int64_t row = own.row; row < end;) {
      // Rows of one sequence whose tokens lie together in the result.
      const std::int64_t entry = row / length, t = row % length;
      const Target first = target_of(query_view, key_view, value_view, call, part, entry, t);
      const std::int64_t count = std::min({first.tokens, length - t, end - row, most});
      std::vector<std::int64_t> row_cuts;
      in.row_cuts(row, row + count, row_cuts);
      for (const Piece& rows : pieces(row, row + count, row_cuts, count)) {
        const Shape shape{rows.length, cols.length};
        const TensorView::Place from = in.at(rows.begin, cols.begin);
        Tile value = tl.load(from.va, shape, dtype, from.row_stride);
        if (turns) {
          const bool low = part.within < half;
          const TensorView::Place other = in.at(rows.begin, cols.begin + (low ? half : -half));
          const std::int64_t position = call.start + t + rows.begin - row, angle = part.within % half;
          const auto angles = [&](std::int64_t col) {
            return as_type(tl, angles_of(tl, table, call, position, shape, col), wide);
          };
          const Tile along = as_type(tl, value, wide) * angles(angle);
          const Tile across =
              as_type(tl, tl.load(other.va, shape, dtype, other.row_stride), wide) * angles(half + angle);
          value = as_type(tl, low ? along - across : along + across, dtype);
        }
        const Target to = target_of(query_view, key_view, value_view, call, part, entry, t + rows.begin - row);
        tl.store(to.at.va, value, to.at.row_stride);
      }
      row += count;
    }
  }
}
}  // namespace

RotaryTable::RotaryTable(const ParallelState& state, std::int64_t positions, std::int64_t head_dim, double theta,
                         DType dtype, const RopeScaling& scaling) {
  dtype = dtype == DType::f64 ? dtype : DType::f32;
  if (positions < 1 || head_dim < 2 || head_dim % 2 != 0 || !(theta > 0)) {
    throw std::invalid_argument(
        fmt::format("rotary table: positions {}, head dim {}, theta {}: give 1 or more positions, an even head dim and "
                    "a positive theta",
                    positions, head_dim, theta));
  }
  const std::int64_t half = head_dim / 2;
  stripes_ = std::min<std::int64_t>(state.context().map().pes_per_cube, positions);
  positions_ = positions;
  const std::int64_t of_stripe = (positions + stripes_ - 1) / stripes_, rows = of_stripe * stripes_;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(rows * head_dim) * size_of(dtype));
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency = rotary_frequency(theta, scaling, i, head_dim);
    for (std::int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      const std::int64_t first = (p % stripes_ * of_stripe + p / stripes_) * head_dim;
      store_element(bytes.data(), dtype, static_cast<std::size_t>(first + i), std::cos(angle));
      store_element(bytes.data(), dtype, static_cast<std::size_t>(first + half + i), std::sin(angle));
    }
  }
  table_ = state.context().from_bytes(bytes, {rows, head_dim}, dtype,
                                      DPPolicy().cube(CubeSplit::replicate).pe(PeSplit::row_wise), "rotary");
}

Handle rotate_and_store(Context& context, const std::string& name, const Tensor& qkv, const Tensor& queries,
                        const QueryLayout& layout, const KvCache& cache, const RotaryTable& rotary,
                        std::int64_t start) {
  const std::int64_t head_dim = cache.options().head_dim;
  if (rotary && rotary.table().shape().cols != head_dim) {
    throw std::invalid_argument(
        fmt::format("'{}': the rotary table is for head dim {}, not {}", name, rotary.table().shape().cols, head_dim));
  }
  if (rotary && start + layout.length > rotary.positions()) {
    throw std::invalid_argument(fmt::format("'{}': positions {} to {}: the rotary table has {}", name, start,
                                            start + layout.length - 1, rotary.positions()));
  }
  RotaryCall call{geometry_of(qkv),
                  geometry_of(queries),
                  geometry_of(cache.keys()),
                  geometry_of(cache.values()),
                  geometry_of(rotary.table()),
                  layout,
                  cache.layout(),
                  head_dim,
                  start,
                  rotary.stripes()};
  if (rotary) call.table_va = rotary.table().va();
  LaunchOptions options = on_pes_of(qkv);
  options.bound = stream_bound(context.map(), "rotary", {{qkv}, {queries, 1, 1}});
  // Tokens of one page go to the same PEs, from the same ones.
  if (layout.length == 1) {
    options.work = {layout.kv_heads, layout.group, call.cache.sequences, call.cache.run,
                    call.cache.page, head_dim,     call.table_va != 0,   start / call.cache.page};
  }
  return context.launch_async(name, options, rotary_kernel, qkv, queries, cache.keys(), cache.values(), call);
}

}  // namespace kernbench::tp
