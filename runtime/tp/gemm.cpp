#include "runtime/tp/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/tp/gemm_kernel.h"
#include "runtime/tp/gemm_planner.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
/// Largest tiles of copies and elementwise work, elements. assumed: 3 of them in f32 fit the smallest TCM share that a
/// kernel may have.
constexpr std::int64_t kRows = 64, kDepth = 256;

bool passes(const GemmPlan& plan) { return plan.best.mapping.kind == GemmMapping::Kind::passed; }

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
  for (const Piece& rows : pieces(part.row, part.row + part.rows, {}, kRows)) {
    for (const Piece& cols : pieces(part.col, part.col + part.cols, cuts, kDepth)) {
      const TensorView::Place at = y_view.at(rows.begin, cols.begin);
      const Tile in = tl.load(at.va, {rows.length, cols.length}, dtype, at.row_stride);
      const Tile sum = as_type(tl, in, compute_type(dtype));
      std::optional<TensorView::Place> bias_at;
      if (bias != 0) bias_at = bias_view.at(0, cols.begin);
      tl.store(at.va, finish(tl, sum, bias_at, cols.length, dtype, call.activation), at.row_stride);
    }
  }
}

/// What a copy's kernel gets beside the bases.
struct CopyCall {
  TensorGeometry from, to;
  std::int64_t from_col = 0;  ///< that becomes column 0
};

void copy_kernel(Va from, Va to, const CopyCall& call, Tl& tl) {
  const TensorView source(from, call.from), target(to, call.to);
  const Region part = own_shard(to, call.to, tl).region;
  const std::int64_t first = part.col + call.from_col, end = first + part.cols;
  std::vector<std::int64_t> row_cuts, col_cuts;
  source.row_cuts(part.row, part.row + part.rows, row_cuts);
  source.col_cuts(first, end, col_cuts);
  for (const Piece& r : pieces(part.row, part.row + part.rows, row_cuts, kRows)) {
    for (const Piece& c : pieces(first, end, col_cuts, kDepth)) {
      const TensorView::Place in = source.at(r.begin, c.begin), out = target.at(r.begin, c.begin - call.from_col);
      tl.store(out.va, tl.load(in.va, {r.length, c.length}, call.to.dtype, in.row_stride), out.row_stride);
    }
  }
}
}  // namespace

Handle gemm(Context& context, const std::string& name, const GemmOperands& operands) {
  return gemm(context, name, operands, plan_gemm(context.map(), name, operands));
}

void prepare_gemm(Context& context, const std::string& name, const GemmOperands& operands) {
  if (passes(plan_gemm(context.map(), name, operands))) context.prepare_cube_queues(operands.c.sip());
}

Handle gemm(Context& context, const std::string& name, const GemmOperands& operands, const GemmPlan& plan) {
  GemmCall call{geometry_of(operands.a), geometry_of(operands.b), geometry_of(operands.bias),
                geometry_of(operands.c), operands.activation,     plan.best.mapping,
                plan.kept_bytes,         plan.pes_of_cube};
  LaunchOptions options = on_pes_of(operands.c);
  options.cube_queues = passes(plan);
  if (!operands.bias) {
    return context.launch_async(name, options, gemm_kernel, operands.a, operands.b, Va{0}, operands.c, call);
  }
  return context.launch_async(name, options, gemm_kernel, operands.a, operands.b, operands.bias, operands.c, call);
}

Handle add_bias(Context& context, const std::string& name, const Tensor& y, const Tensor& bias, Activation activation) {
  if (bias && (bias.shape() != Shape{1, y.shape().cols} || bias.dtype() != y.dtype())) {
    throw std::invalid_argument(fmt::format("bias '{}' ({} {}) does not fit '{}' ({} {})", bias.name(),
                                            bias.shape().str(), to_string(bias.dtype()), y.name(), y.shape().str(),
                                            to_string(y.dtype())));
  }
  const BiasCall call{geometry_of(bias), geometry_of(y), activation};
  if (!bias) return context.launch_async(name, on_pes_of(y), bias_kernel, y, Va{0}, call);
  return context.launch_async(name, on_pes_of(y), bias_kernel, y, bias, call);
}

Handle copy_columns(Context& context, const std::string& name, const Tensor& from, std::int64_t from_col,
                    const Tensor& to) {
  if (from.dtype() != to.dtype() || from.shape().rows != to.shape().rows || from_col < 0 ||
      from_col + to.shape().cols > from.shape().cols) {
    throw std::invalid_argument(fmt::format("copy from column {} of '{}' ({} {}) to '{}' ({} {}): does not fit",
                                            from_col, from.name(), from.shape().str(), to_string(from.dtype()),
                                            to.name(), to.shape().str(), to_string(to.dtype())));
  }
  const CopyCall call{geometry_of(from), geometry_of(to), from_col};
  return context.launch_async(name, on_pes_of(to), copy_kernel, from, to, call);
}

}  // namespace kernbench::tp
