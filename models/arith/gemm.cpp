#include <cstring>
#include <vector>

#include "models/arith/block.h"

namespace kernbench::arith {

namespace {

/// Four lanes of 32 bits or two of 64: what every x86-64 and AArch64 machine has.
template <class C>
using Vector [[gnu::vector_size(16)]] = C;

/// A block of c of kRows x kCols stays in registers while k runs; every lane is one element's own sum, in order of k.
template <class C>
struct Block {
  static constexpr std::int64_t kRows = 4;
  static constexpr std::int64_t kVectors = 2;
  static constexpr std::int64_t kWidth = 16 / sizeof(C);
  static constexpr std::int64_t kCols = kVectors * kWidth;

  /// `a`: kRows per k; `b`: kCols per k; `c`: kRows x kCols, in and out.
  static void run(const C* a, const C* b, std::int64_t k, C* c) {
    using V = Vector<C>;
    V sum[kRows][kVectors];
    std::memcpy(sum, c, sizeof sum);
    for (std::int64_t i = 0; i < k; ++i, a += kRows, b += kCols) {
      V x[kVectors];
      std::memcpy(x, b, sizeof x);
      for (std::int64_t row = 0; row < kRows; ++row) {
        const V factor = a[row] - V{};
        for (std::int64_t v = 0; v < kVectors; ++v) sum[row][v] += factor * x[v];
      }
    }
    std::memcpy(c, sum, sizeof sum);
  }
};

/// Element type of a tile in memory -> compute type. Unsigned integers wrap without undefined behaviour.
template <class C>
void widen(const void* data, DType dtype, std::int64_t index, C* to, std::size_t n) {
  if constexpr (std::is_floating_point_v<C>) {
    load(data, dtype, index, to, n);
  } else {
    for (std::size_t i = 0; i < n; ++i)
      to[i] = static_cast<C>(load_integer(data, dtype, static_cast<std::size_t>(index) + i));
  }
}

template <class C>
void put(const C* from, const Out& c, std::int64_t index, std::size_t n) {
  if constexpr (std::is_floating_point_v<C>) {
    store(from, c.data, c.dtype, index, n);
  } else {
    using Signed = std::make_signed_t<C>;  // sign-extends a 32-bit sum
    for (std::size_t i = 0; i < n; ++i) {
      store_integer(c.data, c.dtype, static_cast<std::size_t>(index) + i, static_cast<Signed>(from[i]));
    }
  }
}

template <class C>
void gemm_as(const In& a, const In& b, const void* acc, const Out& c) {
  using B = Block<C>;
  const std::int64_t m = c.shape.rows, n = c.shape.cols, k = a.shape.cols;
  const std::int64_t row_blocks = (m + B::kRows - 1) / B::kRows, col_blocks = (n + B::kCols - 1) / B::kCols;

  // Packed operands: a as [row block][k][kRows], b as [column block][k][kCols]; missing rows and columns are zero.
  std::vector<C> left(static_cast<std::size_t>(row_blocks * k * B::kRows)),
      line(static_cast<std::size_t>(std::max(n, k)));
  for (std::int64_t row = 0; row < m; ++row) {
    widen(a.data, a.dtype, row * k, line.data(), static_cast<std::size_t>(k));
    C* to = left.data() + (row / B::kRows) * k * B::kRows + row % B::kRows;
    for (std::int64_t i = 0; i < k; ++i) to[i * B::kRows] = line[static_cast<std::size_t>(i)];
  }
  std::vector<C> right(static_cast<std::size_t>(col_blocks * k * B::kCols));
  for (std::int64_t i = 0; i < k; ++i) {
    widen(b.data, b.dtype, i * n, line.data(), static_cast<std::size_t>(n));
    for (std::int64_t col = 0; col < n; col += B::kCols) {
      std::copy_n(line.data() + col, std::min(B::kCols, n - col), right.data() + (col / B::kCols * k + i) * B::kCols);
    }
  }

  C block[B::kRows * B::kCols];
  for (std::int64_t row = 0; row < m; row += B::kRows) {
    const std::int64_t rows = std::min(B::kRows, m - row);
    for (std::int64_t col = 0; col < n; col += B::kCols) {
      const auto cols = static_cast<std::size_t>(std::min(B::kCols, n - col));
      std::fill(std::begin(block), std::end(block), C{0});
      for (std::int64_t r = 0; acc != nullptr && r < rows; ++r) {
        widen(acc, c.dtype, (row + r) * n + col, block + r * B::kCols, cols);
      }
      B::run(left.data() + row * k, right.data() + col * k, k, block);
      for (std::int64_t r = 0; r < rows; ++r) put(block + r * B::kCols, c, (row + r) * n + col, cols);
    }
  }
}

}  // namespace

void gemm(const In& a, const In& b, const void* acc, const Out& c) {
  if (a.dtype != b.dtype || !gemm_is_defined(a.dtype, c.dtype)) {
    reject(std::string("gemm of ") + to_string(a.dtype) + " and " + to_string(b.dtype) + " to " + to_string(c.dtype));
  }
  if (a.shape.cols != b.shape.rows || c.shape != Shape{a.shape.rows, b.shape.cols}) {
    reject("gemm of " + a.shape.str() + " and " + b.shape.str() + " does not give " + c.shape.str());
  }
  const auto involved = [&](DType dtype) { return a.dtype == dtype || c.dtype == dtype; };
  if (is_float(a.dtype)) return involved(DType::f64) ? gemm_as<double>(a, b, acc, c) : gemm_as<float>(a, b, acc, c);
  involved(DType::i64) ? gemm_as<std::uint64_t>(a, b, acc, c) : gemm_as<std::uint32_t>(a, b, acc, c);
}

}  // namespace kernbench::arith
