#include "sc_main/cli/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace kernbench {
namespace {
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}
}  // namespace

Terminal::Terminal(ColorMode mode) {
  interactive_ = ::isatty(STDERR_FILENO) != 0 && environment("TERM") != "dumb";
  color_ = interactive_ && mode == ColorMode::automatic && environment("NO_COLOR").empty();
}

}  // namespace kernbench
