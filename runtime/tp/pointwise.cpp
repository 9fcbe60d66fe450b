#include "runtime/tp/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "runtime/tp/gemm_kernel.h"
#include "runtime/tp/launch_bound.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tcm_room.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
/// Largest tile, and the bytes of TCM that an element of one takes at most: two operands as they are and in f32 (f64),
/// result and its rounded copy.   assumed: four tiles in f32 are 512 KiB
constexpr Shape kPointTile{64, 512};
Shape point_tile(const Tl& tl, DType dtype) {
  const std::int64_t elements = fitting_elements(tl, kPointTile.count(), 6 * size_of(compute_type(dtype)));
  const std::int64_t cols = std::min(elements, kPointTile.cols);
  return {elements / cols, cols};
}

/// What the kernel gets beside the bases of y and x.
struct PointCall {
  TensorGeometry y, x;
  bool copies = false;       ///< y = x; otherwise y = y op x
  MathOp op = MathOp::copy;  ///< of y and x
  std::int64_t length = 0;   ///< rows of y after which those of x begin again; 0: never
  std::int64_t first = 0;    ///< row of x that belongs to row 0 of y
  std::int64_t left = 0;     ///< column of x that belongs to column 0 of y
  std::int64_t stride = 1;   ///< rows of x from one row of y to the next; above 1 only where x does not begin again
  std::int64_t begun = 0;    ///< rows of the first `length` of them that y lacks
};

void point_kernel(Va y, Va x, const PointCall& call, Tl& tl) {
  const TensorView into(y, call.y), from(x, call.x);
  const Region part = own_shard(y, call.y, tl).region;
  const DType dtype = call.y.dtype, wide = compute_type(dtype);
  const std::int64_t length = call.length == 0 ? call.y.shape.rows : call.length, end = part.row + part.rows;
  std::vector<std::int64_t> col_cuts;
  const std::int64_t left = part.col + call.left;
  from.col_cuts(left, left + part.cols, col_cuts);
  const Shape tile = point_tile(tl, dtype);
  std::vector<Piece> columns = pieces(left, left + part.cols, std::move(col_cuts), tile.cols);
  // PEs of a cube begin with different columns: all would read from one memory at a time.
  const std::size_t first = static_cast<std::size_t>(tl.program_id(0)) * columns.size() / tl.num_programs(0);
  std::rotate(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(first), columns.end());
  for (std::int64_t row = part.row; row < end;) {
    const std::int64_t within = (row + call.begun) % length, source = call.first + within * call.stride;
    const std::int64_t stop =
        source + (call.stride > 1 ? 1 : std::min(end - row, length - within));  // of this sequence
    std::vector<std::int64_t> row_cuts;
    from.row_cuts(source, stop, row_cuts);
    for (const Piece& rows : pieces(source, stop, std::move(row_cuts), tile.rows)) {
      for (const Piece& cols : columns) {
        const TensorView::Place in = from.at(rows.begin, cols.begin), out = into.at(row, cols.begin - call.left);
        const Shape shape{rows.length, cols.length};
        Tile value = tl.load(in.va, shape, dtype, in.row_stride);
        if (!call.copies) {
          const Tile old = tl.load(out.va, shape, dtype, out.row_stride);
          value = as_type(tl, tl.math(call.op, {as_type(tl, old, wide), as_type(tl, value, wide)}), dtype);
        }
        tl.store(out.va, value, out.row_stride);
      }
      row += rows.length;
    }
  }
}

/// What an elementwise kernel gets beside the bases.
struct BiasCall {
  TensorGeometry bias, y;
  Activation activation = Activation::none;
};

void bias_kernel(Va y, Va bias, const BiasCall& call, Tl& tl) {
  const TensorView y_view(y, call.y), bias_view(bias, call.bias);
  const DType dtype = call.y.dtype;
  const Region part = own_shard(y, call.y, tl).region;
  std::vector<std::int64_t> cuts;
  if (bias != 0) bias_view.col_cuts(part.col, part.col + part.cols, cuts);
  const Shape tile = point_tile(tl, dtype);
  for (const Piece& rows : pieces(part.row, part.row + part.rows, {}, tile.rows)) {
    for (const Piece& cols : pieces(part.col, part.col + part.cols, cuts, tile.cols)) {
      const TensorView::Place at = y_view.at(rows.begin, cols.begin);
      const Tile in = tl.load(at.va, {rows.length, cols.length}, dtype, at.row_stride);
      const Tile sum = as_type(tl, in, compute_type(dtype));
      std::optional<TensorView::Place> bias_at;
      if (bias != 0) bias_at = bias_view.at(0, cols.begin);
      tl.store(at.va, finish(tl, sum, bias_at, cols.length, dtype, call.activation), at.row_stride);
    }
  }
}

/// What puts rows together gets beside the bases of y and bias.
struct JoinCall {
  TensorGeometry bias, y, part, last;  ///< part: of each source but the last
  Activation activation = Activation::none;
  std::int64_t count = 0;  ///< of sources
  Va parts[16] = {};
};

void join_kernel(Va y, Va bias, const JoinCall& call, Tl& tl) {
  const TensorView y_view(y, call.y), bias_view(bias, call.bias);
  const DType dtype = call.y.dtype;
  const Region own = own_shard(y, call.y, tl).region;
  const std::int64_t end_col = own.col + own.cols;
  const Shape tile = point_tile(tl, dtype);
  for (std::int64_t number = 0; number < call.count; ++number) {
    const bool last = number == call.count - 1;
    const TensorView part(call.parts[number], last ? call.last : call.part);
    const std::int64_t first = number * call.part.shape.rows;
    const std::int64_t begin = std::max(own.row, first);
    const std::int64_t end = std::min(own.row + own.rows, first + (last ? call.last : call.part).shape.rows);
    if (begin >= end) continue;
    std::vector<std::int64_t> row_cuts, col_cuts;
    part.row_cuts(begin - first, end - first, row_cuts);
    part.col_cuts(own.col, end_col, col_cuts);
    if (bias != 0) bias_view.col_cuts(own.col, end_col, col_cuts);
    const std::vector<Piece> columns = pieces(own.col, end_col, std::move(col_cuts), tile.cols);
    for (const Piece& rows : pieces(begin - first, end - first, std::move(row_cuts), tile.rows)) {
      for (const Piece& cols : columns) {
        const TensorView::Place in = part.at(rows.begin, cols.begin), out = y_view.at(first + rows.begin, cols.begin);
        const Tile value = tl.load(in.va, {rows.length, cols.length}, dtype, in.row_stride);
        if (bias == 0 && call.activation == Activation::none) {
          tl.store(out.va, value, out.row_stride);
          continue;
        }
        std::optional<TensorView::Place> bias_at;
        if (bias != 0) bias_at = bias_view.at(0, cols.begin);
        const Tile sum = as_type(tl, value, compute_type(dtype));
        tl.store(out.va, finish(tl, sum, bias_at, cols.length, dtype, call.activation), out.row_stride);
      }
    }
  }
}

void check_points(const std::string& name, const Tensor& y, const Tensor& x, bool fits) {
  if (y && x && fits && y.dtype() == x.dtype() && y.sip() == x.sip()) return;
  const auto text = [](const Tensor& tensor) {
    if (!tensor) return std::string("an empty handle");
    return fmt::format("'{}' ({} {}, SIP {})", tensor.name(), tensor.shape().str(), to_string(tensor.dtype()),
                       tensor.sip());
  };
  throw std::invalid_argument(fmt::format("'{}': {} does not fit {}", name, text(x), text(y)));
}

void check_bias_fits(const Tensor& y, const Tensor& bias) {
  if (!bias || (bias.shape() == Shape{1, y.shape().cols} && bias.dtype() == y.dtype())) return;
  throw std::invalid_argument(fmt::format("bias '{}' ({} {}) does not fit '{}' ({} {})", bias.name(),
                                          bias.shape().str(), to_string(bias.dtype()), y.name(), y.shape().str(),
                                          to_string(y.dtype())));
}

Handle in_place(Context& context, const std::string& name, const Tensor& y, const Tensor& x, MathOp op) {
  check_points(name, y, x, y && x && y.shape() == x.shape());
  const PointCall call{geometry_of(y), geometry_of(x), false, op};
  LaunchOptions options = on_pes_of(y);
  options.bound = stream_bound(context.map(), "pointwise", {{y, 2, 1}, {x}});
  return context.launch_async(name, options, point_kernel, y, x, call);
}

Handle launch_copy(Context& context, const std::string& name, const Tensor& from, const Tensor& to,
                   const PointCall& call) {
  LaunchOptions options = on_pes_of(to);
  const double share = static_cast<double>(to.shape().count()) / static_cast<double>(from.shape().count());
  options.bound = stream_bound(context.map(), "copy", {{to, 1, 1}, {from, share}});
  return context.launch_async(name, options, point_kernel, to, from, call);
}
}  // namespace

Handle copy_rows(Context& context, const std::string& name, const Tensor& from, std::int64_t from_row,
                 const Tensor& to) {
  check_points(name, to, from,
               from && to && from.shape().cols == to.shape().cols && from_row >= 0 &&
                   from_row + to.shape().rows <= from.shape().rows);
  const PointCall call{geometry_of(to), geometry_of(from), true, MathOp::copy, 0, from_row};
  return launch_copy(context, name, from, to, call);
}

Handle copy_last_rows(Context& context, const std::string& name, const Tensor& from, std::int64_t length,
                      const Tensor& to) {
  check_points(name, to, from,
               from && to && from.shape().cols == to.shape().cols && length > 0 &&
                   from.shape().rows == to.shape().rows * length);
  const PointCall call{geometry_of(to), geometry_of(from), true, MathOp::copy, 0, length - 1, 0, length};
  return launch_copy(context, name, from, to, call);
}

Handle copy_columns(Context& context, const std::string& name, const Tensor& from, std::int64_t from_col,
                    const Tensor& to) {
  check_points(name, to, from,
               from && to && from.shape().rows == to.shape().rows && from_col >= 0 &&
                   from_col + to.shape().cols <= from.shape().cols);
  const PointCall call{geometry_of(to), geometry_of(from), true, MathOp::copy, 0, 0, from_col};
  return launch_copy(context, name, from, to, call);
}

Handle add_bias(Context& context, const std::string& name, const Tensor& y, const Tensor& bias, Activation activation) {
  check_bias_fits(y, bias);
  const BiasCall call{geometry_of(bias), geometry_of(y), activation};
  LaunchOptions options = on_pes_of(y);
  options.bound = stream_bound(context.map(), "pointwise", {{y, 2, 1}});
  if (!bias) return context.launch_async(name, options, bias_kernel, y, Va{0}, call);
  return context.launch_async(name, options, bias_kernel, y, bias, call);
}

Handle join_rows(Context& context, const std::string& name, const std::vector<Tensor>& parts, const Tensor& y,
                 const Tensor& bias, Activation activation) {
  JoinCall call{geometry_of(bias), geometry_of(y), {}, {}, activation};
  std::int64_t rows = 0;
  bool alike = !parts.empty() && parts.size() <= std::size(call.parts);
  for (std::size_t i = 0; alike && i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    alike = part && part.shape().cols == y.shape().cols && part.dtype() == y.dtype() && part.sip() == y.sip() &&
            (i + 1 == parts.size() || part.shape().rows == parts.front().shape().rows);
    if (!alike) break;
    call.parts[i] = part.va();
    rows += part.shape().rows;
  }
  check_points(name, y, parts.empty() ? Tensor() : parts.front(), alike && rows == y.shape().rows);
  check_bias_fits(y, bias);
  call.part = geometry_of(parts.front());
  call.last = geometry_of(parts.back());
  call.count = static_cast<std::int64_t>(parts.size());
  LaunchOptions options = on_pes_of(y);
  options.bound = stream_bound(context.map(), "pointwise", {{y, 2, 1}});
  if (!bias) return context.launch_async(name, options, join_kernel, y, Va{0}, call);
  return context.launch_async(name, options, join_kernel, y, bias, call);
}

Handle multiply(Context& context, const std::string& name, const Tensor& y, const Tensor& x) {
  return in_place(context, name, y, x, MathOp::mul);
}

Handle add(Context& context, const std::string& name, const Tensor& y, const Tensor& x) {
  return in_place(context, name, y, x, MathOp::add);
}

Handle add_positions(Context& context, const std::string& name, const Tensor& y, const Tensor& table,
                     std::int64_t length, std::int64_t start, std::int64_t from) {
  check_points(name, y, table,
               y && table && y.shape().cols == table.shape().cols && length > 0 && from >= 0 && start >= 0 &&
                   start + length <= table.shape().rows);
  PointCall call{geometry_of(y), geometry_of(table), false, MathOp::add, length, start};
  call.begun = from % length;
  LaunchOptions options = on_pes_of(y);
  options.bound = stream_bound(context.map(), "pointwise", {{y, 2, 1}});
  return context.launch_async(name, options, point_kernel, y, table, call);
}

}  // namespace kernbench::tp
