#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/pipeline/run/kernels.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::pipeline {

namespace {

/// Largest tile, elements. assumed: six of them in f32 are 384 KiB, which fits the smallest share of TCM.
constexpr std::int64_t kTileRows = 32, kTileCols = 512;

/// x^y for a y that is known: products where it is a small integer.
Tile power(Tl& tl, const Tile& x, double y) {
  constexpr double kMostProducts = 8;
  const auto number = [&](double value) { return tl.fill({1, 1}, x.dtype(), value); };
  if (y == 0.5) return tl.math(MathOp::sqrt, {x});
  if (y == -0.5) return tl.math(MathOp::rsqrt, {x});
  if (y == std::floor(y) && std::abs(y) <= kMostProducts) {
    if (y == 0) return tl.broadcast(number(1), x.shape());
    Tile result = x;
    for (int i = 1; i < static_cast<int>(std::abs(y)); ++i) result = result * x;
    return y > 0 ? result : number(1) / result;
  }
  return tl.exp(tl.math(MathOp::log, {x}) * number(y));
}

Tile gelu_by_tanh(Tl& tl, const Tile& x) {
  const auto number = [&](double value) { return tl.fill({1, 1}, x.dtype(), value); };
  const Tile inner = (x + x * x * x * number(0.044715)) * number(std::sqrt(2 / M_PI));
  return x * (tl.math(MathOp::tanh, {inner}) + number(1)) * number(0.5);
}

/// A cast rounds to nearest even; a graph's drops the fraction: where rounding went away from 0, one step back.
Tile without_fraction(Tl& tl, const Tile& x, DType integer) {
  const auto number = [&](DType dtype, double value) { return tl.fill({1, 1}, dtype, value); };
  const auto size = [&](const Tile& of) { return tl.math(MathOp::abs, {of}); };
  const Tile exact = tp::as_type(tl, x, tp::compute_type(x.dtype()));
  const Tile nearest = tl.cast(exact, integer);
  const Tile beyond = tl.math(MathOp::less, {size(exact), size(tl.cast(nearest, exact.dtype()))});
  const Tile below_zero = tl.math(MathOp::less, {exact, number(exact.dtype(), 0)});
  const Tile step = tl.select(below_zero, number(integer, -1), number(integer, 1));
  return nearest - tl.select(beyond, step, number(integer, 0));
}

Tile apply(Tl& tl, const PointCall& call, const std::vector<Tile>& in) {
  const auto second = [&] { return call.with_number ? tl.fill({1, 1}, in[0].dtype(), call.number) : in[1]; };
  switch (call.op) {
    case PointOp::copy:
      return in[0];
    case PointOp::cast: {
      const DType to = call.tensors[0].dtype;
      const bool drops = is_float(in[0].dtype()) && !is_float(to) && to != DType::boolean;
      return drops ? without_fraction(tl, in[0], to) : in[0];
    }
    case PointOp::add:
      return in[0] + second();
    case PointOp::sub:
      return in[0] - second();
    case PointOp::mul:
      return in[0] * second();
    case PointOp::div:
      return in[0] / second();
    case PointOp::pow:
      if (call.with_number) return power(tl, in[0], call.number);
      return tl.exp(tl.math(MathOp::log, {in[0]}) * in[1]);
    case PointOp::maximum:
      return tl.maximum(in[0], second());
    case PointOp::minimum:
      return tl.minimum(in[0], second());
    case PointOp::where:
      return tl.select(in[0], in[1], in[2]);
    case PointOp::relu:
      return tl.math(MathOp::relu, {in[0]});
    case PointOp::gelu:
      return tl.math(MathOp::gelu, {in[0]});
    case PointOp::gelu_tanh:
      return gelu_by_tanh(tl, in[0]);
    case PointOp::silu:
      return tl.math(MathOp::silu, {in[0]});
    case PointOp::sigmoid:
      return tl.math(MathOp::sigmoid, {in[0]});
    case PointOp::tanh:
      return tl.math(MathOp::tanh, {in[0]});
    case PointOp::rsqrt:
      return tl.math(MathOp::rsqrt, {in[0]});
    case PointOp::sqrt:
      return tl.math(MathOp::sqrt, {in[0]});
    case PointOp::neg:
      return tl.math(MathOp::neg, {in[0]});
    case PointOp::exp:
      return tl.math(MathOp::exp, {in[0]});
  }
  return in[0];
}

/// The result of loaded operands, in the type of the output.
Tile compute(Tl& tl, const PointCall& call, std::vector<Tile> in, Shape shape) {
  const DType dtype = call.tensors[0].dtype;
  const bool moves = call.op == PointOp::copy || call.op == PointOp::cast || call.op == PointOp::where;
  if (!moves) {
    for (Tile& tile : in) {
      if (is_float(tile.dtype())) tile = tp::as_type(tl, tile, tp::compute_type(tile.dtype()));
    }
  }
  Tile result = apply(tl, call, in);
  if (result.shape() != shape) result = tl.broadcast(result, shape);
  return tp::as_type(tl, result, dtype);
}

std::size_t operands_of(const PointCall& call) {
  std::size_t count = 0;
  while (count < call.bases.size() && call.bases[count] != 0) ++count;
  return count;
}

void linear_points(Va out, const PointCall& call, Tl& tl) {
  const bool tall = call.height >= tp::distinct_shards(call.tensors[0]) || call.height >= call.width;
  const Share share = share_of(tall ? call.height : call.width, out, call.tensors[0], tl);
  const std::int64_t top = tall ? share.begin : 0, bottom = tall ? share.end : call.height;
  const std::int64_t left = tall ? 0 : share.begin, right = tall ? call.width : share.end;
  const auto item = [&](std::size_t i) { return static_cast<Va>(size_of(call.tensors[i].dtype)); };
  for (std::int64_t row = top; row < bottom; row += kTileRows) {
    for (std::int64_t col = left; col < right; col += kTileCols) {
      const Shape shape{std::min(kTileRows, bottom - row), std::min(kTileCols, right - col)};
      std::vector<Tile> in;
      for (std::size_t i = 0; i < operands_of(call); ++i) {
        const Va at = call.bases[i] + static_cast<Va>(row * call.rows[i] + col * call.cols[i]) * item(i + 1);
        const Shape held{call.rows[i] == 0 ? 1 : shape.rows, call.cols[i] == 0 ? 1 : shape.cols};
        in.push_back(tl.load(at, held, call.tensors[i + 1].dtype, held.rows == 1 ? 0 : call.rows[i]));
      }
      const Va to = out + static_cast<Va>(row * call.width + col) * item(0);
      tl.store(to, compute(tl, call, std::move(in), shape), shape.rows == 1 ? 0 : call.width);
    }
  }
}

void placed_points(Va out, const PointCall& call, Tl& tl) {
  const tp::TensorView into(out, call.tensors[0]);
  const Region part = tp::own_shard(out, call.tensors[0], tl).region;
  std::vector<tp::TensorView> views;
  std::vector<std::int64_t> row_cuts, col_cuts;
  for (std::size_t i = 0; i < operands_of(call); ++i) {
    const Shape shape = call.tensors[i + 1].shape;
    views.emplace_back(call.bases[i], call.tensors[i + 1]);
    if (shape.rows > 1) views.back().row_cuts(part.row, part.row + part.rows, row_cuts);
    if (shape.cols > 1) views.back().col_cuts(part.col, part.col + part.cols, col_cuts);
  }
  const std::vector<tp::Piece> columns = tp::pieces(part.col, part.col + part.cols, std::move(col_cuts), kTileCols);
  for (const tp::Piece& rows : tp::pieces(part.row, part.row + part.rows, std::move(row_cuts), kTileRows)) {
    for (const tp::Piece& cols : columns) {
      std::vector<Tile> in;
      for (std::size_t i = 0; i < views.size(); ++i) {
        const Shape whole = call.tensors[i + 1].shape;
        const Shape held{whole.rows == 1 ? 1 : rows.length, whole.cols == 1 ? 1 : cols.length};
        const auto at = views[i].at(whole.rows == 1 ? 0 : rows.begin, whole.cols == 1 ? 0 : cols.begin);
        in.push_back(tl.load(at.va, held, call.tensors[i + 1].dtype, held.rows == 1 ? 0 : at.row_stride));
      }
      const auto to = into.at(rows.begin, cols.begin);
      tl.store(to.va, compute(tl, call, std::move(in), {rows.length, cols.length}),
               rows.length == 1 ? 0 : to.row_stride);
    }
  }
}

/// What travels with a launch: no more than its operands need, for every byte takes time on its way to every PE.
template <std::size_t N>
struct PlacedPoints {
  double number = 0;
  PointOp op = PointOp::copy;
  bool with_number = false;
  std::array<TensorGeometry, N + 1> tensors{};

  void run(Va out, const std::array<Va, N>& in, Tl& tl) const {
    PointCall call;
    call.number = number;
    call.op = op;
    call.with_number = with_number;
    std::copy(tensors.begin(), tensors.end(), call.tensors.begin());
    std::copy(in.begin(), in.end(), call.bases.begin());
    placed_points(out, call, tl);
  }
};

template <std::size_t N>
PlacedPoints<N> placed_of(const PointCall& call) {
  PlacedPoints<N> compact;
  compact.number = call.number;
  compact.op = call.op;
  compact.with_number = call.with_number;
  std::copy_n(call.tensors.begin(), N + 1, compact.tensors.begin());
  return compact;
}

void linear_kernel(Va out, const PointCall& call, Tl& tl) { linear_points(out, call, tl); }

}  // namespace

Handle point(Context& context, const std::string& name, const Tensor& out, const std::vector<Tensor>& operands,
             PointCall call) {
  call.tensors[0] = geometry_of(out);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    call.tensors[i + 1] = geometry_of(operands[i]);
    call.bases[i] += operands[i].va();
  }
  const LaunchOptions options = tp::on_pes_of(out);
  if (call.linear) return context.launch_async(name, options, linear_kernel, out, call);
  switch (operands.size()) {
    case 1:
      return context.launch_async(
          name, options, [](Va o, Va a, const PlacedPoints<1>& c, Tl& tl) { c.run(o, {a}, tl); }, out, operands[0],
          placed_of<1>(call));
    case 2:
      return context.launch_async(
          name, options,
          [](Va o, Va a, Va b, const PlacedPoints<2>& c, Tl& tl) {
            c.run(o, {a, b}, tl);
          },
          out, operands[0], operands[1], placed_of<2>(call));
    default:
      return context.launch_async(
          name, options,
          [](Va o, Va a, Va b, Va d, const PlacedPoints<3>& c, Tl& tl) {
            c.run(o, {a, b, d}, tl);
          },
          out, operands[0], operands[1], operands[2], placed_of<3>(call));
  }
}

}  // namespace kernbench::pipeline
