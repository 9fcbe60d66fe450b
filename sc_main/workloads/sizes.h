#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tlm/kernel/dtype.h"

namespace kernbench {

/// "64", "4K", "1M", "2G", also "4KiB": powers of 1024, as in nccl-tests. Throws std::invalid_argument naming `option`.
std::uint64_t parse_size(const std::string& option, const std::string& text);

/// -b, -e, -f and -i of nccl-tests.
struct SizeRange {
  std::string least = "1M", most;  ///< most empty: as least
  std::string step;                ///< bytes added from size to size; empty: multiply by `factor`
  std::uint64_t factor = 2;
  bool by_default = false;  ///< `least` is nobody's
  /// All sizes, ascending. Throws std::invalid_argument on an empty or endless range.
  std::vector<std::uint64_t> sizes() const;
};

/// Our names and those of nccl-tests (half, float, double, bfloat16, int8, int32, int64).
std::optional<DType> dtype_named(const std::string& text);
/// The same; throws std::invalid_argument.
DType parse_dtype_option(const std::string& text);

/// Of -n and -w of collectives: each iteration is remembered until the row is made.
inline constexpr int kMostIterations = 1'000'000;

/// "1.5 MiB", "512 B".
std::string readable_bytes(std::uint64_t bytes);

}  // namespace kernbench
