#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kernbench {

/// Lists and maps within each other, in any YAML or JSON that is read: readers, copies and destructors go down by
/// recursion.   assumed: far more than what people and programs write, far less than a stack takes
inline constexpr std::size_t kDeepestValues = 100;

/// A text is no JSON, or nested too deeply. what() goes on from "... ": "is no JSON (byte 17)".
class JsonError : public std::runtime_error {
 public:
  JsonError(const std::string& text, std::size_t byte, bool too_deep = false)
      : std::runtime_error(text), byte(byte), too_deep(too_deep) {}
  const std::size_t byte;  ///< where, counted from 1; 0: not known
  const bool too_deep;
};

/// For readers with a parser of their own. Throws JsonError if the text is nested too deeply.
void refuse_deep_json(std::string_view text);

/// Throws JsonError.
nlohmann::ordered_json parse_json(const std::string& text);

/// As files get it: what is no UTF-8, as a file's name may be, becomes U+FFFD. `indent` below 0: one line.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

bool is_utf8(std::string_view text);

/// For people's eyes: what a terminal would obey, and what is no UTF-8, as "\x1b"; lines stay lines.
std::string printable(std::string_view text);
/// As text or a value in quotes of XML, such as an SVG picture; what XML does not take, even escaped, as "\x1b".
std::string xml_text(std::string_view text);

}  // namespace kernbench
