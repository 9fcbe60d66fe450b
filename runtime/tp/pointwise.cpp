#include "runtime/tp/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/tp/own_shard.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
/// Largest tile, elements. assumed: four of them in f32 are 512 KiB, which fits the smallest share of TCM.
constexpr std::int64_t kPointRows = 64, kPointCols = 512;

/// What the kernel gets beside the bases of y and x.
struct PointCall {
  TensorGeometry y, x;
  bool copies = false;       ///< y = x; otherwise y = y op x
  MathOp op = MathOp::copy;  ///< of y and x
  std::int64_t length = 0;   ///< rows of y after which those of x begin again; 0: never
  std::int64_t first = 0;    ///< row of x that belongs to row 0 of y
};

void point_kernel(Va y, Va x, const PointCall& call, Tl& tl) {
  const TensorView into(y, call.y), from(x, call.x);
  const Region part = own_shard(y, call.y, tl).region;
  const DType dtype = call.y.dtype, wide = compute_type(dtype);
  const std::int64_t length = call.length == 0 ? call.y.shape.rows : call.length, end = part.row + part.rows;
  std::vector<std::int64_t> col_cuts;
  from.col_cuts(part.col, part.col + part.cols, col_cuts);
  const std::vector<Piece> columns = pieces(part.col, part.col + part.cols, std::move(col_cuts), kPointCols);
  for (std::int64_t row = part.row; row < end;) {
    const std::int64_t source = call.first + row % length;
    const std::int64_t stop = source + std::min(end - row, length - row % length);  // of this sequence
    std::vector<std::int64_t> row_cuts;
    from.row_cuts(source, stop, row_cuts);
    for (const Piece& rows : pieces(source, stop, std::move(row_cuts), kPointRows)) {
      for (const Piece& cols : columns) {
        const TensorView::Place in = from.at(rows.begin, cols.begin), out = into.at(row, cols.begin);
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

void check_points(const std::string& name, const Tensor& y, const Tensor& x, bool fits) {
  if (y && x && fits && y.dtype() == x.dtype() && y.sip() == x.sip()) return;
  const auto text = [](const Tensor& tensor) {
    if (!tensor) return std::string("an empty handle");
    return fmt::format("'{}' ({} {}, SIP {})", tensor.name(), tensor.shape().str(), to_string(tensor.dtype()),
                       tensor.sip());
  };
  throw std::invalid_argument(fmt::format("'{}': {} does not fit {}", name, text(x), text(y)));
}

Handle in_place(Context& context, const std::string& name, const Tensor& y, const Tensor& x, MathOp op) {
  check_points(name, y, x, y && x && y.shape() == x.shape());
  const PointCall call{geometry_of(y), geometry_of(x), false, op, 0, 0};
  return context.launch_async(name, on_pes_of(y), point_kernel, y, x, call);
}
}  // namespace

Handle copy_rows(Context& context, const std::string& name, const Tensor& from, std::int64_t from_row,
                 const Tensor& to) {
  check_points(name, to, from,
               from && to && from.shape().cols == to.shape().cols && from_row >= 0 &&
                   from_row + to.shape().rows <= from.shape().rows);
  const PointCall call{geometry_of(to), geometry_of(from), true, MathOp::copy, 0, from_row};
  return context.launch_async(name, on_pes_of(to), point_kernel, to, from, call);
}

Handle multiply(Context& context, const std::string& name, const Tensor& y, const Tensor& x) {
  return in_place(context, name, y, x, MathOp::mul);
}

Handle add(Context& context, const std::string& name, const Tensor& y, const Tensor& x) {
  return in_place(context, name, y, x, MathOp::add);
}

Handle add_positions(Context& context, const std::string& name, const Tensor& y, const Tensor& table,
                     std::int64_t length, std::int64_t start) {
  check_points(name, y, table,
               y && table && y.shape().cols == table.shape().cols && length > 0 && y.shape().rows % length == 0 &&
                   start >= 0 && start + length <= table.shape().rows);
  const PointCall call{geometry_of(y), geometry_of(table), false, MathOp::add, length, start};
  return context.launch_async(name, on_pes_of(y), point_kernel, y, table, call);
}

}  // namespace kernbench::tp
