#pragma once
#include <string>

namespace kernbench {

/// YAML takes more than JSON: commas at the end, comments, words without quotes. What is said to be JSON must be it:
/// throws ConfigError at the place in `file` with this hint. What is nested too deeply the reader of YAML refuses.
void check_json(const std::string& text, const std::string& file, const std::string& hint);

}  // namespace kernbench
