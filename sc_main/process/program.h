#pragma once
#include <string>
#include <vector>

namespace kernbench::process {

/// What another program left.
struct ProgramEnd {
  int code = 0;           ///< exit code; 128 + n for signal n
  std::string out, err;   ///< standard output and error
  double user_s = 0;      ///< CPU time of its own code
  double peak_bytes = 0;  ///< of memory
};

/// Runs a program of the PATH to its end, without a shell. Throws OutputError if it cannot be started.
ProgramEnd run_program(const std::vector<std::string>& words);
/// run_program(), and OutputError with what it wrote on standard error if its exit code is not 0.
std::string output_of(const std::vector<std::string>& words);

/// This program's own executable.
std::string own_path();

}  // namespace kernbench::process
