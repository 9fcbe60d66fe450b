#include "sc_main/run/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tlm/config/json_text.h"

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

void say(const std::string& text) { std::fputs(printable(text).c_str(), stderr); }

}  // namespace kernbench
