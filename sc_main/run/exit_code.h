#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "tlm/config/refusals.h"

namespace kernbench {

/// How the tool ends; part of its contract (docs/cli.md).
enum class ExitCode : int {
  success = 0,
  check_failed = 1,  ///< wrong numerics
  bad_input = 2,
  deadlock = 3,
  limit = 4,            ///< watchdog or --max-sim-time
  out_of_resource = 5,  ///< of the modelled machine
  sweep_failed = 6,     ///< a sweep finished with failed points
  environment = 7,      ///< files, permissions
  program_failed = 8,   ///< SpawnError, device fault
  internal = 70,
  interrupted = 130
};

/// Of many points: what some lacked of this computer is told only where no point failed by itself.
constexpr ExitCode exit_of_points(std::size_t failed, std::size_t lost) {
  return failed > 0 ? ExitCode::sweep_failed : lost > 0 ? ExitCode::environment : ExitCode::success;
}

/// One thing is wrong with the command line: exit code 2.
class UsageError : public Refused {
 public:
  explicit UsageError(std::string text, std::string hint = {}, std::string option = {})
      : Refused({{std::move(text), std::move(hint), {}, std::move(option)}}) {}
};

/// The simulation ended before its program did; the text is the report for the user.
class RunEnded : public std::runtime_error {
 public:
  RunEnded(ExitCode code, const std::string& text) : std::runtime_error(text), code(code) {}
  const ExitCode code;  ///< that the process ends with
};

}  // namespace kernbench
