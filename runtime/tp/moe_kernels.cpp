#include "runtime/tp/moe_kernels.h"

#include <algorithm>
#include <limits>

#include "runtime/tp/launch_bound.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tcm_room.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
/// Largest tile, elements. assumed: six of them in f32 are 768 KiB of a kernel's TCM.
constexpr std::int64_t kExpertElements = 32768;
std::int64_t expert_elements(const Tl& tl) { return fitting_elements(tl, kExpertElements, 8 * size_of(DType::f32)); }
constexpr std::int64_t kNoExpert = std::numeric_limits<std::int32_t>::max();

struct ChooseCall {
  TensorGeometry logits, chosen, weights;
  std::int64_t per_token = 0;
};

void choose_kernel(Va logits, Va chosen, Va weights, const ChooseCall& call, Tl& tl) {
  const TensorView x(logits, call.logits), into(chosen, call.chosen), scale(weights, call.weights);
  const Region own = own_shard(logits, call.logits, tl).region;
  const DType wide = call.weights.dtype;
  const std::int64_t rows_of_rank = call.chosen.shape.cols / call.per_token;
  const Tile numbers = tl.arange(call.logits.shape.cols, DType::i32);
  const Tile none = tl.fill({1, 1}, DType::i32, static_cast<double>(kNoExpert));
  const Tile lowest = tl.fill({1, 1}, wide, std::numeric_limits<float>::lowest());
  const auto as_row = [&](const Tile& column) { return column.shape().rows == 1 ? column : tl.transpose(column); };
  const std::int64_t most_rows = std::max<std::int64_t>(1, expert_elements(tl) / call.logits.shape.cols);
  for (const Piece& rows : pieces(own.row, own.row + own.rows, {}, most_rows)) {
    const TensorView::Place at = x.at(rows.begin, 0);
    Tile left = as_type(tl, tl.load(at.va, {rows.length, own.cols}, call.logits.dtype, at.row_stride), wide);
    std::vector<Tile> values;
    for (std::int64_t j = 0; j < call.per_token; ++j) {
      values.push_back(tl.reduce(ReduceKind::max, left, 1));
      const Tile found = tl.select(tl.math(MathOp::equal, {left, values.back()}), numbers, none);
      const Tile index = tl.reduce(ReduceKind::min, found, 1);
      tl.store(into.at(0, j * rows_of_rank + rows.begin).va, as_row(index));
      if (j + 1 < call.per_token) left = tl.select(tl.math(MathOp::equal, {numbers, index}), lowest, left);
    }
    std::vector<Tile> parts;
    Tile sum;
    for (const Tile& value : values) {
      parts.push_back(tl.exp(value - values.front()));
      sum = sum ? sum + parts.back() : parts.back();
    }
    for (std::int64_t j = 0; j < call.per_token; ++j) {
      tl.store(scale.at(0, j * rows_of_rank + rows.begin).va, as_row(parts[static_cast<std::size_t>(j)] / sum));
    }
  }
}

/// What is moved, beside the bases: element i is row `rows[i]` of the one tensor and row first + i of the other.
template <int Most>
struct MoveCall {
  TensorGeometry from, to;
  bool puts = false;  ///< rows are those of `to`
  std::int64_t first = 0, count = 0;
  std::int32_t rows[Most] = {};
};

/// Rows that are moved at once: `to` from row `to_row` on, and what comes there.
struct RowRun {
  std::int64_t to_row = 0;
  std::vector<std::int64_t> from;
};

/// Rows of `to` that the PE writes, in runs. Of a tensor that is not in one piece what is read is in one, too.
std::vector<RowRun> runs_of(const std::int32_t* rows, std::int64_t first, std::int64_t count, bool puts,
                            const Region& own, const TensorView& from, std::int64_t from_rows, std::int64_t most,
                            bool gathers) {
  std::vector<std::int64_t> cuts;
  from.row_cuts(0, from_rows, cuts);
  const auto cut = [&](std::int64_t row) { return std::find(cuts.begin(), cuts.end(), row) != cuts.end(); };
  std::vector<RowRun> runs;
  for (std::int64_t i = 0; i < count; ++i) {
    if (rows[i] < 0) continue;
    const std::int64_t source = puts ? first + i : rows[i], target = puts ? rows[i] : first + i;
    if (target < own.row || target >= own.row + own.rows) continue;
    if (!runs.empty()) {
      RowRun& last = runs.back();
      const auto length = static_cast<std::int64_t>(last.from.size());
      const bool goes_on = source == last.from.back() + 1 && !cut(source);
      if (last.to_row + length == target && length < most && (gathers || goes_on)) {
        last.from.push_back(source);
        continue;
      }
    }
    runs.push_back({target, {source}});
  }
  return runs;
}

template <int Most>
void move_kernel(Va from, Va to, const MoveCall<Most>& call, Tl& tl) {
  const TensorView source(from, call.from), into(to, call.to);
  const Region own = own_shard(to, call.to, tl).region;
  std::vector<std::int64_t> row_cuts, col_cuts;
  source.row_cuts(0, call.from.shape.rows, row_cuts);
  source.col_cuts(own.col, own.col + own.cols, col_cuts);
  const bool gathers = row_cuts.empty();
  const std::int64_t elements = expert_elements(tl);
  for (const Piece& cols : pieces(own.col, own.col + own.cols, col_cuts, elements)) {
    const std::int64_t most = std::max<std::int64_t>(1, elements / cols.length);
    for (const RowRun& run :
         runs_of(call.rows, call.first, call.count, call.puts, own, source, call.from.shape.rows, most, gathers)) {
      const auto length = static_cast<std::int64_t>(run.from.size());
      const TensorView::Place in = source.at(gathers ? 0 : run.from.front(), cols.begin),
                              out = into.at(run.to_row, cols.begin);
      const Tile tile = gathers ? tl.gather(in.va, run.from, cols.length, call.from.dtype, in.row_stride)
                                : tl.load(in.va, {length, cols.length}, call.from.dtype, in.row_stride);
      tl.store(out.va, tile, out.row_stride);
    }
  }
}

template <int Most>
Handle move(Context& context, const std::string& name, const Tensor& from, const Tensor& to, bool puts,
            std::int64_t first, const std::int32_t* rows, std::int64_t count) {
  MoveCall<Most> call;
  call.from = geometry_of(from);
  call.to = geometry_of(to);
  call.puts = puts;
  call.first = first;
  call.count = count;
  std::copy(rows, rows + count, call.rows);
  const auto moved = static_cast<double>(count - std::count(rows, rows + count, -1));
  LaunchOptions options = on_pes_of(to);
  // Rows that are read may be one and the same.
  const double share = moved / static_cast<double>(to.shape().rows);
  options.bound = stream_bound(context.map(), "permute", {{to, share, share}});
  return context.launch_async(name, options, move_kernel<Most>, from, to, call);
}

std::vector<Handle> move_rows(Context& context, const std::string& name, const Tensor& from,
                              const std::vector<std::int32_t>& rows, const Tensor& to, bool puts) {
  std::vector<Handle> launches;
  const auto all = static_cast<std::int64_t>(rows.size());
  for (std::int64_t at = 0; at < all; at += kMostMoeRows) {
    const std::int64_t count = std::min(kMostMoeRows, all - at);
    const std::int32_t* block = rows.data() + at;
    if (std::all_of(block, block + count, [](std::int32_t row) { return row < 0; })) continue;
    const auto submit = count <= 16 ? move<16> : count <= 128 ? move<128> : move<kMostMoeRows>;
    launches.push_back(submit(context, name, from, to, puts, at, block, count));
  }
  return launches;
}

template <int Most>
struct CombineCall {
  TensorGeometry from, weights, to;
  std::int64_t first = 0, count = 0, per_token = 0;  ///< rows of `to`
  std::int32_t slots[Most] = {};
};

template <int Most>
void combine_kernel(Va from, Va weights, Va to, const CombineCall<Most>& call, Tl& tl) {
  const TensorView source(from, call.from), scale(weights, call.weights), into(to, call.to);
  const Region own = own_shard(to, call.to, tl).region;
  const DType dtype = call.to.dtype, wide = call.weights.dtype;
  const std::int64_t rows_of_rank = call.weights.shape.cols / call.per_token;
  const std::int64_t begin = std::max(own.row, call.first), end = std::min(own.row + own.rows, call.first + call.count);
  const auto slot = [&](std::int64_t row, std::int64_t j) {
    return call.slots[(row - call.first) * call.per_token + j];
  };
  const auto whole = [&](std::int64_t row) {
    for (std::int64_t j = 0; j < call.per_token; ++j) {
      if (slot(row, j) < 0) return false;
    }
    return true;
  };
  const std::int64_t most = std::max<std::int64_t>(1, expert_elements(tl) / own.cols);
  for (std::int64_t row = begin; row < end;) {
    std::int64_t length = 1;  // rows of which nothing was dropped go together
    while (whole(row) && length < most && row + length < end && whole(row + length)) ++length;
    Tile sum;
    for (std::int64_t j = 0; j < call.per_token; ++j) {
      if (slot(row, j) < 0) continue;
      std::vector<std::int64_t> index;
      for (std::int64_t i = 0; i < length; ++i) index.push_back(slot(row + i, j));
      const TensorView::Place in = source.at(0, own.col);
      const Tile value = tl.gather(in.va, index, own.cols, dtype, in.row_stride);
      const Tile factors = tl.load(scale.at(0, j * rows_of_rank + row).va, {1, length}, wide);
      const Tile part = as_type(tl, value, wide) * (length == 1 ? factors : tl.transpose(factors));
      sum = sum ? sum + part : part;
    }
    if (!sum) sum = tl.fill({1, own.cols}, wide, 0);
    const TensorView::Place out = into.at(row, own.col);
    tl.store(out.va, as_type(tl, sum, dtype), out.row_stride);
    row += length;
  }
}

template <int Most>
Handle combine(Context& context, const std::string& name, const Tensor& from, const Tensor& weights, const Tensor& to,
               std::int64_t per_token, std::int64_t first, const std::int32_t* slots, std::int64_t count) {
  CombineCall<Most> call;
  call.from = geometry_of(from);
  call.weights = geometry_of(weights);
  call.to = geometry_of(to);
  call.first = first;
  call.count = count;
  call.per_token = per_token;
  std::copy(slots, slots + count * per_token, call.slots);
  const auto read = static_cast<double>(count * per_token - std::count(slots, slots + count * per_token, -1));
  const double written = static_cast<double>(count) / static_cast<double>(to.shape().rows);
  LaunchOptions options = on_pes_of(to);
  options.bound = stream_bound(context.map(), "combine",
                               {{to, written, written}, {from, read / static_cast<double>(from.shape().rows)}});
  return context.launch_async(name, options, combine_kernel<Most>, from, weights, to, call);
}
}  // namespace

Handle choose_experts(Context& context, const std::string& name, const Tensor& logits, const Tensor& chosen,
                      const Tensor& weights, std::int64_t per_token) {
  const ChooseCall call{geometry_of(logits), geometry_of(chosen), geometry_of(weights), per_token};
  LaunchOptions options = on_pes_of(logits);
  options.bound = stream_bound(context.map(), "top-k", {{logits}});
  return context.launch_async(name, options, choose_kernel, logits, chosen, weights, call);
}

std::vector<Handle> take_rows(Context& context, const std::string& name, const Tensor& from,
                              const std::vector<std::int32_t>& rows, const Tensor& to) {
  return move_rows(context, name, from, rows, to, false);
}

std::vector<Handle> put_rows(Context& context, const std::string& name, const Tensor& from,
                             const std::vector<std::int32_t>& rows, const Tensor& to) {
  return move_rows(context, name, from, rows, to, true);
}

std::vector<Handle> combine_rows(Context& context, const std::string& name, const Tensor& from, const Tensor& weights,
                                 const std::vector<std::int32_t>& slots, std::int64_t per_token, const Tensor& to) {
  std::vector<Handle> launches;
  const auto all = static_cast<std::int64_t>(slots.size()) / per_token, most = kMostMoeRows / per_token;
  for (std::int64_t at = 0; at < all; at += most) {
    const std::int64_t count = std::min(most, all - at);
    const auto submit = count * per_token <= 16    ? combine<16>
                        : count * per_token <= 128 ? combine<128>
                                                   : combine<kMostMoeRows>;
    launches.push_back(submit(context, name, from, weights, to, per_token, at, slots.data() + at * per_token, count));
  }
  return launches;
}

}  // namespace kernbench::tp
