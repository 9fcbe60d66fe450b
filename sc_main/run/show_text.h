#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>

#include "tlm/config/json_text.h"

namespace kernbench {

/// Writes to standard output, escaped as printable() does: what files and their names bring along moves no cursor.
inline void show_text(const std::string& text) { fmt::print("{}", printable(text)); }
/// The same of a format.
template <class... Args>
void show_format(fmt::format_string<Args...> format, Args&&... args) {
  show_text(fmt::format(format, std::forward<Args>(args)...));
}

/// Documents, for programs and browsers, go out as they are.
inline void show_document(const std::string& text) { fmt::print("{}", text); }

}  // namespace kernbench
