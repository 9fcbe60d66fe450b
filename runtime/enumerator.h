#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace kernbench {

/// Throws std::invalid_argument, in the name of `what`, for a number that stands for none of an enumeration's.
template <class Enum>
void refuse_unknown(const std::string& what, const char* type, Enum value, Enum last) {
  if (value >= Enum{} && value <= last) return;
  throw std::invalid_argument(fmt::format("{}: {}({}) is none: they are numbered from 0 to {}", what, type,
                                          static_cast<int>(value), static_cast<int>(last)));
}

}  // namespace kernbench
