#include "sc_main/explore/sweep/quantity_kind.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "sc_main/explore/sweep/expression.h"
#include "tlm/config/units.h"

namespace kernbench::sweep {
namespace {
using topology::FieldKind;

std::optional<double> plain_number(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// "64K", "4KiB", as the options of the workloads read them.
std::optional<double> size_number(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string::npos || digits == 0) return std::nullopt;
  const std::string unit = text.substr(digits);
  const std::size_t power = std::string("KMGT").find(unit[0]);
  if (power == std::string::npos || (unit.size() > 1 && unit.substr(1) != "iB" && unit.substr(1) != "B"))
    return std::nullopt;
  const auto number = plain_number(text.substr(0, digits));
  if (!number) return std::nullopt;
  return std::ldexp(*number, 10 * (static_cast<int>(power) + 1));
}

/// The nearest ratio that read_ratio() takes, as a decimal.
std::string ratio_text(double number) {
  std::string text = fmt::format("{:.{}f}", number, kRatioDigits);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::optional<std::uint64_t> whole_number(double number) {
  const double nearest = std::round(number);
  const double slack = 1e-9 * std::max(1.0, std::abs(nearest));
  if (nearest < 0 || nearest >= 1.8e19 || std::abs(number - nearest) > slack) return std::nullopt;
  return static_cast<std::uint64_t>(nearest);
}
}  // namespace

bool ValueKind::whole() const {
  if (field == nullptr) return !real;
  return field->kind != FieldKind::ratio;
}

bool ValueKind::numeric() const {
  if (field == nullptr) return !flag;
  return field->kind == FieldKind::integer || field->kind == FieldKind::quantity || field->kind == FieldKind::ratio;
}

std::string ValueKind::unit() const {
  return field != nullptr && field->kind == FieldKind::quantity ? base_unit_of(field->dimension) : "";
}

std::optional<std::string> ValueKind::text_of(double number) const {
  if (field == nullptr) {
    const auto whole = whole_number(number);
    if (flag) return !whole || *whole > 1 ? std::nullopt : std::optional<std::string>(*whole == 1 ? "true" : "false");
    if (whole) return fmt::format("{}", *whole);
    if (!real) return std::nullopt;
    return fmt::format("{:.12g}", number);
  }
  if (field->kind == FieldKind::ratio) return ratio_text(number);
  if (field->kind == FieldKind::enumeration) {
    for (const std::string& name : field->names) {
      if (number_of_text(name) == number) return name;
    }
    return std::nullopt;
  }
  const auto whole = whole_number(number);
  if (!whole) return std::nullopt;
  switch (field->kind) {
    case FieldKind::integer:
      return fmt::format("{}", *whole);
    case FieldKind::quantity:
      return format_quantity(*whole, field->dimension);
    case FieldKind::boolean:
      return *whole > 1 ? std::nullopt : std::optional<std::string>(*whole == 1 ? "true" : "false");
    default:
      return std::nullopt;
  }
}

std::optional<double> ValueKind::number_of(const topology::FieldValue& value) {
  if (const auto* whole = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* ratio = std::get_if<Ratio>(&value))
    return static_cast<double>(ratio->parts) / static_cast<double>(ratio->whole);
  return std::nullopt;
}

std::optional<double> ValueKind::number_of(const std::string& text) const {
  if (field == nullptr) {
    if (flag) return std::nullopt;
    if (const auto number = plain_number(text)) return number;
    return size_number(text);
  }
  if (!numeric()) return std::nullopt;
  topology::Field of_any_size;  // a step may be smaller than every value
  of_any_size.kind = field->kind;
  of_any_size.dimension = field->dimension;
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar;
  node.text = text;
  Problems ignored;
  return number_of(topology::read_value(of_any_size, node, {}, ignored));
}

std::string flow_text(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return "null";
    case ConfigNode::Kind::scalar: {
      if (!node.quoted) return node.text;
      std::string text = "'";
      for (const char c : node.text) text += c == '\'' ? std::string("''") : std::string(1, c);
      return text + "'";
    }
    case ConfigNode::Kind::list: {
      std::string text = "[";
      for (const ConfigNode& item : node.items) text += (text.size() > 1 ? ", " : "") + flow_text(item);
      return text + "]";
    }
    case ConfigNode::Kind::map: {
      std::string text = "{";
      for (const ConfigNode::Entry& entry : node.entries)
        text += (text.size() > 1 ? ", " : "") + entry.key + ": " + flow_text(entry.value);
      return text + "}";
    }
  }
  return {};
}

}  // namespace kernbench::sweep
