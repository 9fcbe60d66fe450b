#pragma once
#include <string>

namespace kernbench {

enum class ColorMode { automatic, never };

/// Standard error as the user sees it.
class Terminal {
 public:
  explicit Terminal(ColorMode mode = ColorMode::automatic);
  bool interactive() const { return interactive_; }
  /// "error" in red where colours are wanted.
  std::string error() const { return color_ ? "\033[1;31merror\033[0m" : "error"; }

 private:
  bool interactive_ = false;  ///< a terminal that can redraw a line
  bool color_ = false;
};

/// Writes to standard error, escaped as printable() does. One that is gone or full stops nothing: results do not go
/// there.
void say(const std::string& text);

}  // namespace kernbench
