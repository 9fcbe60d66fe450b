#include "tlm/config/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tlm/config/nearest.h"

namespace kernbench {

namespace {

const char* kind_name(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return "empty";
    case ConfigNode::Kind::scalar:
      return "a single value";
    case ConfigNode::Kind::list:
      return "a list";
    case ConfigNode::Kind::map:
      return "a map";
  }
  return "?";
}

bool expect_scalar(const ConfigNode& node, const std::string& what, const std::string& hint, Problems& problems) {
  if (node.is_scalar()) return true;
  problems.add(node.where,
               node.is_null() ? fmt::format("{} has no value", what) : fmt::format("{} is {}", what, kind_name(node)),
               hint);
  return false;
}

bool all_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool in_range(std::uint64_t value, const IntegerRange& range) {
  return value >= range.low && value <= range.high && (!range.power_of_two || (value & (value - 1)) == 0);
}

}  // namespace

std::string describe(const IntegerRange& range) {
  std::string text = range.power_of_two ? "a power of two" : "an integer";
  if (range.high == ~std::uint64_t{0}) return text + fmt::format(" of at least {}", range.low);
  return text + fmt::format(" from {} to {}", range.low, range.high);
}

std::string describe(Dimension dimension, const IntegerRange& range) {
  std::string text = name_of(dimension);
  if (range.power_of_two) text += " that is a power of two,";
  if (range.low > 0 || range.high != ~std::uint64_t{0}) {
    text +=
        fmt::format(" from {} to {}", format_quantity(range.low, dimension), format_quantity(range.high, dimension));
  }
  const QuantityResult example = parse_quantity(example_of(dimension), dimension);
  return in_range(example.value, range) ? text + fmt::format(", such as '{}'", example_of(dimension)) : text;
}

std::optional<std::uint64_t> read_integer(const ConfigNode& node, const std::string& what, const IntegerRange& range,
                                          Problems& problems) {
  const std::string hint = "give " + describe(range);
  if (!expect_scalar(node, what, hint, problems)) return std::nullopt;
  const std::string& text = node.text;
  if (node.quoted && all_digits(text)) {
    problems.add(node.where, fmt::format("{} is the text \"{}\", not a number", what, text), "remove the quotes");
    return std::nullopt;
  }
  if (!all_digits(text)) {
    problems.add(node.where, fmt::format("{} is {}", what, quote(text)), hint);
    return std::nullopt;
  }
  if (text.size() > 1 && text.front() == '0') {
    problems.add(node.where, fmt::format("{} is {}, which some readers take as octal", what, quote(text)),
                 "write it without leading zeros");
    return std::nullopt;
  }
  constexpr std::size_t kMostDigits = 19;  // every such number fits in 64 bits
  const std::uint64_t value = text.size() > kMostDigits ? 0 : std::stoull(text);
  if (text.size() > kMostDigits || !in_range(value, range)) {
    problems.add(node.where, fmt::format("{} is {}", what, quote(text)), hint);
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> read_quantity(const ConfigNode& node, const std::string& what, Dimension dimension,
                                           const IntegerRange& range, Problems& problems) {
  const std::string hint = "give " + describe(dimension, range);
  if (!expect_scalar(node, what, hint, problems)) return std::nullopt;
  const QuantityResult result = parse_quantity(node.text, dimension);
  if (!result.ok) {
    problems.add(node.where, fmt::format("{} is {}{}", what, quote(node.text), result.problem),
                 result.hint.empty() ? hint : result.hint);
    return std::nullopt;
  }
  if (!in_range(result.value, range)) {
    problems.add(node.where, fmt::format("{} is {}", what, quote(node.text)), hint);
    return std::nullopt;
  }
  return result.value;
}

std::optional<Ratio> read_ratio(const ConfigNode& node, const std::string& what, Problems& problems) {
  const std::string hint = "give a ratio above 0 and at most 1, such as '236/256' or '0.98'";
  if (!expect_scalar(node, what, hint, problems)) return std::nullopt;
  const std::string& text = node.text;
  Ratio ratio{0, 1};
  bool ok = false;
  if (const auto slash = text.find('/'); slash != std::string::npos) {
    const std::string parts = text.substr(0, slash), whole = text.substr(slash + 1);
    ok = all_digits(parts) && all_digits(whole) && parts.size() <= kRatioDigits && whole.size() <= kRatioDigits;
    if (ok) ratio = {std::stoull(parts), std::stoull(whole)};
  } else {
    const auto dot = text.find('.');
    const std::string before = text.substr(0, dot);
    const std::string after = dot == std::string::npos ? "" : text.substr(dot + 1);
    ok = all_digits(before) && before.size() == 1 && (dot == std::string::npos || all_digits(after)) &&
         after.size() <= kRatioDigits;
    if (ok) {
      for (std::size_t i = 0; i < after.size(); ++i) ratio.whole *= 10;
      ratio.parts = std::stoull(before) * ratio.whole + (after.empty() ? 0 : std::stoull(after));
    }
  }
  if (!ok || ratio.parts == 0 || ratio.parts > ratio.whole) {
    problems.add(node.where, fmt::format("{} is {}", what, quote(text)), hint);
    return std::nullopt;
  }
  const std::uint64_t divisor = std::gcd(ratio.parts, ratio.whole);
  return Ratio{ratio.parts / divisor, ratio.whole / divisor};
}

std::optional<bool> read_bool(const ConfigNode& node, const std::string& what, Problems& problems) {
  const std::string hint = "give true or false";
  if (!expect_scalar(node, what, hint, problems)) return std::nullopt;
  if (!node.quoted && node.text == "true") return true;
  if (!node.quoted && node.text == "false") return false;
  problems.add(node.where, fmt::format("{} is {}", what, quote(node.text)), hint);
  return std::nullopt;
}

std::optional<std::size_t> read_name(const ConfigNode& node, const std::string& what,
                                     const std::vector<std::string>& names, Problems& problems) {
  if (!expect_scalar(node, what, "give one of: " + join(names), problems)) return std::nullopt;
  const auto found = std::find(names.begin(), names.end(), node.text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::string near = nearest(node.text, names);
  problems.add(
      node.where, fmt::format("{} is {}", what, quote(node.text)),
      (near.empty() ? std::string() : fmt::format("did you mean '{}'? ", near)) + "valid values: " + join(names));
  return std::nullopt;
}

std::optional<std::string> read_text(const ConfigNode& node, const std::string& what, Problems& problems) {
  if (!expect_scalar(node, what, "give a text", problems)) return std::nullopt;
  return node.text;
}

bool expect_map(const ConfigNode& node, const std::string& what, const std::vector<std::string>& keys,
                Problems& problems) {
  if (node.is_map()) return true;
  problems.add(node.where,
               node.is_null()     ? fmt::format("{} has no value", what)
               : node.is_scalar() ? fmt::format("{} is {}, not a map", what, quote(node.text))
                                  : fmt::format("{} is a list, not a map", what),
               keys.empty() ? "give a map" : "give a map of these keys: " + join(keys));
  return false;
}

bool expect_list(const ConfigNode& node, const std::string& what, const std::string& of, Problems& problems) {
  if (node.is_list()) return true;
  problems.add(node.where,
               node.is_null()     ? fmt::format("{} has no value", what)
               : node.is_scalar() ? fmt::format("{} is {}, not a list", what, quote(node.text))
                                  : fmt::format("{} is a map, not a list", what),
               "give a list of " + of);
  return false;
}

void check_keys(const ConfigNode& map, const std::string& what, const std::vector<std::string>& valid,
                Problems& problems) {
  for (const ConfigNode::Entry& entry : map.entries) {
    if (std::find(valid.begin(), valid.end(), entry.key) != valid.end()) continue;
    problems.add(entry.key_where,
                 what.empty() ? fmt::format("unknown key {}", quote(entry.key))
                              : fmt::format("unknown key {} in '{}'", quote(entry.key), what),
                 suggest(entry.key, valid));
  }
}

std::string dotted(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

}  // namespace kernbench
