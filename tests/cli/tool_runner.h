#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/test_folder.h"

namespace kernbench {

/// What a call of the tool left: exit code (128 + n for signal n), standard output, standard error.
struct Outcome {
  int code = -1;
  std::string out, err;
};

inline std::string quoted(const std::string& argument) {
  std::string out = "'";
  for (const char c : argument) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// The tool itself, run in a folder of the test's own, without a terminal.
class Tool {
 public:
  const TestFolder& folder() const { return folder_; }
  std::string file(const std::string& name) const { return folder_.file(name); }

  Outcome operator()(const std::vector<std::string>& arguments) const {
    std::string command = quoted(KERNBENCH_BINARY);
    for (const std::string& argument : arguments) command += " " + quoted(argument);
    return shell(command);
  }
  /// Runs any command line there; `kernbench` at its start stands for the tool.
  Outcome shell(const std::string& command) const {
    const std::string out = file(".out"), err = file(".err");
    const int status = std::system(("cd " + quoted(folder_.path().string()) + " && { " + command + " ; } > " +
                                    quoted(out) + " 2> " + quoted(err) + " < /dev/null")
                                       .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(out), read(err)};
  }

 private:
  TestFolder folder_;
};

}  // namespace kernbench
