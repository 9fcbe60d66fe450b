#include <algorithm>

#include "runtime/pipeline/run/kernels.h"
#include "runtime/tp/own_shard.h"

namespace kernbench::pipeline {

namespace {

/// Largest tiles, elements. assumed: two of each operand and a sum in f32 are below 512 KiB, the smallest share of TCM.
constexpr std::int64_t kProductRows = 64, kProductCols = 128, kProductDepth = 128, kKeys = 64;

Va element(Va base, std::int64_t at, DType dtype) {
  return base + static_cast<Va>(at) * static_cast<Va>(size_of(dtype));
}

void product_kernel(Va a, Va b, Va c, const ProductCall& call, Tl& tl) {
  const Share share = share_of(call.batch * call.m, c, call.target, tl);
  const DType wide = tp::compute_type(call.dtype);
  for (std::int64_t line = share.begin; line < share.end;) {
    const std::int64_t matrix = line / call.m, row = line % call.m;
    const std::int64_t count = std::min({call.m - row, share.end - line, kProductRows});
    for (std::int64_t col = 0; col < call.n; col += kProductCols) {
      const std::int64_t width = std::min(kProductCols, call.n - col);
      Tile sum = tl.fill({count, width}, wide, 0);
      for (std::int64_t depth = 0; depth < call.k; depth += kProductDepth) {
        const std::int64_t part = std::min(kProductDepth, call.k - depth);
        const Tile left = tl.load(element(a, matrix * call.a_step + row * call.k + depth, call.dtype), {count, part},
                                  call.dtype, call.k);
        const Tile right = tl.load(element(b, matrix * call.b_step + depth * call.n + col, call.dtype), {part, width},
                                   call.dtype, call.n);
        sum = tl.dot(left, right, sum);
      }
      tl.store(element(c, line * call.n + col, call.dtype), tp::as_type(tl, sum, call.dtype), call.n);
    }
    line += count;
  }
}

/// A block of queries of one head against keys in blocks: running maxima, sums and results, rescaled as maxima grow.
void attend_block(Va q, Va k, Va v, Va out, const AttentionCall& call, std::int64_t line, std::int64_t count, Tl& tl) {
  const std::int64_t head = line / call.queries, row = line % call.queries;
  const DType dtype = call.dtype, wide = tp::compute_type(dtype);
  const auto number = [&](double value) { return tl.fill({1, 1}, wide, value); };
  const Tile query = tp::as_type(tl, tl.load(element(q, line * call.width, dtype), {count, call.width}, dtype), wide) *
                     number(call.scale);
  const std::int64_t last = call.causal ? std::min(call.keys, row + count) : call.keys;
  Tile most, sums, result;
  for (std::int64_t key = 0; key < last; key += kKeys) {
    const std::int64_t keys = std::min(kKeys, last - key);
    const Tile held = tp::as_type(
        tl, tl.load(element(k, (head * call.keys + key) * call.width, dtype), {keys, call.width}, dtype), wide);
    Tile scores = tl.dot(query, tl.transpose(held), tl.fill({count, keys}, wide, 0));
    if (call.mask != 0)
      scores =
          scores +
          tp::as_type(tl, tl.load(element(call.mask, line * call.keys + key, dtype), {count, keys}, dtype, call.keys),
                      wide);
    if (call.causal && key + keys > row + 1) {
      const Tile columns = tl.arange(keys, wide, key), rows = tl.transpose(tl.arange(count, wide, row));
      scores = tl.select(tl.math(MathOp::less_equal, {tl.broadcast(columns, {count, keys}), rows}), scores,
                         tl.fill({1, 1}, wide, -1e30));
    }
    const Tile peak = tl.reduce(ReduceKind::max, scores, 1);
    const Tile higher = most ? tl.maximum(most, peak) : peak;
    const Tile weights = tl.exp(scores - higher);
    const Tile values = tp::as_type(
        tl, tl.load(element(v, (head * call.keys + key) * call.v_width, dtype), {keys, call.v_width}, dtype), wide);
    const Tile part = tl.dot(weights, values, tl.fill({count, call.v_width}, wide, 0));
    const Tile part_sums = tl.reduce(ReduceKind::sum, weights, 1);
    if (most) {
      const Tile factor = tl.exp(most - higher);
      sums = sums * factor + part_sums;
      result = result * factor + part;
    } else {
      sums = part_sums;
      result = part;
    }
    most = higher;
  }
  tl.store(element(out, line * call.v_width, dtype), tp::as_type(tl, result / sums, dtype));
}

void sdpa_kernel(Va q, Va k, Va v, Va out, const AttentionCall& call, Tl& tl) {
  const Share share = share_of(call.heads * call.queries, out, call.target, tl);
  constexpr std::int64_t kQueries = 32;
  for (std::int64_t line = share.begin; line < share.end;) {
    const std::int64_t count = std::min({call.queries - line % call.queries, share.end - line, kQueries});
    attend_block(q, k, v, out, call, line, count, tl);
    line += count;
  }
}

}  // namespace

Handle product(Context& context, const std::string& name, const Tensor& a, const Tensor& b, const Tensor& c,
               ProductCall call) {
  call.target = geometry_of(c);
  return context.launch_async(name, tp::on_pes_of(c), product_kernel, a, b, c, call);
}

Handle attention(Context& context, const std::string& name, const Tensor& q, const Tensor& k, const Tensor& v,
                 const Tensor& mask, const Tensor& out, AttentionCall call) {
  call.target = geometry_of(out);
  if (mask) call.mask = mask.va();
  return context.launch_async(name, tp::on_pes_of(out), sdpa_kernel, q, k, v, out, call);
}

}  // namespace kernbench::pipeline
