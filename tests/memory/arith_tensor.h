#pragma once
#include <initializer_list>
#include <random>
#include <vector>

#include "models/arith/arith.h"

namespace kernbench::arith {

inline constexpr DType kFloats[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};
inline constexpr DType kIntegers[] = {DType::i64, DType::i32, DType::i16, DType::i8};

/// A tile that owns its elements.
struct Tensor {
  Tensor(Shape shape, DType dtype)
      : shape(shape), dtype(dtype), bytes((static_cast<std::size_t>(shape.count()) * size_of(dtype) + 7) / 8) {}
  In in() const { return {bytes.data(), shape, dtype}; }
  Out out() { return {bytes.data(), shape, dtype}; }
  double at(std::int64_t row, std::int64_t col) const { return load_element(bytes.data(), dtype, index(row, col)); }
  std::int64_t integer(std::int64_t row, std::int64_t col) const {
    return load_integer(bytes.data(), dtype, index(row, col));
  }
  void set(std::int64_t row, std::int64_t col, double value) {
    store_element(bytes.data(), dtype, index(row, col), value);
  }
  std::size_t index(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>((shape.rows == 1 ? 0 : row) * shape.cols + (shape.cols == 1 ? 0 : col));
  }
  Shape shape;
  DType dtype;
  std::vector<std::uint64_t> bytes;
};

inline void math(MathOp op, std::initializer_list<In> in, const Out& out) { math(op, in.begin(), in.size(), out); }

inline Tensor random_tensor(Shape shape, DType dtype, unsigned seed, double low = -4, double high = 4) {
  Tensor tensor(shape, dtype);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(low, high);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t col = 0; col < shape.cols; ++col) {
      if (is_float(dtype)) {
        tensor.set(row, col, value(random));
      } else {
        store_integer(tensor.bytes.data(), dtype, tensor.index(row, col),
                      static_cast<std::int64_t>(random() >> (random() % 64)));
      }
    }
  }
  return tensor;
}

/// `value` as `dtype` holds it.
inline double rounded(double value, DType dtype) {
  std::uint64_t word = 0;
  store_element(&word, dtype, 0, value);
  return load_element(&word, dtype, 0);
}

/// Of the significand.
inline int digits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 53;
    case DType::f32:
      return 24;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    case DType::f8e4m3:
      return 4;
    default:
      return 3;
  }
}

}  // namespace kernbench::arith
