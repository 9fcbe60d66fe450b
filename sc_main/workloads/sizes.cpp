#include "sc_main/workloads/sizes.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "tlm/config/enum_names.h"
#include "tlm/config/refusals.h"

namespace kernbench {
namespace {

constexpr std::size_t kMostSizes = 10'000;
constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << 62) - 1;  ///< what a shape may have of the smallest elements

}  // namespace

std::uint64_t parse_size(const std::string& option, const std::string& text) {
  const auto wrong = [&] {
    return std::invalid_argument(
        fmt::format("{} is {}; give bytes, such as 512, 4K, 1M or 2G (powers of 1024)", option, quote(text)));
  };
  const auto too_large = [&] {
    return std::invalid_argument(
        fmt::format("{} is {}; give at most {} bytes, or {}T", option, quote(text), kMostBytes, kMostBytes >> 40));
  };
  const std::size_t digits = text.find_first_not_of("0123456789");
  const std::string number = text.substr(0, digits), unit = digits == std::string::npos ? "" : text.substr(digits);
  if (number.empty()) throw wrong();
  unsigned shift = 0;
  if (!unit.empty() && unit != "B") {
    const std::size_t power = std::string("KMGT").find(static_cast<char>(std::toupper(unit[0])));
    if (power == std::string::npos || (unit.size() > 1 && unit.substr(1) != "iB" && unit.substr(1) != "B"))
      throw wrong();
    shift = 10 * (static_cast<unsigned>(power) + 1);
  }
  std::uint64_t value = 0;
  const std::from_chars_result read = std::from_chars(number.data(), number.data() + number.size(), value);
  if (read.ec != std::errc() || value > kMostBytes >> shift) throw too_large();
  return value << shift;
}

std::vector<std::uint64_t> SizeRange::sizes() const {
  Refusals refusals;
  const auto parsed = [&](const char* option, const std::string& text) {
    std::optional<std::uint64_t> size;
    refusals.from([&] { size = parse_size(option, text); });
    return size;
  };
  const auto parsed_if_given = [&](const char* option, const std::string& text) {
    return text.empty() ? std::nullopt : parsed(option, text);
  };
  const auto begin = parsed("-b", least), end = parsed_if_given("-e", most), by = parsed_if_given("-i", step);
  if (begin && *begin == 0) refusals.add("-b is 0; give at least one byte");
  if (begin && end && *end < *begin) {
    refusals.add(by_default
                     ? fmt::format("-e {} is below {}, where sizes begin without -b; give -b as well", most, least)
                     : fmt::format("-e {} is below -b {}", most, least));
  }
  if (by && *by == 0) refusals.add("-i is 0; give the bytes to add from size to size");
  if (step.empty() && factor < 2) refusals.add(fmt::format("-f is {}; give a factor of at least 2", factor));
  refusals.throw_if_any();
  const std::uint64_t first = *begin, last = end.value_or(first), added = by.value_or(0);
  std::vector<std::uint64_t> all;
  for (std::uint64_t size = first; size <= last;) {
    all.push_back(size);
    if (all.size() > kMostSizes)
      throw std::invalid_argument(fmt::format("-b, -e and -i give more than {} sizes", kMostSizes));
    const std::uint64_t next = added ? size + added : size > last / factor ? last + 1 : size * factor;
    if (next <= size) break;
    size = next;
  }
  return all;
}

std::optional<DType> dtype_named(const std::string& text) {
  static const std::vector<std::pair<std::string, DType>> kNcclNames = {
      {"half", DType::f16}, {"float", DType::f32}, {"double", DType::f64}, {"bfloat16", DType::bf16},
      {"int8", DType::i8},  {"int32", DType::i32}, {"int64", DType::i64}};
  for (const auto& [name, dtype] : kNcclNames) {
    if (name == text) return dtype;
  }
  return parse_dtype(text);
}

DType parse_dtype_option(const std::string& text) {
  const auto dtype = dtype_named(text);
  return dtype ? *dtype : parse_name<DType>("--dtype", text, kDTypes);
}

std::string readable_bytes(std::uint64_t bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  for (; unit < 4 && value >= 1024; ++unit) value /= 1024;
  return fmt::format("{:g} {}", value, kUnits[unit]);
}

}  // namespace kernbench
