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

/// YAML takes more than JSON: commas at the end, comments, words without quotes. What is said to be JSON must be it:
/// throws ConfigError at the place in `file` with this hint. What is nested too deeply the reader of YAML refuses.
void check_json(const std::string& text, const std::string& file, const std::string& hint);

/// As files get it: what is no UTF-8, as a file's name may be, becomes U+FFFD. `indent` below 0: one line.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

bool is_utf8(std::string_view text);

/// For people's eyes: what a terminal would obey, and what is no UTF-8, as "\x1b"; lines stay lines.
std::string printable(std::string_view text);
/// As text or a value in quotes of XML, such as an SVG picture; what XML does not take, even escaped, as "\x1b".
std::string xml_text(std::string_view text);

/// Bytes of the character that `text` begins with; 0: what is there is no UTF-8. REQUIRES: !text.empty().
/// Source: RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool wrong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ||
                     (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90);
  return wrong ? 0 : length;
}

/// For documents: what is no UTF-8, and control characters that XML and YAML do not take, as "\xff".
inline std::string escaped_bytes(std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string result;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    if (length == 0 || (first < 0x20 && first != '\n' && first != '\t')) {
      result += {'\\', 'x', kDigits[first >> 4], kDigits[first & 15]};
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace kernbench
