#include "sc_main/check/numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/host_memory.h"

namespace kernbench {
namespace {

constexpr std::size_t kChunk = 256;  // elements that are converted at a time

std::int64_t wrap(std::int64_t value, DType dtype) {
  std::int64_t wrapped = 0;
  store_integer(&wrapped, dtype, 0, value);
  return load_integer(&wrapped, dtype, 0);
}

/// The value of the lowest bit that is set in a number; 0 of 0, infinity, NaN.
double lowest_bit(double x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const std::uint64_t mantissa = (bits & 0xF'FFFF'FFFF'FFFF) | (exponent == 0 ? 0 : std::uint64_t{1} << 52);
  if (mantissa == 0 || exponent == 0x7FF) return 0;
  return std::ldexp(1, std::max(exponent, 1) - 1075 + __builtin_ctzll(mantissa));
}

std::int64_t wrapping(std::int64_t a, std::int64_t b, bool product) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return static_cast<std::int64_t>(product ? x * y : x + y);
}

/// Of a float: half a unit in the last place of 1, the smallest number above 0, the largest; of other types 0.
struct FloatFormat {
  DType dtype;
  double roundoff = 0, smallest = 0, largest = 0;
};
constexpr FloatFormat kFloats[] = {
    {DType::f64, 0x1p-53, 0x1p-1074, std::numeric_limits<double>::max()},
    {DType::f32, 0x1p-24, 0x1p-149, std::numeric_limits<float>::max()},
    {DType::f16, 0x1p-11, 0x1p-24, 65'504},
    {DType::bf16, 0x1p-8, 0x1p-133, 0x1.FEp127},
    {DType::f8e4m3, 0x1p-4, 0x1p-9, 448},
    {DType::f8e5m2, 0x1p-3, 0x1p-16, 57'344},
};
FloatFormat format_of(DType dtype) {
  for (const FloatFormat& format : kFloats) {
    if (format.dtype == dtype) return format;
  }
  return {dtype};
}

}  // namespace

double unit_roundoff(DType dtype) { return format_of(dtype).roundoff; }
double smallest_subnormal(DType dtype) { return format_of(dtype).smallest; }
double largest(DType dtype) { return format_of(dtype).largest; }

double gemm_tolerance(DType dtype, std::int64_t k, double sum, double magnitude) {
  const DType sum_type = dtype == DType::f64 ? DType::f64 : DType::f32;
  const double terms = static_cast<double>(k);
  // Twice 2^-53: the host's own sum in f64 errs as well. 1.01: terms of second order.
  const double sum_error =
      1.01 * terms * (unit_roundoff(sum_type) + 0x1p-53) * magnitude + terms * smallest_subnormal(sum_type) / 2;
  const double rounding = std::max(unit_roundoff(dtype) * (std::abs(sum) + sum_error), smallest_subnormal(dtype) / 2);
  return sum_error + rounding;
}

Pattern::Pattern(std::uint64_t seed, DType dtype, Range range, Contributions contributions)
    : seed_(seed), dtype_(dtype), range_(range) {
  if (!is_float(dtype) || range == Range::unit) return;
  // f8e4m3 holds 2^8 and 2^-9: eight factors of 2 or 1/2.
  const std::uint64_t hold = range == Range::factor ? 8 : static_cast<std::uint64_t>(1 / unit_roundoff(dtype));
  const auto streams = static_cast<std::uint64_t>(contributions.streams),
             each = static_cast<std::uint64_t>(contributions.each);
  const std::uint64_t at_once = hold / each;  // streams
  if (at_once == 0) {
    every_ = range == Range::factor ? 0 : streams;
    return;
  }
  every_ = (streams + at_once - 1) / at_once;
  constexpr std::uint64_t kMostUnits = 1 << 20;
  while (2 * units_ * streams * each <= hold && units_ < kMostUnits) units_ *= 2;
}

/// Of a float. `place`: element + stream, which says whose turn it is.
double Pattern::value(std::uint64_t random, std::uint64_t place) const {
  if (range_ == Range::unit) return static_cast<double>(random >> 11) * 0x1p-52 - 1;
  const double sign = random >> 63 != 0 ? -1 : 1;
  const bool its_turn = every_ != 0 && place % every_ == 0;
  if (range_ == Range::factor) return its_turn ? sign * (random & 1 ? 2 : 0.5) : sign;
  return its_turn ? sign * static_cast<double>(1 + random % units_) / static_cast<double>(units_) : 0;
}

std::vector<std::uint8_t> Pattern::bytes(std::uint64_t stream, std::size_t count) const {
  const std::size_t size = count * size_of(dtype_);
  if (size >= kLargeHostMemory)
    require_host_memory(size, fmt::format("{} elements of test data", count),
                        "--data off needs none of it, smaller tensors less");
  std::vector<std::uint8_t> data(size);
  const std::uint64_t base = splitmix64(splitmix64(seed_) + stream);
  if (is_float(dtype_)) {
    std::array<double, kChunk> values;
    for (std::size_t from = 0; from < count; from += kChunk) {
      const std::size_t n = std::min(kChunk, count - from);
      for (std::size_t i = 0; i < n; ++i) values[i] = value(splitmix64(base + from + i), stream + from + i);
      convert(values.data(), DType::f64, data.data() + from * size_of(dtype_), dtype_, n);
    }
    return data;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = splitmix64(base + i);
    if (dtype_ == DType::boolean) {
      store_integer(data.data(), dtype_, i, static_cast<std::int64_t>(random & 1));
    } else {
      const auto any = static_cast<std::int64_t>(random), small = static_cast<std::int64_t>(random % 201) - 100;
      store_integer(data.data(), dtype_, i, range_ == Range::unit ? small : range_ == Range::term ? any : any | 1);
    }
  }
  return data;
}

void Comparison::add_integer(std::int64_t got, std::int64_t expected) {
  if (got == expected) return;
  ++mismatches;
  max_abs_error = std::max(max_abs_error, std::abs(static_cast<double>(got) - static_cast<double>(expected)));
}

void Comparison::add(double got, double expected, double tolerance) {
  const double error = std::abs(got - expected);
  if (!std::isfinite(expected)) ++not_finite;
  const bool same = got == expected || (std::isnan(got) && std::isnan(expected));
  if (same) return;
  if (!std::isfinite(expected) || !(error <= tolerance)) ++mismatches;  // a tolerance may be infinite, too
  if (std::isfinite(error)) max_abs_error = std::max(max_abs_error, error);
}

Reference::Reference(ReduceOp op, DType dtype, std::size_t count) : op_(op), dtype_(dtype), count_(count) {
  if (!is_float(dtype)) {
    integers_.resize(count);
    return;
  }
  values_.resize(count);
  if (op == ReduceOp::sum || op == ReduceOp::avg) {
    magnitudes_.resize(count);
    units_.resize(count);
  }
  if (op == ReduceOp::prod) {
    powers_.assign(count, true);
    least_.assign(count, 1);
    most_.assign(count, 1);
  }
}

void Reference::add(const void* data) {
  const bool first = contributions_++ == 0;
  if (!is_float(dtype_)) {
    for (std::size_t i = 0; i < count_; ++i) add_integer(i, load_integer(data, dtype_, i), first);
    return;
  }
  std::array<double, kChunk> x;
  for (std::size_t from = 0; from < count_; from += kChunk) {
    const std::size_t n = std::min(kChunk, count_ - from);
    convert(static_cast<const std::uint8_t*>(data) + from * size_of(dtype_), dtype_, x.data(), DType::f64, n);
    add_floats(from, x.data(), n, first);
  }
}

void Reference::add_integer(std::size_t i, std::int64_t x, bool first) {
  std::int64_t& value = integers_[i];
  switch (op_) {
    case ReduceOp::max:
      value = first ? x : std::max(value, x);
      return;
    case ReduceOp::min:
      value = first ? x : std::min(value, x);
      return;
    case ReduceOp::prod:
      value = first ? x : wrap(wrapping(value, x, true), dtype_);
      return;
    default:
      value = wrap(wrapping(value, x, false), dtype_);
  }
}

void Reference::add_floats(std::size_t from, const double* x, std::size_t n, bool first) {
  double* value = values_.data() + from;
  switch (op_) {
    case ReduceOp::max:
      for (std::size_t i = 0; i < n; ++i) value[i] = first ? x[i] : std::max(value[i], x[i]);
      return;
    case ReduceOp::min:
      for (std::size_t i = 0; i < n; ++i) value[i] = first ? x[i] : std::min(value[i], x[i]);
      return;
    case ReduceOp::prod:
      for (std::size_t i = 0; i < n; ++i) {
        value[i] = first ? x[i] : value[i] * x[i];
        if (lowest_bit(x[i]) != std::abs(x[i])) powers_[from + i] = false;
        least_[from + i] *= std::min(1.0, std::abs(x[i]));
        most_[from + i] *= std::max(1.0, std::abs(x[i]));
      }
      return;
    default:
      for (std::size_t i = 0; i < n; ++i) {
        value[i] += x[i];
        magnitudes_[from + i] += std::abs(x[i]);
        double& unit = units_[from + i];
        if (const double bit = lowest_bit(x[i]); bit != 0 && (unit == 0 || bit < unit)) unit = bit;
      }
  }
}

void Reference::check(const void* data, Comparison& into, std::vector<bool>* wrong) const {
  auto mark = [&, before = into.mismatches](std::size_t i) mutable {
    if (into.mismatches == before) return;
    before = into.mismatches;
    if (wrong != nullptr) (*wrong)[i] = true;
  };
  if (!is_float(dtype_)) {
    for (std::size_t i = 0; i < count_; ++i) {
      const std::int64_t expected = op_ == ReduceOp::avg ? integers_[i] / contributions_ : integers_[i];
      into.add_integer(load_integer(data, dtype_, i), expected);
      mark(i);
    }
    return;
  }
  const bool average = op_ == ReduceOp::avg;
  std::array<double, kChunk> got;
  for (std::size_t from = 0; from < count_; from += kChunk) {
    const std::size_t n = std::min(kChunk, count_ - from);
    convert(static_cast<const std::uint8_t*>(data) + from * size_of(dtype_), dtype_, got.data(), DType::f64, n);
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = average ? values_[from + i] / contributions_ : values_[from + i];
      if (got[i] == expected) continue;
      into.add(got[i], expected, tolerance(from + i));
      mark(from + i);
    }
  }
}

double Reference::tolerance(std::size_t i) const {
  // 2^-53: the host's own reduction in f64 errs as well, as much as a machine's in f64.
  const double u = unit_roundoff(dtype_) + 0x1p-53, n = contributions_, value = values_[i];
  const double half_subnormal = smallest_subnormal(dtype_) / 2;
  const bool sums_round = op_ == ReduceOp::sum || op_ == ReduceOp::avg
                              ? magnitudes_[i] > std::min(units_[i] / unit_roundoff(dtype_), largest(dtype_))
                              : false;
  // 1.01: terms of second order.
  switch (op_) {
    case ReduceOp::max:
    case ReduceOp::min:
      return 0;
    case ReduceOp::prod: {
      if (powers_[i] && least_[i] >= 2 * half_subnormal && most_[i] <= largest(dtype_)) return 0;
      const double underflow = least_[i] * u < half_subnormal ? 1.01 * (n - 1) * half_subnormal * most_[i] : 0;
      return 1.01 * n * u * std::abs(value) + underflow;
    }
    case ReduceOp::sum:
      return sums_round ? 1.01 * ((n - 1) * u * magnitudes_[i] + u * std::abs(value)) : 0;
    case ReduceOp::avg: {
      const double expected = std::abs(value / n);
      const double of_sum = sums_round ? (n - 1) * u * magnitudes_[i] / n + u * expected : 0;
      return 1.01 * (of_sum + std::max(u * expected, half_subnormal));
    }
  }
  return 0;
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      return x;
  }
}

}  // namespace kernbench
