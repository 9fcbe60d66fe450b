#include <algorithm>
#include <array>

#include "runtime/pipeline/run/kernels.h"
#include "runtime/tp/own_shard.h"

namespace kernbench::pipeline {

namespace {

/// Most elements of a tile, unless a single row is longer. assumed: eight of them in f32 are 512 KiB, which fits the
/// smallest share of TCM.
constexpr std::int64_t kRowElements = 16384;

Tile normalise(Tl& tl, const RowCall& call, const Tile& x, const Tile& weight, const Tile& bias) {
  const auto mean = [&](const Tile& of) {
    return tl.reduce(ReduceKind::sum, of, 1) * tl.fill({1, 1}, of.dtype(), 1.0 / static_cast<double>(call.width));
  };
  const Tile value = call.op == RowOp::layer_norm ? x - mean(x) : x;
  Tile result = value * tl.math(MathOp::rsqrt, {mean(value * value) + tl.fill({1, 1}, x.dtype(), call.epsilon)});
  if (weight) result = result * weight;
  if (bias) result = result + bias;
  return result;
}

Tile row_result(Tl& tl, const RowCall& call, const Tile& in, const Tile& weight, const Tile& bias) {
  const bool integer = !is_float(call.dtype);
  const Tile x = integer ? in : tp::as_type(tl, in, tp::compute_type(call.dtype));
  switch (call.op) {
    case RowOp::sum:
      return tl.reduce(ReduceKind::sum, x, 1);
    case RowOp::mean:
      return tl.reduce(ReduceKind::sum, x, 1) * tl.fill({1, 1}, x.dtype(), 1.0 / static_cast<double>(call.width));
    case RowOp::amax:
      return tl.reduce(ReduceKind::max, x, 1);
    case RowOp::softmax:
      return tl.softmax(x);
    case RowOp::rms_norm:
    case RowOp::layer_norm:
      break;
  }
  return normalise(tl, call, x, weight, bias);
}

void row_kernel(Va x, Va out, const RowCall& call, Tl& tl) {
  const Share share = share_of(call.height, out, call.target, tl);
  const auto item = static_cast<Va>(size_of(call.dtype));
  const bool shrinks = call.op == RowOp::sum || call.op == RowOp::mean || call.op == RowOp::amax;
  const auto factor = [&](Va base) {
    return base == 0 ? Tile()
                     : tp::as_type(tl, tl.load(base, {1, call.width}, call.dtype), tp::compute_type(call.dtype));
  };
  if (share.begin == share.end) return;
  const Tile weight = factor(call.weight), bias = factor(call.bias);
  const std::int64_t most = std::max<std::int64_t>(1, kRowElements / call.width);
  for (std::int64_t row = share.begin; row < share.end; row += most) {
    const std::int64_t count = std::min(most, share.end - row);
    const Tile in = tl.load(x + static_cast<Va>(row * call.width) * item, {count, call.width}, call.dtype);
    const Tile result = tp::as_type(tl, row_result(tl, call, in, weight, bias), call.dtype);
    tl.store(out + static_cast<Va>(row * (shrinks ? 1 : call.width)) * item, result);
  }
}

struct LookUpCall {
  TensorGeometry target;
  std::int64_t first = 0, count = 0, width = 0;
  std::array<std::int64_t, kMostIndices> indices{};
};

void look_up_kernel(Va table, Va out, const LookUpCall& call, Tl& tl) {
  const Share share = share_of(call.count, out, call.target, tl);
  const DType dtype = call.target.dtype;
  const auto item = static_cast<Va>(size_of(dtype));
  const std::int64_t most = std::max<std::int64_t>(1, kRowElements / call.width);
  for (std::int64_t at = share.begin; at < share.end; at += most) {
    const std::int64_t end = std::min(share.end, at + most);
    const std::vector<std::int64_t> rows(call.indices.begin() + at, call.indices.begin() + end);
    tl.store(out + static_cast<Va>((call.first + at) * call.width) * item, tl.gather(table, rows, call.width, dtype));
  }
}

}  // namespace

Handle rows(Context& context, const std::string& name, const Tensor& x, const Tensor& weight, const Tensor& bias,
            const Tensor& out, RowCall call) {
  call.target = geometry_of(out);
  if (weight) call.weight = weight.va();
  if (bias) call.bias = bias.va();
  return context.launch_async(name, tp::on_pes_of(out), row_kernel, x, out, call);
}

Handle look_up(Context& context, const std::string& name, const Tensor& table, const std::vector<std::int64_t>& indices,
               const Tensor& out, std::int64_t width) {
  Handle last;
  LookUpCall call;
  call.target = geometry_of(out);
  call.width = width;
  const auto all = static_cast<std::int64_t>(indices.size());
  for (; call.first < all; call.first += kMostIndices) {
    call.count = std::min(kMostIndices, all - call.first);
    std::copy_n(indices.begin() + call.first, call.count, call.indices.begin());
    last = context.launch_async(name, tp::on_pes_of(out), look_up_kernel, table, out, call);
  }
  return last;
}

}  // namespace kernbench::pipeline
