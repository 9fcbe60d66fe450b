#include "runtime/tp/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/tp/tensor_view.h"
#include "tlm/kernel/activation.h"

namespace kernbench::tp {

namespace {
/// Largest tiles that are held in TCM at once, elements. assumed: they keep the GEMM array busy, and 3 of them in f32
/// fit the smallest TCM share that a kernel may have.
constexpr std::int64_t kRows = 64, kCols = 64, kDepth = 256;

/// The region of a tensor that this PE holds a non-empty shard of.
Region own_part(Va base, const TensorGeometry& geometry, const Tl& tl) {
  const std::uint64_t offset = tl.shard(base).va - base;
  for (const ShardSpec& shard : geometry.shards()) {
    if (shard.nbytes > 0 && shard.offset_bytes == offset) return shard.region;
  }
  throw KernelError("the PE holds no part of the tensor that it is to write");
}

/// The PEs that hold a non-empty shard.
LaunchOptions on_holders(const Tensor& tensor) {
  LaunchOptions options;
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.region.empty()) continue;
    options.targets.push_back({static_cast<std::uint16_t>(shard.sip), static_cast<std::uint16_t>(shard.cube),
                               static_cast<std::uint16_t>(shard.pe)});
  }
  return options;
}

/// Type that sums and the epilogue are computed in.
DType sum_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

Tile finish(Tl& tl, Tile sum, const std::optional<TensorView::Place>& bias, std::int64_t cols, DType dtype,
            Activation activation) {
  if (bias) sum = sum + tl.cast(tl.load(bias->va, {1, cols}, dtype), sum.dtype());
  if (const auto op = to_math(activation)) sum = tl.math(*op, {sum});
  return sum.dtype() == dtype ? sum : tl.cast(sum, dtype);
}

/// What a GEMM's kernel gets beside the bases of its operands.
struct GemmCall {
  TensorGeometry a, b, bias, c;
  Activation activation = Activation::none;
};

/// A GEMM as one PE works on it: where its operands lie. Without a or b, c is also the operand.
struct GemmPlan {
  GemmPlan(Va a_base, Va b_base, Va bias_base, Va c_base, const GemmCall& call)
      : a(a_base, call.a),
        b(b_base, call.b),
        bias(bias_base, call.bias),
        c(c_base, call.c),
        has_bias(bias_base != 0),
        activation(call.activation),
        k(call.a.shape.cols),
        dtype(call.c.dtype) {}
  TensorView a, b, bias, c;
  bool has_bias;
  Activation activation;
  std::int64_t k;
  DType dtype;
};

std::optional<TensorView::Place> bias_at(const GemmPlan& plan, std::int64_t col) {
  if (!plan.has_bias) return std::nullopt;
  return plan.bias.at(0, col);
}

/// One block of c whose rows of a and columns of b lie in one piece each.
void composite_block(const GemmPlan& plan, const Piece& rows, const Piece& cols, Tl& tl) {
  const TensorView::Place a = plan.a.at(rows.begin, 0), b = plan.b.at(0, cols.begin),
                          c = plan.c.at(rows.begin, cols.begin);
  CompositeGemm gemm;
  gemm.a = a.va;
  gemm.b = b.va;
  gemm.c = c.va;
  gemm.m = rows.length;
  gemm.n = cols.length;
  gemm.k = plan.k;
  gemm.dtype = plan.dtype;
  gemm.lda = a.row_stride;
  gemm.ldb = b.row_stride;
  gemm.ldc = c.row_stride;
  if (const auto bias = bias_at(plan, cols.begin)) gemm.epilogue.bias = bias->va;
  gemm.epilogue.activation = plan.activation;
  tl.composite_gemm(gemm);
}

/// One tile of c, summed over pieces of k. `depth`: those of b; each is loaded once and cut further where a is.
void summed_tile(const GemmPlan& plan, const Piece& rows, const Piece& cols, const std::vector<Piece>& depth, Tl& tl) {
  Tile sum = tl.fill({rows.length, cols.length}, sum_type(plan.dtype), 0);
  for (const Piece& step : depth) {
    const TensorView::Place b = plan.b.at(step.begin, cols.begin);
    const Tile b_tile = tl.load(b.va, {step.length, cols.length}, plan.dtype, b.row_stride);
    std::vector<std::int64_t> cuts;
    plan.a.col_cuts(step.begin, step.begin + step.length, cuts);
    for (const Piece& part : pieces(step.begin, step.begin + step.length, std::move(cuts), kDepth)) {
      const TensorView::Place a = plan.a.at(rows.begin, part.begin);
      const Tile a_tile = tl.load(a.va, {rows.length, part.length}, plan.dtype, a.row_stride);
      const bool whole = part.length == step.length;
      const Tile b_part = whole ? b_tile : tl.slice(b_tile, part.begin - step.begin, part.length);
      sum = tl.dot(a_tile, b_part, sum);
    }
  }
  const TensorView::Place c = plan.c.at(rows.begin, cols.begin);
  tl.store(c.va, finish(tl, sum, bias_at(plan, cols.begin), cols.length, plan.dtype, plan.activation), c.row_stride);
}

void gemm_kernel(Va a, Va b, Va bias, Va c, const GemmCall& call, Tl& tl) {
  const GemmPlan plan(a, b, bias, c, call);
  const Region part = own_part(c, call.c, tl);
  std::vector<std::int64_t> row_cuts, col_cuts, a_depth, b_depth;
  plan.a.row_cuts(part.row, part.row + part.rows, row_cuts);
  plan.b.col_cuts(part.col, part.col + part.cols, col_cuts);
  if (plan.has_bias) plan.bias.col_cuts(part.col, part.col + part.cols, col_cuts);
  plan.a.col_cuts(0, plan.k, a_depth);
  plan.b.row_cuts(0, plan.k, b_depth);
  const bool whole = a_depth.empty() && b_depth.empty();
  const std::vector<Piece> depth = pieces(0, plan.k, b_depth, kDepth);
  const std::int64_t end_row = part.row + part.rows, end_col = part.col + part.cols;
  for (const Piece& rows : pieces(part.row, end_row, row_cuts, whole ? part.rows : kRows)) {
    for (const Piece& cols : pieces(part.col, end_col, col_cuts, whole ? part.cols : kCols)) {
      if (whole) {
        composite_block(plan, rows, cols, tl);
      } else {
        summed_tile(plan, rows, cols, depth, tl);
      }
    }
  }
}

void check_operands(const std::string& name, const GemmOperands& operands) {
  const auto shape = [](const Tensor& tensor) { return tensor.shape(); };
  if (!operands.a || !operands.b || !operands.c) {
    throw std::invalid_argument(fmt::format("gemm '{}': an operand is an empty handle", name));
  }
  const Shape a = shape(operands.a), b = shape(operands.b), c = shape(operands.c);
  if (a.cols != b.rows || c.rows != a.rows || c.cols != b.cols) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': {} times {} does not give {}", name, a.str(), b.str(), c.str()));
  }
  if (operands.bias && operands.bias.shape() != Shape{1, c.cols}) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': the bias is {}, not {}", name, operands.bias.shape().str(), Shape{1, c.cols}.str()));
  }
  const DType dtype = operands.c.dtype();
  if (!is_float(dtype)) {
    throw std::invalid_argument(fmt::format("gemm '{}': {} is no floating-point type", name, to_string(dtype)));
  }
  for (const Tensor& tensor : {operands.a, operands.b, operands.bias}) {
    if (tensor && tensor.dtype() != dtype) {
      throw std::invalid_argument(fmt::format("gemm '{}': tensor '{}' is {}, the result is {}", name, tensor.name(),
                                              to_string(tensor.dtype()), to_string(dtype)));
    }
  }
}

void bias_kernel(Va y, Va bias, const GemmCall& call, Tl& tl) {
  const GemmPlan plan(0, 0, bias, y, call);
  const Region part = own_part(y, call.c, tl);
  std::vector<std::int64_t> cuts;
  if (plan.has_bias) plan.bias.col_cuts(part.col, part.col + part.cols, cuts);
  for (const Piece& rows : pieces(part.row, part.row + part.rows, {}, kRows)) {
    for (const Piece& cols : pieces(part.col, part.col + part.cols, cuts, kDepth)) {
      const TensorView::Place at = plan.c.at(rows.begin, cols.begin);
      const Tile in = tl.load(at.va, {rows.length, cols.length}, plan.dtype, at.row_stride);
      const Tile sum = in.dtype() == sum_type(plan.dtype) ? in : tl.cast(in, sum_type(plan.dtype));
      tl.store(at.va, finish(tl, sum, bias_at(plan, cols.begin), cols.length, plan.dtype, plan.activation),
               at.row_stride);
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
  const Region part = own_part(to, call.to, tl);
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
  check_operands(name, operands);
  const GemmCall call{geometry_of(operands.a), geometry_of(operands.b), geometry_of(operands.bias),
                      geometry_of(operands.c), operands.activation};
  const LaunchOptions options = on_holders(operands.c);
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
  const GemmCall call{{}, {}, geometry_of(bias), geometry_of(y), activation};
  if (!bias) return context.launch_async(name, on_holders(y), bias_kernel, y, Va{0}, call);
  return context.launch_async(name, on_holders(y), bias_kernel, y, bias, call);
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
  return context.launch_async(name, on_holders(to), copy_kernel, from, to, call);
}

}  // namespace kernbench::tp
