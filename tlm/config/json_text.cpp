#include "tlm/config/json_text.h"

#include <fmt/format.h>

namespace kernbench {

void refuse_deep_json(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestValues)
        throw JsonError(fmt::format("is nested deeper than {} levels", kDeepestValues), i + 1, true);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

nlohmann::ordered_json parse_json(const std::string& text) {
  refuse_deep_json(text);  // before the parser, which would build all of it
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::ordered_json::parse_error& error) {
    throw JsonError(fmt::format("is no JSON (byte {})", error.byte), error.byte);
  } catch (const nlohmann::ordered_json::exception&) {  // a number that no double holds
    throw JsonError("is no JSON that can be read: a number is too large", 0);
  }
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

namespace {
/// Marks that turn the direction in which a terminal writes, and its other ends of lines: a text would look like
/// another one. U+200E, 200F, 2028 to 202E, 2066 to 2069. `text` begins with a character of three bytes.
bool turns(std::string_view text) {
  const auto second = static_cast<unsigned char>(text[1]), third = static_cast<unsigned char>(text[2]);
  if (static_cast<unsigned char>(text[0]) != 0xE2) return false;
  if (second == 0x80) return third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE);
  return second == 0x81 && third >= 0xA6 && third <= 0xA9;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    // 0x80 to 0x9f are commands of a terminal, too.
    const bool command = length == 1   ? (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F
                         : length == 3 ? turns(text)
                                       : first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    const std::size_t taken = length == 0 ? 1 : length;
    if (length == 0 || command) {
      for (std::size_t i = 0; i < taken; ++i) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    } else {
      result += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return result;
}

std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : escaped_bytes(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace kernbench
