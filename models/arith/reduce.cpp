#include <cmath>
#include <limits>
#include <vector>

#include "models/arith/block.h"

namespace kernbench::arith {

namespace {

template <class C>
C combine(ReduceKind kind, C a, C b) {
  switch (kind) {
    case ReduceKind::sum:
      if constexpr (std::is_same_v<C, std::int64_t>) {
        return static_cast<C>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      } else {
        return a + b;
      }
    case ReduceKind::max:
      return a > b || a != a ? a : b;
    default:
      return a < b || a != a ? a : b;
  }
}

template <class C>
void over_rows(ReduceKind kind, const In& in, const Out& out) {
  for_pieces(out.shape, true, [&](std::int64_t, std::int64_t col, std::size_t n) {
    C total[kBlock], buffer[kBlock];
    load(in.data, in.dtype, col, total, n);
    for (std::int64_t row = 1; row < in.shape.rows; ++row) {
      const C* x = fetch(In{in.data, in.shape, in.dtype}, row, col, n, buffer);
      for (std::size_t i = 0; i < n; ++i) total[i] = combine(kind, total[i], x[i]);
    }
    store(total, out.data, out.dtype, col, n);
  });
}

template <class C>
C row_total(ReduceKind kind, const In& in, std::int64_t row) {
  constexpr std::size_t kPartial = 8;  // kBlock is a multiple: element j stays in lane j mod 8
  const auto cols = static_cast<std::size_t>(in.shape.cols);
  C lane[kPartial], buffer[kBlock];
  const std::size_t used = std::min(cols, kPartial);
  load(in.data, in.dtype, row * in.shape.cols, lane, used);
  for (std::size_t col = 0; col < cols; col += kBlock) {
    const std::size_t n = std::min(kBlock, cols - col);
    const C* x = fetch(in, row, static_cast<std::int64_t>(col), n, buffer);
    for (std::size_t i = col == 0 ? used : 0; i < n; ++i) lane[i % kPartial] = combine(kind, lane[i % kPartial], x[i]);
  }
  for (std::size_t step = kPartial / 2; step > 0; step /= 2) {
    for (std::size_t i = 0; i < step && i + step < used; ++i) lane[i] = combine(kind, lane[i], lane[i + step]);
  }
  return lane[0];
}

template <class C>
void reduce_as(ReduceKind kind, const In& in, int axis, const Out& out) {
  if (axis == 0) return over_rows<C>(kind, in, out);
  for (std::int64_t row = 0; row < in.shape.rows; ++row) {
    const C total = row_total<C>(kind, in, row);
    store(&total, out.data, out.dtype, row, 1);
  }
}

}  // namespace

void reduce(ReduceKind kind, const In& in, int axis, const Out& out) {
  const Shape expected = axis == 0 ? Shape{1, in.shape.cols} : Shape{in.shape.rows, 1};
  if (axis != 0 && axis != 1) reject("reduce along axis " + std::to_string(axis) + ", not 0 or 1");
  if (in.shape.count() == 0 && expected.count() > 0) reject("reduce of an empty tile");
  if (out.shape != expected || out.dtype != in.dtype) {
    reject("reduce of " + in.shape.str() + " " + to_string(in.dtype) + " along axis " + std::to_string(axis) +
           " does not give " + out.shape.str() + " " + to_string(out.dtype));
  }
  if (in.dtype == DType::f64) return reduce_as<double>(kind, in, axis, out);
  if (is_float(in.dtype)) return reduce_as<float>(kind, in, axis, out);
  reduce_as<std::int64_t>(kind, in, axis, out);
}

void softmax(const In& in, const Out& out) {
  if (!is_float(in.dtype) || in.shape != out.shape || in.dtype != out.dtype) {
    reject("softmax of " + in.shape.str() + " " + to_string(in.dtype) + " to " + out.shape.str() + " " +
           to_string(out.dtype));
  }
  const auto cols = static_cast<std::size_t>(in.shape.cols);
  std::vector<double> row_values(cols);
  for (std::int64_t row = 0; row < in.shape.rows; ++row) {
    load(in.data, in.dtype, row * in.shape.cols, row_values.data(), cols);
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (const double x : row_values) largest = combine(ReduceKind::max, largest, x);
    for (double& x : row_values) total += x = std::exp(x - largest);
    for (double& x : row_values) x /= total;
    store(row_values.data(), out.data, out.dtype, row * in.shape.cols, cols);
  }
}

}  // namespace kernbench::arith
