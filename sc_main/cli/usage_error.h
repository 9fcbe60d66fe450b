#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace kernbench {

/// The command line is wrong: exit code 2.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& text, std::string hint = {})
      : std::runtime_error(text), hint(std::move(hint)) {}
  const std::string hint;
};

}  // namespace kernbench
