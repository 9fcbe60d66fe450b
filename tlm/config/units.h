#pragma once
#include <cstdint>
#include <string>

namespace kernbench {

/// What a quantity measures. Base units: bytes, bytes per second, picoseconds, hertz, transfers per second, attojoules,
/// microwatts.
enum class Dimension : std::uint8_t { bytes, bandwidth, time, frequency, transfers, energy, power };

/// Outcome of reading a quantity: a value in the base unit, or why there is none.
struct QuantityResult {
  bool ok = false;
  std::uint64_t value = 0;
  std::string problem;  ///< continues "x is '...'": ", which has no unit"
  std::string hint;     ///< may be empty: the caller says what is allowed
};

/// "a size", "a bandwidth", "a time", "a clock rate", "a transfer rate", "an energy", "a power".
const char* name_of(Dimension dimension);
/// A valid quantity to show in a hint: "16 MiB".
const char* example_of(Dimension dimension);
/// "B", "B/s", "ps", "Hz", "T/s", "aJ", "uW".
const char* base_unit_of(Dimension dimension);

/// Reads "1.2 TB/s", "35ns", "64KiB", "16 GT/s" exactly. GB = 10^9 B, GiB = 2^30 B; B is byte, b is bit ("400 Gb/s").
/// The value must be a whole number of base units, below 2^64.
QuantityResult parse_quantity(const std::string& text, Dimension dimension);

/// The shortest exact text that parse_quantity reads back: 16777216 bytes are "16 MiB", 17500 ps are "17.5 ns".
std::string format_quantity(std::uint64_t value, Dimension dimension);

/// Rounded to six digits: "17.5 ns".
std::string format_time(std::uint64_t ps);
/// "128 GB/s".
std::string format_rate(std::uint64_t bytes_per_second);

/// "1 SIP", "2 SIPs".
std::string counted(std::int64_t number, const std::string& thing);

}  // namespace kernbench
