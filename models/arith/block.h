#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "models/arith/arith.h"

/// Elements on their way between a tile and a loop over the type that it computes in: float, double or int64_t.
namespace kernbench::arith {

inline constexpr std::size_t kBlock = 512;  ///< elements that a loop holds at once, on the stack

[[noreturn]] inline void reject(const std::string& what) { throw std::invalid_argument("arith: " + what); }

template <class C>
constexpr DType native() {
  return std::is_same_v<C, float> ? DType::f32 : std::is_same_v<C, double> ? DType::f64 : DType::i64;
}

inline const void* element(const void* data, DType dtype, std::int64_t index) {
  return static_cast<const std::uint8_t*>(data) + static_cast<std::size_t>(index) * size_of(dtype);
}
inline void* element(void* data, DType dtype, std::int64_t index) {
  return static_cast<std::uint8_t*>(data) + static_cast<std::size_t>(index) * size_of(dtype);
}

/// Widens `n` elements from `index` on.
template <class C>
void load(const void* data, DType dtype, std::int64_t index, C* to, std::size_t n) {
  const void* from = element(data, dtype, index);
  if constexpr (std::is_same_v<C, std::int64_t>) {
    with_integer(dtype, [&](auto type) {
      if constexpr (std::is_same_v<decltype(type), bool>) {
        for (std::size_t i = 0; i < n; ++i) to[i] = load_integer(from, dtype, i);
      } else {
        std::copy_n(static_cast<const decltype(type)*>(from), n, to);
      }
    });
  } else {
    convert(from, dtype, to, native<C>(), n);
  }
}

/// Rounds (floats) or wraps (integers) `n` elements into place.
template <class C>
void store(const C* from, void* data, DType dtype, std::int64_t index, std::size_t n) {
  void* to = element(data, dtype, index);
  if (static_cast<const void*>(from) == to) return;
  if constexpr (std::is_same_v<C, std::int64_t>) {
    switch (dtype) {
      case DType::i32: {
        auto* out = static_cast<std::int32_t*>(to);
        for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::int32_t>(from[i]);
        return;
      }
      default:
        for (std::size_t i = 0; i < n; ++i) store_integer(to, dtype, i, from[i]);
        return;
    }
  } else {
    convert(from, native<C>(), to, dtype, n);
  }
}

/// `n` elements of row `row` of `in` broadcast to wider shapes, from column `col` on: in place where possible, else in
/// `buffer`.
template <class C>
const C* fetch(const In& in, std::int64_t row, std::int64_t col, std::size_t n, C* buffer) {
  const std::int64_t first = (in.shape.rows == 1 ? 0 : row) * in.shape.cols;
  if (in.shape.cols == 1 && n != 1) {
    load(in.data, in.dtype, first, buffer, 1);
    std::fill_n(buffer + 1, n - 1, buffer[0]);
    return buffer;
  }
  const std::int64_t at = first + (in.shape.cols == 1 ? 0 : col);
  if (in.dtype == native<C>()) return static_cast<const C*>(element(in.data, in.dtype, at));
  load(in.data, in.dtype, at, buffer, n);
  return buffer;
}

/// Calls body(row, first column, n) over `out` in pieces of at most kBlock; one long row if nothing is broadcast.
template <class Body>
void for_pieces(Shape shape, bool flat, const Body& body) {
  if (flat) shape = Shape{1, shape.count()};
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t col = 0; col < shape.cols; col += static_cast<std::int64_t>(kBlock)) {
      body(row, col,
           static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(kBlock), shape.cols - col)));
    }
  }
}

}  // namespace kernbench::arith
