#include "sc_main/workloads/numerics.h"

#include <algorithm>
#include <cmath>

namespace kernbench {
namespace {

/// splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E37'79B9'7F4A'7C15;
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EB;
  return x ^ (x >> 31);
}

std::int64_t wrap(std::int64_t value, DType dtype) {
  std::int64_t wrapped = 0;
  store_integer(&wrapped, dtype, 0, value);
  return load_integer(&wrapped, dtype, 0);
}

std::int64_t wrapping(std::int64_t a, std::int64_t b, bool product) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return static_cast<std::int64_t>(product ? x * y : x + y);
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
    case DType::f8e4m3:
      return 0x1p-4;
    case DType::f8e5m2:
      return 0x1p-3;
    default:
      return 0;
  }
}

double smallest_subnormal(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-1074;
    case DType::f32:
      return 0x1p-149;
    case DType::f16:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-133;
    case DType::f8e4m3:
      return 0x1p-9;
    case DType::f8e5m2:
      return 0x1p-16;
    default:
      return 0;
  }
}

double gemm_tolerance(DType dtype, std::int64_t k, double sum, double magnitude) {
  const DType sum_type = dtype == DType::f64 ? DType::f64 : DType::f32;
  const double terms = static_cast<double>(k);
  // Twice 2^-53: the host's own sum in f64 errs as well. 1.01: terms of second order.
  const double sum_error =
      1.01 * terms * (unit_roundoff(sum_type) + 0x1p-53) * magnitude + terms * smallest_subnormal(sum_type) / 2;
  const double rounding = std::max(unit_roundoff(dtype) * (std::abs(sum) + sum_error), smallest_subnormal(dtype) / 2);
  return sum_error + rounding;
}

std::vector<std::uint8_t> Pattern::bytes(std::uint64_t stream, std::size_t count) const {
  std::vector<std::uint8_t> data(count * size_of(dtype_));
  const std::uint64_t base = mix(mix(seed_) + stream);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = mix(base + i);
    if (dtype_ == DType::boolean) {
      store_integer(data.data(), dtype_, i, static_cast<std::int64_t>(random & 1));
    } else if (is_float(dtype_)) {
      const double unit = static_cast<double>(random >> 11) * 0x1p-53;  // [0, 1)
      store_element(data.data(), dtype_, i, range_ == Range::unit ? 2 * unit - 1 : 0.75 + unit / 2);
    } else {
      const auto value = static_cast<std::int64_t>(random % 201) - 100;
      store_integer(data.data(), dtype_, i, range_ == Range::unit ? value : value < 0 ? -1 : 1);
    }
  }
  return data;
}

void Comparison::add(double got, double expected, double tolerance) {
  const double error = std::abs(got - expected);
  const bool same = got == expected || (std::isnan(got) && std::isnan(expected));
  if (same) return;
  if (!std::isfinite(expected) || !(error <= tolerance)) ++mismatches;  // a tolerance may be infinite, too
  if (std::isfinite(error)) max_abs_error = std::max(max_abs_error, error);
}

void Reference::add(const void* data, std::size_t element) {
  const bool first = contributions_++ == 0;
  if (!is_float(dtype_)) {
    const std::int64_t x = load_integer(data, dtype_, element);
    switch (op_) {
      case ReduceOp::max:
        integer_ = first ? x : std::max(integer_, x);
        break;
      case ReduceOp::min:
        integer_ = first ? x : std::min(integer_, x);
        break;
      case ReduceOp::prod:
        integer_ = first ? x : wrap(wrapping(integer_, x, true), dtype_);
        break;
      default:
        integer_ = wrap(wrapping(integer_, x, false), dtype_);
    }
    return;
  }
  const double x = load_element(data, dtype_, element);
  magnitude_ += std::abs(x);
  least_ *= std::min(1.0, std::abs(x));
  most_ *= std::max(1.0, std::abs(x));
  switch (op_) {
    case ReduceOp::max:
      value_ = first ? x : std::max(value_, x);
      break;
    case ReduceOp::min:
      value_ = first ? x : std::min(value_, x);
      break;
    case ReduceOp::prod:
      value_ = first ? x : value_ * x;
      break;
    default:
      value_ += x;
  }
}

void Reference::check(const void* data, std::size_t element, Comparison& into) const {
  if (!is_float(dtype_)) {
    const std::int64_t expected = op_ == ReduceOp::avg ? integer_ / contributions_ : integer_;
    into.add(static_cast<double>(load_integer(data, dtype_, element)), static_cast<double>(expected), 0);
    return;
  }
  const double u = unit_roundoff(dtype_), n = contributions_;
  const double half_subnormal = smallest_subnormal(dtype_) / 2;
  double expected = value_, tolerance = 0;
  switch (op_) {
    case ReduceOp::max:
    case ReduceOp::min:
      break;
    case ReduceOp::prod:
      tolerance = 1.01 * n * u * std::abs(value_);  // 1.01: terms of second order
      if (least_ * u < half_subnormal) tolerance += 1.01 * (n - 1) * half_subnormal * most_;
      break;
    case ReduceOp::sum:
      tolerance = 1.01 * ((n - 1) * u * magnitude_ + u * std::abs(value_));
      break;
    case ReduceOp::avg:
      expected = value_ / n;
      tolerance = 1.01 * ((n - 1) * u * magnitude_ / n + u * std::abs(expected) +
                          std::max(u * std::abs(expected), half_subnormal));
      break;
  }
  into.add(load_element(data, dtype_, element), expected, tolerance);
}

}  // namespace kernbench
