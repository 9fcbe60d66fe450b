#include "waves/track_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

namespace kernbench {
namespace {
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
}  // namespace

bool is_waiting(const std::string& label) {
  static constexpr std::array<const char*, 5> kWords{"wait", "block", "stall", "full", "empty"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return label.find(word) != std::string::npos; });
}

std::string vcd_name(const std::string& component) {
  std::string out;
  for (const char c : component) {
    if (c == ')' || c == ']') continue;
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  }
  return out;
}

bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const auto end = [](const std::string& text, std::size_t at) {
        while (at < text.size() && digit(text[at])) ++at;
        return at;
      };
      const std::size_t i_end = end(a, i), j_end = end(b, j);
      if (i_end - i != j_end - j) return i_end - i < j_end - j;
      if (const int order = a.compare(i, i_end - i, b, j, j_end - j); order != 0) return order < 0;
      i = i_end;
      j = j_end;
      continue;
    }
    if (a[i] != b[j]) return a[i] == '.' || (b[j] != '.' && a[i] < b[j]);
    ++i;
    ++j;
  }
  return a.size() - i < b.size() - j;
}

std::vector<std::uint32_t> in_natural_order(const std::vector<Track>& tracks) {
  std::vector<std::uint32_t> order(tracks.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return natural_less(tracks[a].name, tracks[b].name); });
  return order;
}

std::vector<std::string> components(const std::string& name) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t dot; (dot = name.find('.', begin)) != std::string::npos; begin = dot + 1) {
    parts.push_back(name.substr(begin, dot - begin));
  }
  parts.push_back(name.substr(begin));
  return parts;
}

}  // namespace kernbench
