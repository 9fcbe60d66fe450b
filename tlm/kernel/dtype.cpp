#include "tlm/kernel/dtype.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace kernbench {

namespace {

struct Info {
  DType dtype;
  const char* name;
  std::uint8_t bytes;
  bool is_float;
};
constexpr Info kInfo[kDTypes] = {
    {DType::f64, "f64", 8, true},   {DType::f32, "f32", 4, true},       {DType::f16, "f16", 2, true},
    {DType::bf16, "bf16", 2, true}, {DType::f8e4m3, "f8e4m3", 1, true}, {DType::f8e5m2, "f8e5m2", 1, true},
    {DType::i64, "i64", 8, false},  {DType::i32, "i32", 4, false},      {DType::i16, "i16", 2, false},
    {DType::i8, "i8", 1, false},    {DType::boolean, "bool", 1, false},
};
const Info& info(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)]; }

// Elements that the two-step conversions hold at once, on the stack.
constexpr std::size_t kChunk = 256;

template <class To, class From>
To bits_of(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// 8-bit floats, OCP 8-bit Floating Point Specification 1.0: E4M3 has no infinity and one NaN pattern per sign (0x7f),
/// E5M2 is the upper half of an f16.
struct E4M3 {
  static constexpr unsigned kMantissa = 3, kBias = 7;
  static constexpr std::uint32_t kOverflow = 0x7f, kNan = 0x7f;
};
struct E5M2 {
  static constexpr unsigned kMantissa = 2, kBias = 15;
  static constexpr std::uint32_t kOverflow = 0x7c, kNan = 0x7e;
};

template <class F>
std::uint8_t to_f8(float value) {
  constexpr unsigned kShift = 23 - F::kMantissa;
  const auto bits = bits_of<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80;
  const std::uint32_t magnitude = bits & 0x7fff'ffff;
  std::uint32_t result;
  if (magnitude > 0x7f80'0000) {
    result = F::kNan;
  } else if (magnitude < (127 - F::kBias + 1) << 23) {
    // Subnormal: adding 1.0 at the right scale lets the FPU round to the nearest even multiple of the smallest value.
    const std::uint32_t magic = (127 - F::kBias + 1 + kShift) << 23;
    result = bits_of<std::uint32_t>(bits_of<float>(magnitude) + bits_of<float>(magic)) - magic;
  } else {
    const std::uint32_t odd = (magnitude >> kShift) & 1;
    const std::uint32_t rounded = magnitude + (1u << (kShift - 1)) - 1 + odd - ((127 - F::kBias) << 23);
    result = std::min(rounded >> kShift, F::kOverflow);
  }
  return static_cast<std::uint8_t>(sign | result);
}

template <class F>
std::array<float, 256> f8_table() {
  std::array<float, 256> table{};
  for (unsigned pattern = 0; pattern < 256; ++pattern) {
    const unsigned magnitude = pattern & 0x7f;
    const int exponent = static_cast<int>(magnitude >> F::kMantissa);
    const unsigned mantissa = magnitude & ((1u << F::kMantissa) - 1);
    const unsigned one = exponent == 0 ? 0 : 1u << F::kMantissa;
    float value = std::ldexp(static_cast<float>(one + mantissa),
                             std::max(exponent, 1) - static_cast<int>(F::kBias) - static_cast<int>(F::kMantissa));
    if (F::kOverflow != F::kNan && magnitude == F::kOverflow) value = std::numeric_limits<float>::infinity();
    if (F::kOverflow == F::kNan ? magnitude == F::kNan : magnitude > F::kOverflow) {
      value = std::numeric_limits<float>::quiet_NaN();
    }
    table[pattern] = pattern & 0x80 ? -value : value;
  }
  return table;
}
const std::array<float, 256>& e4m3_table() {
  static const std::array<float, 256> table = f8_table<E4M3>();
  return table;
}
const std::array<float, 256>& e5m2_table() {
  static const std::array<float, 256> table = f8_table<E5M2>();
  return table;
}

template <class T>
const T* elements(const void* data) {
  return static_cast<const T*>(data);
}
template <class T>
T* elements(void* data) {
  return static_cast<T*>(data);
}

/// Floats of at most 32 bits to f32: always exact.
void widen(const void* from, DType type, float* to, std::size_t n) {
  switch (type) {
    case DType::f32:
      std::memcpy(to, from, n * sizeof(float));
      return;
    case DType::f16:
      for (std::size_t i = 0; i < n; ++i) {
        to[i] = Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(elements<std::uint16_t>(from)[i]));
      }
      return;
    case DType::bf16:
      for (std::size_t i = 0; i < n; ++i) {
        to[i] = bits_of<float>(std::uint32_t{elements<std::uint16_t>(from)[i]} << 16);
      }
      return;
    case DType::f8e4m3: {
      const auto& table = e4m3_table();
      for (std::size_t i = 0; i < n; ++i) to[i] = table[elements<std::uint8_t>(from)[i]];
      return;
    }
    default: {
      const auto& table = e5m2_table();
      for (std::size_t i = 0; i < n; ++i) to[i] = table[elements<std::uint8_t>(from)[i]];
      return;
    }
  }
}

/// f32 to floats of at most 32 bits, rounded to nearest even.
void narrow(const float* from, void* to, DType type, std::size_t n) {
  switch (type) {
    case DType::f32:
      std::memcpy(to, from, n * sizeof(float));
      return;
    case DType::f16:
      for (std::size_t i = 0; i < n; ++i)
        elements<std::uint16_t>(to)[i] = Eigen::half_impl::float_to_half_rtne(from[i]).x;
      return;
    case DType::bf16:
      for (std::size_t i = 0; i < n; ++i) {
        elements<std::uint16_t>(to)[i] = Eigen::bfloat16_impl::float_to_bfloat16_rtne<false>(from[i]).value;
      }
      return;
    case DType::f8e4m3:
      for (std::size_t i = 0; i < n; ++i) elements<std::uint8_t>(to)[i] = to_f8<E4M3>(from[i]);
      return;
    default:
      for (std::size_t i = 0; i < n; ++i) elements<std::uint8_t>(to)[i] = to_f8<E5M2>(from[i]);
      return;
  }
}

/// Rounds to f32 such that a later rounding to a float with at least two bits less gives what one rounding of `value`
/// would give: an inexact result gets an odd last bit. Source: Boldo, Melquiond, "Emulation of FMA and correctly
/// rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57(4), 2008.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const auto bits = bits_of<std::uint32_t>(nearest);
  if (static_cast<double>(nearest) == value || std::isnan(value) || (bits & 1) != 0) return nearest;
  const bool too_large = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  return bits_of<float>(too_large ? bits - 1 : bits + 1);
}

/// The same from i64 to f64.
double round_to_odd(std::int64_t value) {
  const std::uint64_t magnitude =
      value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  if (magnitude < std::uint64_t{1} << 53) return static_cast<double>(value);
  unsigned shift = 0;
  while ((magnitude >> shift) >= std::uint64_t{1} << 53) ++shift;
  const bool exact = (magnitude & ((std::uint64_t{1} << shift) - 1)) == 0;
  const double result =
      std::ldexp(static_cast<double>((magnitude >> shift) | (exact ? 0 : 1)), static_cast<int>(shift));
  return value < 0 ? -result : result;
}

template <class Int>
Int saturate(double value) {
  if constexpr (std::is_same_v<Int, bool>) return value != 0;
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  constexpr Int kHalf = std::numeric_limits<Int>::max() / 2 + 1;
  constexpr double kBeyond = 2.0 * kHalf;  // 2^(bits-1): exact
  if (rounded >= kBeyond) return std::numeric_limits<Int>::max();
  if (rounded < -kBeyond) return std::numeric_limits<Int>::min();
  return static_cast<Int>(rounded);
}

template <class Int>
Int saturate(std::int64_t value) {
  if constexpr (std::is_same_v<Int, bool>) return value != 0;
  return static_cast<Int>(
      std::clamp<std::int64_t>(value, std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max()));
}

/// Writes element `i` of integers or bool, as `value(T())` of its type gives it.
template <class Value>
void store_as(void* data, DType dtype, std::size_t i, const Value& value) {
  with_integer(dtype, [&](auto type) {
    using Held = std::conditional_t<std::is_same_v<decltype(type), bool>, std::uint8_t, decltype(type)>;
    elements<Held>(data)[i] = value(type);
  });
}

}  // namespace

const char* to_string(DType dtype) { return info(dtype).name; }

std::optional<DType> parse_dtype(const std::string& name) {
  for (const Info& entry : kInfo) {
    if (name == entry.name) return entry.dtype;
  }
  return std::nullopt;
}

std::size_t size_of(DType dtype) { return info(dtype).bytes; }
bool is_float(DType dtype) { return info(dtype).is_float; }

double load_element(const void* data, DType dtype, std::size_t i) {
  if (dtype == DType::f64) return elements<double>(data)[i];
  if (!is_float(dtype)) return static_cast<double>(load_integer(data, dtype, i));
  float value;
  widen(elements<std::uint8_t>(data) + i * size_of(dtype), dtype, &value, 1);
  return value;
}

void store_element(void* data, DType dtype, std::size_t i, double value) {
  if (!is_float(dtype)) {
    store_as(data, dtype, i, [value](auto type) { return saturate<decltype(type)>(value); });
  } else if (dtype == DType::f64) {
    elements<double>(data)[i] = value;
  } else if (dtype == DType::f32) {
    elements<float>(data)[i] = static_cast<float>(value);
  } else {
    const float odd = round_to_odd(value);
    narrow(&odd, elements<std::uint8_t>(data) + i * size_of(dtype), dtype, 1);
  }
}

std::int64_t load_integer(const void* data, DType dtype, std::size_t i) {
  return with_integer(dtype, [&](auto type) -> std::int64_t {
    if constexpr (std::is_same_v<decltype(type), bool>) return elements<std::uint8_t>(data)[i] != 0;
    return elements<decltype(type)>(data)[i];
  });
}

void store_integer(void* data, DType dtype, std::size_t i, std::int64_t value) {
  store_as(data, dtype, i, [value](auto type) { return static_cast<decltype(type)>(value); });
}

void convert(const void* from, DType from_type, void* to, DType to_type, std::size_t n) {
  if (n == 0) return;  // an empty tile may have no address
  if (from_type == to_type) {
    std::memcpy(to, from, n * size_of(to_type));
    return;
  }
  const bool from_small = is_float(from_type) && from_type != DType::f64;
  const bool to_small = is_float(to_type) && to_type != DType::f64;
  if (from_small && to_type == DType::f32) return widen(from, from_type, elements<float>(to), n);
  if (from_type == DType::f32 && to_small) return narrow(elements<float>(from), to, to_type, n);
  const std::size_t from_bytes = size_of(from_type), to_bytes = size_of(to_type);
  if (is_float(from_type) && is_float(to_type) && to_type != DType::f32) {
    float chunk[kChunk];
    for (std::size_t i = 0; i < n; i += kChunk) {
      const std::size_t count = std::min(kChunk, n - i);
      if (from_small) {
        widen(elements<std::uint8_t>(from) + i * from_bytes, from_type, chunk, count);
      } else {
        std::transform(elements<double>(from) + i, elements<double>(from) + i + count, chunk,
                       [](double value) { return round_to_odd(value); });
      }
      if (to_small) {
        narrow(chunk, elements<std::uint8_t>(to) + i * to_bytes, to_type, count);
      } else {
        std::copy(chunk, chunk + count, elements<double>(to) + i);
      }
    }
    return;
  }
  if (is_float(from_type)) {
    for (std::size_t i = 0; i < n; ++i) store_element(to, to_type, i, load_element(from, from_type, i));
  } else if (!is_float(to_type)) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t value = load_integer(from, from_type, i);
      store_as(to, to_type, i, [value](auto type) { return saturate<decltype(type)>(value); });
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t value = load_integer(from, from_type, i);
      if (to_type == DType::f32) {
        elements<float>(to)[i] = static_cast<float>(value);
      } else {
        store_element(to, to_type, i, to_type == DType::f64 ? static_cast<double>(value) : round_to_odd(value));
      }
    }
  }
}

}  // namespace kernbench
