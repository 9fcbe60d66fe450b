#include "tlm/config/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "tlm/config/json_text.h"

namespace kernbench {

namespace {
char folded(char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
}  // namespace

std::size_t edit_distance(const std::string& a, const std::string& b) {
  // Optimal string alignment, three rows of the table.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest(const std::string& text, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestName = 100;  // bounds the work on hostile input
  if (text.empty() || text.size() > kLongestName) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty() || text.size() < 3) return best;
  // A part of a longer name: "ring" for "ring_1d".
  for (const std::string& candidate : candidates) {
    if (candidate.find(text) != std::string::npos) return candidate;
  }
  return {};
}

std::string suggest(const std::string& text, const std::vector<std::string>& valid, const std::string& label) {
  const std::string near = nearest(text, valid);
  if (!near.empty()) return fmt::format("did you mean '{}'?", near);
  return valid.empty() ? std::string() : label + ": " + join(valid);
}

std::string join(const std::vector<std::string>& words, const std::string& separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool names_file(const std::string& text) {
  const std::string extension = std::filesystem::path(text).extension().string();
  return text.find('/') != std::string::npos || extension == ".yaml" || extension == ".yml" || extension == ".json";
}

std::string quote(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  std::string result = "'";
  std::size_t shown = 0;
  for (std::string_view rest = text; !rest.empty();) {
    if (++shown > kLongest) return result + "...'";
    const std::size_t taken = std::max<std::size_t>(utf8_length(rest), 1);
    const char c = rest.front();
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\x09";
    } else {
      result += printable(rest.substr(0, taken));
    }
    rest.remove_prefix(taken);
  }
  return result + "'";
}

}  // namespace kernbench
