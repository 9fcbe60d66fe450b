#pragma once
#include <string>
#include <vector>

namespace kernbench {

/// Something that the model simplifies.
struct Limitation {
  const char* part;
  const char* text;
};

/// What is simplified in this version; `kernbench list --limits` and docs/architecture.md say the same, by a test.
const std::vector<Limitation>& limitations();

/// A line each: "- part: text".
std::string limitations_text();

}  // namespace kernbench
