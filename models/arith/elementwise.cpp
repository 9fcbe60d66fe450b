#include <cmath>
#include <cstring>

#include "models/arith/block.h"

namespace kernbench::arith {

namespace {

bool fits(const In& in, Shape out) {
  return (in.shape.rows == out.rows || in.shape.rows == 1) && (in.shape.cols == out.cols || in.shape.cols == 1);
}
In flat(In in) {
  in.shape = Shape{1, in.shape.count()};
  return in;
}

/// out[i] = f(a[i]), computed in C.
template <class C, class F>
void map(In a, const Out& out, F f) {
  const bool whole = a.shape == out.shape;
  if (whole) a = flat(a);
  for_pieces(out.shape, whole, [&](std::int64_t row, std::int64_t col, std::size_t n) {
    C x[kBlock], result[kBlock];
    const C* from = fetch(a, row, col, n, x);
    for (std::size_t i = 0; i < n; ++i) result[i] = f(from[i]);
    store(result, out.data, out.dtype, row * out.shape.cols + col, n);
  });
}

/// out[i] = f(a[i], b[i]), computed in C; R is C, or a byte for compares.
template <class C, class R, class F>
void map(In a, In b, const Out& out, F f) {
  const bool whole = a.shape == out.shape && b.shape == out.shape;
  if (whole) a = flat(a), b = flat(b);
  for_pieces(out.shape, whole, [&](std::int64_t row, std::int64_t col, std::size_t n) {
    C x[kBlock], y[kBlock];
    R result[kBlock];
    const C* left = fetch(a, row, col, n, x);
    const C* right = fetch(b, row, col, n, y);
    for (std::size_t i = 0; i < n; ++i) result[i] = f(left[i], right[i]);
    const std::int64_t at = row * out.shape.cols + col;
    if constexpr (std::is_same_v<R, C>) {
      store(result, out.data, out.dtype, at, n);
    } else {
      std::memcpy(static_cast<std::uint8_t*>(out.data) + at, result, n);
    }
  });
}

// Integers wrap by way of the unsigned type.
std::int64_t wrap(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t raw(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrap(0 - raw(a)) : a / b;
}

template <class C>
void binary(MathOp op, const In& a, const In& b, const Out& out) {
  constexpr bool kInteger = std::is_same_v<C, std::int64_t>;
  const auto run = [&](auto f) { map<C, C>(a, b, out, f); };
  const auto compare = [&](auto f) { map<C, std::uint8_t>(a, b, out, f); };
  switch (op) {
    case MathOp::add:
      if constexpr (kInteger)
        return run([](C x, C y) { return wrap(raw(x) + raw(y)); });
      else
        return run([](C x, C y) { return x + y; });
    case MathOp::sub:
      if constexpr (kInteger)
        return run([](C x, C y) { return wrap(raw(x) - raw(y)); });
      else
        return run([](C x, C y) { return x - y; });
    case MathOp::mul:
      if constexpr (kInteger)
        return run([](C x, C y) { return wrap(raw(x) * raw(y)); });
      else
        return run([](C x, C y) { return x * y; });
    case MathOp::div:
      if constexpr (kInteger)
        return run([](C x, C y) { return divide(x, y); });
      else
        return run([](C x, C y) { return x / y; });
    case MathOp::minimum:
      return run([](C x, C y) { return x < y || x != x ? x : y; });
    case MathOp::maximum:
      return run([](C x, C y) { return x > y || x != x ? x : y; });
    case MathOp::less:
      return compare([](C x, C y) { return static_cast<std::uint8_t>(x < y); });
    case MathOp::less_equal:
      return compare([](C x, C y) { return static_cast<std::uint8_t>(x <= y); });
    default:
      return compare([](C x, C y) { return static_cast<std::uint8_t>(x == y); });
  }
}

template <class C>
void simple(MathOp op, const In& a, const Out& out) {
  constexpr bool kInteger = std::is_same_v<C, std::int64_t>;
  switch (op) {
    case MathOp::neg:
      if constexpr (kInteger)
        return map<C>(a, out, [](C x) { return wrap(0 - raw(x)); });
      else
        return map<C>(a, out, [](C x) { return -x; });
    case MathOp::abs:
      if constexpr (kInteger)
        return map<C>(a, out, [](C x) { return x < 0 ? wrap(0 - raw(x)) : x; });
      else
        return map<C>(a, out, [](C x) { return std::fabs(x); });
    default:
      return map<C>(a, out, [](C x) { return x < 0 ? C{0} : x; });  // relu
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void transcendental(MathOp op, const In& a, const Out& out) {
  const auto run = [&](auto f) { map<double>(a, out, f); };
  switch (op) {
    case MathOp::exp:
      return run([](double x) { return std::exp(x); });
    case MathOp::log:
      return run([](double x) { return std::log(x); });
    case MathOp::sqrt:
      return run([](double x) { return std::sqrt(x); });
    case MathOp::rsqrt:
      return run([](double x) { return 1 / std::sqrt(x); });
    case MathOp::tanh:
      return run([](double x) { return std::tanh(x); });
    case MathOp::sigmoid:
      return run([](double x) { return sigmoid(x); });
    case MathOp::gelu:
      return run([](double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); });
    default:
      return run([](double x) { return x * sigmoid(x); });  // silu
  }
}

/// Calls body(a value of the unsigned integer with the size of `dtype`).
template <class Body>
void by_size(DType dtype, const Body& body) {
  switch (size_of(dtype)) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    default:
      return body(std::uint64_t{});
  }
}

std::int64_t index_in(const In& in, std::int64_t row, std::int64_t col) {
  return (in.shape.rows == 1 ? 0 : row) * in.shape.cols + (in.shape.cols == 1 ? 0 : col);
}

void select(const In& mask, const In& a, const In& b, const Out& out) {
  by_size(out.dtype, [&](auto unit) {
    using T = decltype(unit);
    const auto* bits = static_cast<const std::uint8_t*>(mask.data);
    const auto *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
    auto* to = static_cast<T*>(out.data);
    for (std::int64_t row = 0; row < out.shape.rows; ++row) {
      for (std::int64_t col = 0; col < out.shape.cols; ++col) {
        const bool take = bits[index_in(mask, row, col)] != 0;
        *to++ = take ? x[index_in(a, row, col)] : y[index_in(b, row, col)];
      }
    }
  });
}

void transpose(const In& a, const Out& out) {
  if (a.shape.rows != out.shape.cols || a.shape.cols != out.shape.rows) {
    reject("transpose of " + a.shape.str() + " is not " + out.shape.str());
  }
  by_size(out.dtype, [&](auto unit) {
    using T = decltype(unit);
    const auto* from = static_cast<const T*>(a.data);
    auto* to = static_cast<T*>(out.data);
    constexpr std::int64_t kSide = 32;  // both sides stay in the first-level cache
    for (std::int64_t r0 = 0; r0 < a.shape.rows; r0 += kSide) {
      for (std::int64_t c0 = 0; c0 < a.shape.cols; c0 += kSide) {
        const std::int64_t r1 = std::min(r0 + kSide, a.shape.rows), c1 = std::min(c0 + kSide, a.shape.cols);
        for (std::int64_t row = r0; row < r1; ++row) {
          for (std::int64_t col = c0; col < c1; ++col) to[col * a.shape.rows + row] = from[row * a.shape.cols + col];
        }
      }
    }
  });
}

/// cast, copy and broadcast: any dtype to any.
void copy(const In& a, const Out& out) {
  const std::size_t bytes = size_of(out.dtype);
  if (a.shape == out.shape) {
    if (a.data != out.data || a.dtype != out.dtype) {
      convert(a.data, a.dtype, out.data, out.dtype, static_cast<std::size_t>(out.shape.count()));
    }
    return;
  }
  for (std::int64_t row = 0; row < out.shape.rows; ++row) {
    auto* to = static_cast<std::uint8_t*>(element(out.data, out.dtype, row * out.shape.cols));
    const void* from = element(a.data, a.dtype, index_in(a, row, 0));
    const std::int64_t distinct = a.shape.cols == 1 ? 1 : out.shape.cols;
    convert(from, a.dtype, to, out.dtype, static_cast<std::size_t>(distinct));
    for (std::int64_t col = distinct; col < out.shape.cols; ++col) {
      std::memcpy(to + static_cast<std::size_t>(col) * bytes, to, bytes);
    }
  }
}

void check(MathOp op, const In* in, std::size_t count, const Out& out) {
  const std::string name = to_string(op);
  if (static_cast<int>(count) != operands(op) || count == 0) {
    reject(name + " takes " + std::to_string(operands(op)) + " operands, not " + std::to_string(count));
  }
  const std::size_t first = op == MathOp::select ? 1 : 0;
  const DType dtype = in[first].dtype;
  if (!is_defined(op, dtype)) reject(name + " is not defined for " + to_string(dtype));
  if (op == MathOp::select && in[0].dtype != DType::boolean)
    reject("the mask of select is " + std::string(to_string(in[0].dtype)) + ", not bool");
  for (std::size_t i = 0; i < count; ++i) {
    if (i >= first && in[i].dtype != dtype) {
      reject(name + " of " + to_string(dtype) + " and " + to_string(in[i].dtype));
    }
    if (op != MathOp::transpose && !fits(in[i], out.shape)) {
      reject(name + ": " + in[i].shape.str() + " does not broadcast to " + out.shape.str());
    }
  }
  if (op != MathOp::cast && out.dtype != result_type(op, dtype)) {
    reject(name + " of " + to_string(dtype) + " does not give " + to_string(out.dtype));
  }
}

}  // namespace

void math(MathOp op, const In* in, std::size_t count, const Out& out) {
  check(op, in, count, out);
  const DType dtype = in[0].dtype;
  switch (op) {
    case MathOp::cast:
    case MathOp::copy:
    case MathOp::broadcast:
      return copy(in[0], out);
    case MathOp::transpose:
      return transpose(in[0], out);
    case MathOp::select:
      return select(in[0], in[1], in[2], out);
    case MathOp::neg:
    case MathOp::abs:
    case MathOp::relu:
      if (dtype == DType::f64) return simple<double>(op, in[0], out);
      return is_float(dtype) ? simple<float>(op, in[0], out) : simple<std::int64_t>(op, in[0], out);
    default:
      break;
  }
  if (count == 1) return transcendental(op, in[0], out);
  if (dtype == DType::f64) return binary<double>(op, in[0], in[1], out);
  return is_float(dtype) ? binary<float>(op, in[0], in[1], out) : binary<std::int64_t>(op, in[0], in[1], out);
}

void fill(const Out& out, double value) {
  const auto n = static_cast<std::size_t>(out.shape.count());
  if (n == 0) return;
  store_element(out.data, out.dtype, 0, value);
  by_size(out.dtype, [&](auto unit) {
    auto* to = static_cast<decltype(unit)*>(out.data);
    std::fill_n(to + 1, n - 1, to[0]);
  });
}

void arange(const Out& out, std::int64_t start) {
  if (!is_defined(MathOp::arange, out.dtype)) reject(std::string("arange is not defined for ") + to_string(out.dtype));
  const auto n = static_cast<std::size_t>(out.shape.count());
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + i);
    if (is_float(out.dtype)) {
      convert(&value, DType::i64, element(out.data, out.dtype, static_cast<std::int64_t>(i)), out.dtype, 1);
    } else {
      store_integer(out.data, out.dtype, i, value);
    }
  }
}

}  // namespace kernbench::arith
