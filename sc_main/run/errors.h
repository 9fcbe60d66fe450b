#pragma once
#include <exception>
#include <string>

#include "sc_main/run/exit_code.h"

namespace kernbench {

inline constexpr const char* kNoStandardOutput = "cannot write to standard output";

inline constexpr const char* kNoMemory = "this computer has not enough memory for the run";

/// Maps what was thrown to an exit code, with its text.
ExitCode classify(const std::exception_ptr& error, std::string& text);

}  // namespace kernbench
