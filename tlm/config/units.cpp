#include "tlm/config/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "tlm/config/nearest.h"

namespace kernbench {

namespace {

/// One unit: `scale` base units, divided by `parts` (8 for bits).
struct Unit {
  const char* name;
  Dimension dimension;
  std::uint64_t scale;
  unsigned parts = 1;
  bool printed = true;  ///< format_quantity may use it
};

constexpr std::uint64_t kKilo = 1'000, kMega = 1'000'000, kGiga = 1'000'000'000, kTera = 1'000'000'000'000;

constexpr std::array kUnits = {
    Unit{"B", Dimension::bytes, 1},
    Unit{"kB", Dimension::bytes, kKilo},
    Unit{"KB", Dimension::bytes, kKilo, 1, false},
    Unit{"MB", Dimension::bytes, kMega},
    Unit{"GB", Dimension::bytes, kGiga},
    Unit{"TB", Dimension::bytes, kTera},
    Unit{"KiB", Dimension::bytes, std::uint64_t{1} << 10},
    Unit{"MiB", Dimension::bytes, std::uint64_t{1} << 20},
    Unit{"GiB", Dimension::bytes, std::uint64_t{1} << 30},
    Unit{"TiB", Dimension::bytes, std::uint64_t{1} << 40},
    Unit{"B/s", Dimension::bandwidth, 1},
    Unit{"kB/s", Dimension::bandwidth, kKilo},
    Unit{"KB/s", Dimension::bandwidth, kKilo, 1, false},
    Unit{"MB/s", Dimension::bandwidth, kMega},
    Unit{"GB/s", Dimension::bandwidth, kGiga},
    Unit{"TB/s", Dimension::bandwidth, kTera},
    Unit{"KiB/s", Dimension::bandwidth, std::uint64_t{1} << 10, 1, false},
    Unit{"MiB/s", Dimension::bandwidth, std::uint64_t{1} << 20, 1, false},
    Unit{"GiB/s", Dimension::bandwidth, std::uint64_t{1} << 30, 1, false},
    Unit{"TiB/s", Dimension::bandwidth, std::uint64_t{1} << 40, 1, false},
    Unit{"Mb/s", Dimension::bandwidth, kMega, 8, false},
    Unit{"Gb/s", Dimension::bandwidth, kGiga, 8, false},
    Unit{"Tb/s", Dimension::bandwidth, kTera, 8, false},
    Unit{"ps", Dimension::time, 1},
    Unit{"ns", Dimension::time, kKilo},
    Unit{"us", Dimension::time, kMega},
    Unit{"\xC2\xB5s", Dimension::time, kMega, 1, false},  // micro sign
    Unit{"\xCE\xBCs", Dimension::time, kMega, 1, false},  // Greek mu
    Unit{"ms", Dimension::time, kGiga},
    Unit{"s", Dimension::time, kTera},
    Unit{"Hz", Dimension::frequency, 1},
    Unit{"kHz", Dimension::frequency, kKilo},
    Unit{"MHz", Dimension::frequency, kMega},
    Unit{"GHz", Dimension::frequency, kGiga},
    Unit{"T/s", Dimension::transfers, 1},
    Unit{"kT/s", Dimension::transfers, kKilo},
    Unit{"MT/s", Dimension::transfers, kMega},
    Unit{"GT/s", Dimension::transfers, kGiga},
    Unit{"aJ", Dimension::energy, 1},
    Unit{"fJ", Dimension::energy, kKilo},
    Unit{"pJ", Dimension::energy, kMega},
    Unit{"nJ", Dimension::energy, kGiga},
    Unit{"uW", Dimension::power, 1},
    Unit{"mW", Dimension::power, kKilo},
    Unit{"W", Dimension::power, kMega},
};

const Unit* find_unit(const std::string& name) {
  const auto found = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& unit) { return name == unit.name; });
  return found == kUnits.end() ? nullptr : &*found;
}

std::vector<std::string> units_of(Dimension dimension) {
  std::vector<std::string> names;
  for (const Unit& unit : kUnits) {
    if (unit.dimension == dimension && unit.printed) names.emplace_back(unit.name);
  }
  return names;
}

/// What texts call a dimension.
struct Words {
  const char *name, *base, *example;
};

Words words_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return {"a size", "bytes", "16 MiB"};
    case Dimension::bandwidth:
      return {"a bandwidth", "bytes per second", "128 GB/s"};
    case Dimension::time:
      return {"a time", "picoseconds", "2 ns"};
    case Dimension::frequency:
      return {"a clock rate", "hertz", "1.6 GHz"};
    case Dimension::transfers:
      return {"a transfer rate", "transfers per second", "16 GT/s"};
    case Dimension::energy:
      return {"an energy", "attojoules", "0.25 pJ"};
    case Dimension::power:
      return {"a power", "microwatts", "20 mW"};
  }
  return {"?", "?", "?"};
}

/// A decimal number: digits x 10^exponent.
struct Decimal {
  unsigned __int128 digits = 0;
  int exponent = 0;
  bool too_long = false;
};

/// Takes "12", "1.25" or "1.25e3" from the front of `text`. Nothing: no number is there.
std::optional<Decimal> take_decimal(std::string& text) {
  constexpr unsigned __int128 kMost = static_cast<unsigned __int128>(1) << 100;
  Decimal number;
  std::size_t i = 0;
  bool any = false, fraction = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !fraction) {
      fraction = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      number.digits = number.digits * 10 + static_cast<unsigned>(c - '0');
      number.exponent -= fraction ? 1 : 0;
      if (number.digits > kMost) number.too_long = true;
      if (number.too_long) number.digits = 1;
    } else {
      break;
    }
  }
  if (!any) return std::nullopt;
  if (i + 1 < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    const bool negative = text[j] == '-';
    if (text[j] == '-' || text[j] == '+') ++j;
    if (j < text.size() && std::isdigit(static_cast<unsigned char>(text[j]))) {
      int exponent = 0;
      for (; j < text.size() && std::isdigit(static_cast<unsigned char>(text[j])); ++j) {
        exponent = std::min(exponent * 10 + (text[j] - '0'), 1000);
      }
      number.exponent += negative ? -exponent : exponent;
      i = j;
    }
  }
  text.erase(0, i);
  return number;
}

QuantityResult fail(std::string problem, std::string hint = {}) {
  return {false, 0, std::move(problem), std::move(hint)};
}

/// number x unit in base units, if it is whole and fits.
QuantityResult scale(const Decimal& number, const Unit& unit) {
  constexpr unsigned __int128 kMost = ~std::uint64_t{0};
  if (number.digits == 0 && !number.too_long) return {true, 0, {}, {}};
  unsigned __int128 value = number.digits;
  unsigned __int128 divisor = unit.parts;
  int exponent = number.exponent;
  // Trailing zeros of the digits first, so that 1.000000000000000000 does not overflow.
  while (exponent < 0 && value % 10 == 0) value /= 10, ++exponent;
  if (number.too_long || exponent > 19) return fail(", which is too large");
  if (value > kMost && exponent >= 0) return fail(", which is too large");
  if (exponent < -18 || value > kMost) return fail(", which has too many digits");
  for (; exponent < 0; ++exponent) divisor *= 10;
  value *= unit.scale;
  for (; exponent > 0; --exponent) {
    value *= 10;
    if (value > kMost * 8) return fail(", which is too large");
  }
  if (value % divisor != 0) return fail(fmt::format(", which is no whole number of {}", words_of(unit.dimension).base));
  value /= divisor;
  if (value > kMost) return fail(", which is too large");
  return {true, static_cast<std::uint64_t>(value), {}, {}};
}

}  // namespace

const char* name_of(Dimension dimension) { return words_of(dimension).name; }
const char* example_of(Dimension dimension) { return words_of(dimension).example; }

/// The first unit of a dimension is its base unit.
const char* base_unit_of(Dimension dimension) {
  return std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& unit) { return unit.dimension == dimension; })
      ->name;
}

QuantityResult parse_quantity(const std::string& text, Dimension dimension) {
  std::string rest = text;
  if (!rest.empty() && rest.front() == '-') return fail(", which is negative");
  const std::optional<Decimal> number = take_decimal(rest);
  if (!number) return fail("");
  rest.erase(0, rest.find_first_not_of(' '));
  if (rest.empty()) return fail(", which has no unit");
  const Unit* unit = find_unit(rest);
  if (unit == nullptr) {
    return fail(fmt::format(", whose unit {} is unknown", quote(rest)),
                suggest(rest, units_of(dimension), fmt::format("units of {}", name_of(dimension))));
  }
  if (unit->dimension != dimension) {
    return fail(fmt::format(", which is {}, not {}", name_of(unit->dimension), name_of(dimension)));
  }
  return scale(*number, *unit);
}

std::string format_quantity(std::uint64_t value, Dimension dimension) {
  std::string best;
  for (const Unit& unit : kUnits) {
    if (unit.dimension != dimension || !unit.printed || (value < unit.scale && unit.scale != 1)) continue;
    const bool binary = (unit.scale & (unit.scale - 1)) == 0 && unit.scale != 1;
    if (binary && value % unit.scale != 0) continue;
    std::string number = fmt::format("{}", value / unit.scale);
    if (const std::uint64_t fraction = value % unit.scale; fraction != 0) {
      std::string digits = fmt::format("{}", unit.scale + fraction).substr(1);
      digits.erase(digits.find_last_not_of('0') + 1);
      number += "." + digits;
    }
    const std::string text = number + " " + unit.name;
    // Ties go to the larger unit: 1 GHz before 1 MHz never ties, 17.5 ns is shorter than 17500 ps.
    if (best.empty() || text.size() <= best.size()) best = text;
  }
  return best;
}

std::string format_time(std::uint64_t ps) { return fmt::format("{:g} ns", static_cast<double>(ps) / 1000); }

std::string format_rate(std::uint64_t bytes_per_second) {
  return fmt::format("{:g} GB/s", static_cast<double>(bytes_per_second) / 1e9);
}

std::string counted(std::int64_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

}  // namespace kernbench
