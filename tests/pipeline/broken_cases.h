#pragma once
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_folder.h"

namespace kernbench::pipeline {

/// One of tests/pipeline/broken*.txt: a line `# rule`, edits of the good document as lines `- old` and `+ new`, and the
/// text that the checker ends with; an empty line ends it. `# [schema] rule`: the JSON Schema refuses it, too.
struct BrokenCase {
  std::string rule, expected;
  std::vector<std::pair<std::string, std::string>> edits;
  bool by_schema() const { return rule.rfind("[schema] ", 0) == 0; }
};

/// In an edit the symbol for a line feed (U+240A) stands for one.
inline std::string exchanged(std::string text, const std::string& old, const std::string& made) {
  for (std::size_t at; (at = text.find(old)) != std::string::npos;) text.replace(at, old.size(), made);
  return text;
}
inline std::string with_lines(const std::string& text) { return exchanged(text, "\xE2\x90\x8A", "\n"); }
inline std::string without_lines(const std::string& text) { return exchanged(text, "\n", "\xE2\x90\x8A"); }

inline std::vector<BrokenCase> read_cases(const std::string& path) {
  std::istringstream file(read(path));
  std::vector<BrokenCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("# ", 0) == 0) {
      cases.push_back({line.substr(2), "", {}});
    } else if (line.rfind("- ", 0) == 0) {
      cases.back().edits.emplace_back(with_lines(line.substr(2)), "");
    } else if (line.rfind('+', 0) == 0) {
      cases.back().edits.back().second = with_lines(line.size() > 2 ? line.substr(2) : "");
    } else if (!line.empty()) {
      cases.back().expected += line + "\n";
    }
  }
  return cases;
}

/// Lines of problems behind which no hint stands.
inline std::string problems_without_hint(const std::string& text) {
  std::istringstream lines(text);
  std::string bare, before;
  for (std::string line; std::getline(lines, line); before = line) {
    const auto is_hint = [](const std::string& one) { return one.find("  hint: ") != std::string::npos; };
    if (!before.empty() && !is_hint(before) && !is_hint(line)) bare += before + "\n";
  }
  if (before.find("  hint: ") == std::string::npos) bare += before + "\n";
  return bare;
}

inline std::string edited(const std::string& good, const BrokenCase& one) {
  std::string text = good;
  for (const auto& [old, with] : one.edits) {
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << one.rule << ": '" << old << "' is not in the document";
    if (at != std::string::npos) text.replace(at, old.size(), with);
  }
  return text;
}

}  // namespace kernbench::pipeline
