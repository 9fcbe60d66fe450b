#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kernbench {

enum class DType : std::uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, boolean };
inline constexpr int kDTypes = 11;

const char* to_string(DType dtype);  ///< "f16"; boolean is "bool"
std::optional<DType> parse_dtype(const std::string& name);
std::size_t size_of(DType dtype);  ///< bytes per element
bool is_float(DType dtype);

/// Reads element `i` of an array of `dtype`. Integers beyond 2^53 lose bits; use load_integer for those.
double load_element(const void* data, DType dtype, std::size_t i);
/// Writes `value`, rounded to nearest even; floats overflow to infinity (f8e4m3: to NaN, which has no infinity),
/// integers saturate, bool is value != 0.
void store_element(void* data, DType dtype, std::size_t i, double value);
/// Exact access to integer and bool elements. REQUIRES: !is_float(dtype).
std::int64_t load_integer(const void* data, DType dtype, std::size_t i);
void store_integer(void* data, DType dtype, std::size_t i, std::int64_t value);  ///< wraps to the width

/// f(T()) with the type of integer that elements of `dtype` are; of bool, whose elements are bytes, T is bool.
/// REQUIRES: !is_float(dtype).
template <class F>
auto with_integer(DType dtype, const F& f) {
  switch (dtype) {
    case DType::i64:
      return f(std::int64_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i16:
      return f(std::int16_t{});
    case DType::i8:
      return f(std::int8_t{});
    default:
      return f(false);
  }
}

/// Converts `n` elements; a value that is exact in both types is kept exactly.
void convert(const void* from, DType from_type, void* to, DType to_type, std::size_t n);

}  // namespace kernbench
