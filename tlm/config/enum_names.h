#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "tlm/config/nearest.h"

namespace kernbench {

/// to_string() of the values 0 to `count` - 1 of an enumeration.
template <class Enum>
std::vector<std::string> names_of(int count) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) names.emplace_back(to_string(static_cast<Enum>(i)));
  return names;
}

/// Which of `values` has that name. Throws std::invalid_argument with the nearest; `what` stands for the value in it.
template <class Enum>
Enum parse_name(const std::string& what, const std::string& text, const std::vector<Enum>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) names.emplace_back(to_string(value));
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return values[static_cast<std::size_t>(found - names.begin())];
  throw std::invalid_argument(fmt::format("{} is {}; {}", what, quote(text), suggest(text, names, "valid values")));
}

/// Of the values 0 to `count` - 1.
template <class Enum>
Enum parse_name(const std::string& what, const std::string& text, int count) {
  std::vector<Enum> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<Enum>(i));
  return parse_name(what, text, values);
}

}  // namespace kernbench
