#pragma once
#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tlm/config/json_text.h"

namespace kernbench::report {

/// A page of its template. A name may hold bytes that are no UTF-8: they stand there as "\xff".
inline std::string render_template(const char* page_template, const kainjow::mustache::data& data) {
  kainjow::mustache::mustache page(page_template);
  page.set_custom_escape([](const std::string& text) { return xml_text(text); });
  return page.render(data);
}

/// As text of a script element: no '<' in it, so that nothing ends the element early.
inline std::string script_text(const nlohmann::ordered_json& json) {
  std::string out;
  for (const char c : json_text(json)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace kernbench::report
