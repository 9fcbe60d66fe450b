#include "sc_main/run/errors.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <set>
#include <string_view>
#include <system_error>
#include <systemc>

#include "runtime/errors.h"
#include "sc_main/workloads/plugin.h"
#include "tlm/config/problems.h"
#include "waves/output_file.h"

namespace kernbench {

namespace {
template <class Error>
bool is(const std::exception& e) {
  return dynamic_cast<const Error*>(&e) != nullptr;
}

/// A program that failed only because the machine is too small for it is out of a resource. One that failed only
/// because its arguments were refused got bad input; because of this computer, likewise.
ExitCode exit_of(const SpawnError& error) {
  std::set<ExitCode> reasons;
  std::string ignored;
  for (const auto& [rank, failure] : error.failures) reasons.insert(classify(failure, ignored));
  const ExitCode reason = reasons.size() == 1 ? *reasons.begin() : ExitCode::program_failed;
  const bool passed_on =
      reason == ExitCode::bad_input || reason == ExitCode::out_of_resource || reason == ExitCode::environment;
  return passed_on ? reason : ExitCode::program_failed;
}
}  // namespace

ExitCode classify(const std::exception_ptr& error, std::string& text) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    text = e.what();
    if (const auto* ended = dynamic_cast<const RunEnded*>(&e)) return ended->code;
    if (is<Deadlock>(e)) return ExitCode::deadlock;
    if (is<ConfigError>(e) || is<std::invalid_argument>(e)) return ExitCode::bad_input;
    if (is<PluginError>(e) || is<DeviceFault>(e)) return ExitCode::program_failed;
    if (is<OutputError>(e) || is<HostShortage>(e)) return ExitCode::environment;
    if (is<OutOfDeviceMemory>(e)) return ExitCode::out_of_resource;
    if (const auto* failed = dynamic_cast<const SpawnError*>(&e)) return exit_of(*failed);
    if (is<std::system_error>(e)) {
      if (std::ferror(stdout) != 0) text = kNoStandardOutput;
      return ExitCode::environment;
    }
    // What a process throws comes as a report of SystemC's own.
    const auto* report = dynamic_cast<const sc_core::sc_report*>(&e);
    const bool no_stack =  // for a rank
        report != nullptr && std::string_view(report->get_msg_type()) == sc_core::SC_ID_STACK_SETUP_FAILED_;
    const bool no_memory = report != nullptr && text.find("std::bad_alloc") != std::string::npos;
    if (is<std::bad_alloc>(e) || no_stack || no_memory) {
      text = kNoMemory;
      return ExitCode::environment;
    }
    // Of a thread that this computer has no memory for: oneTBB, which pagmo works with, throws a text.
    if (report == nullptr && text.find("pthread_create has failed") != std::string::npos) return ExitCode::environment;
    text = "internal error: " + text;
    if (report != nullptr) text += fmt::format(" ({}:{})", report->get_file_name(), report->get_line_number());
  } catch (...) {
    text = "internal error";
  }
  return ExitCode::internal;
}

}  // namespace kernbench
