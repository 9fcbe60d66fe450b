#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace kernbench::report {

/// As text of a script element: no '<' in it, so that nothing ends the element early.
inline std::string script_text(const nlohmann::ordered_json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace kernbench::report
