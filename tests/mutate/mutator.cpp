#include "tests/mutate/mutator.h"

#include <algorithm>
#include <cctype>

namespace kernbench::mutate {
namespace {

struct Span {
  std::size_t begin, end;
};

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
}

std::vector<Span> words_in(const std::string& text) {
  std::vector<Span> spans;
  for (std::size_t at = 0; at < text.size();) {
    if (!in_word(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    spans.push_back({at, end});
    at = end;
  }
  return spans;
}

std::vector<Span> lines_in(const std::string& text) {
  std::vector<Span> spans;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    spans.push_back({at, end});
    at = end;
  }
  return spans;
}

void change_bytes(std::string& text, Random& random) {
  if (text.empty()) return;
  const std::size_t at = random.below(text.size());
  switch (random.below(5)) {
    case 0:
      text[at] = static_cast<char>(random.below(256));
      break;
    case 1:
      text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
      break;
    case 2:
      text.erase(at, 1 + random.below(std::min<std::size_t>(64, text.size() - at)));
      break;
    case 3:
      text.insert(at, text.substr(at, 1 + random.below(64)));
      break;
    default:
      text.resize(at);
  }
}

void change_word(std::string& text, const std::vector<std::string>& words, Random& random) {
  const std::vector<Span> spans = words_in(text);
  if (spans.empty()) return;
  const Span span = random.of(spans);
  std::string word = text.substr(span.begin, span.end - span.begin);
  switch (random.below(4)) {
    case 0:
      word = random.of(extremes());
      break;
    case 1:
      word = words.empty() ? "" : random.of(words);
      break;
    case 2:
      std::swap(word[random.below(word.size())], word[random.below(word.size())]);
      break;
    default:
      word.erase(random.below(word.size()), 1);
  }
  text.replace(span.begin, span.end - span.begin, word);
}

void change_line(std::string& text, Random& random) {
  const std::vector<Span> lines = lines_in(text);
  if (lines.empty()) return;
  const Span span = random.of(lines);
  const std::string line = text.substr(span.begin, span.end - span.begin);
  switch (random.below(4)) {
    case 0:
      text.erase(span.begin, line.size());
      break;
    case 1:
      text.insert(span.begin, line);
      break;
    case 2:
      text.insert(span.begin, std::string(1 + random.below(4), random.one_in(8) ? '\t' : ' '));
      break;
    default:
      text.erase(span.begin, line.size());
      text.insert(random.below(text.size() + 1), line);
  }
}

void nest(std::string& text, Random& random) {
  static const std::vector<std::string> kOpenings = {"[", "{a: ", "- ", "{\"a\":", "<a>", "("};
  const std::string& opening = random.of(kOpenings);
  std::size_t depth = 10;
  while (depth < 100'000 && !random.one_in(3)) depth *= 10;
  std::string nested;
  for (std::size_t i = 0; i < depth; ++i) nested += opening;
  text.insert(random.below(text.size() + 1), nested);
}

}  // namespace

const std::vector<std::string>& extremes() {
  static const std::vector<std::string> kExtremes = [] {
    std::vector<std::string> values = {"0",
                                       "-1",
                                       "1",
                                       "2147483647",
                                       "2147483648",
                                       "4294967296",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "18446744073709551616",
                                       "1e308",
                                       "1e-320",
                                       "1e999",
                                       "nan",
                                       "inf",
                                       "-0",
                                       "0x10",
                                       "010",
                                       "1.5",
                                       "1/3",
                                       "1/0",
                                       "",
                                       "~",
                                       "null",
                                       "true",
                                       "\"\"",
                                       "''",
                                       "[]",
                                       "{}",
                                       "&a",
                                       "*a",
                                       "!!binary",
                                       "<<",
                                       "a: b",
                                       "..",
                                       "../../../../etc/hostname",
                                       "/dev/zero",
                                       "/dev/full",
                                       "/proc/self/mem",
                                       ".",
                                       "/",
                                       "-",
                                       "--help",
                                       "%s%n",
                                       "\xff\xfe",
                                       "\xc3\x28",
                                       "\x1b[31mred",
                                       "\xe2\x80\xae",
                                       "\t",
                                       "\r",
                                       "1 GB/s",
                                       "1 ps",
                                       "1 KiB",
                                       "1e30 GB/s",
                                       "-1 ns",
                                       "1 parsec"};
    values.push_back(std::string(1, '\0'));
    values.push_back(std::string(5'000, 'a'));
    values.push_back(std::string(400, '9'));
    return values;
  }();
  return kExtremes;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const Span& span : words_in(text)) words.push_back(text.substr(span.begin, span.end - span.begin));
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

std::string mutated(std::string text, const std::vector<std::string>& words, bool binary, Random& random) {
  for (std::size_t left = 1 + random.below(4); left > 0; --left) {
    const std::size_t way = binary ? 0 : random.below(10);
    if (way < 2) {
      change_bytes(text, random);
    } else if (way < 7) {
      change_word(text, words, random);
    } else if (way < 9 || !random.one_in(3)) {
      change_line(text, random);
    } else {
      nest(text, random);
    }
  }
  return text;
}

}  // namespace kernbench::mutate
