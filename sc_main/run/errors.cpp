#include "sc_main/run/errors.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <set>
#include <string_view>
#include <system_error>
#include <systemc>

#include "runtime/runtime.h"
#include "sc_main/run/simulation.h"
#include "sc_main/workloads/plugin.h"
#include "tlm/config/problems.h"
#include "waves/output_file.h"

namespace kernbench {

ExitCode classify(const std::exception_ptr& error, std::string& text) {
  try {
    std::rethrow_exception(error);
  } catch (const RunEnded& e) {
    text = e.what();
    return e.code;
  } catch (const Deadlock& e) {
    text = e.what();
    return ExitCode::deadlock;
  } catch (const ConfigError& e) {
    text = e.what();
    return ExitCode::bad_input;
  } catch (const std::invalid_argument& e) {
    text = e.what();
    return ExitCode::bad_input;
  } catch (const PluginError& e) {
    text = e.what();
    return ExitCode::program_failed;
  } catch (const OutputError& e) {
    text = e.what();
    return ExitCode::environment;
  } catch (const HostShortage& e) {
    text = e.what();
    return ExitCode::environment;
  } catch (const OutOfDeviceMemory& e) {
    text = e.what();
    return ExitCode::out_of_resource;
  } catch (const SpawnError& e) {
    // A program that failed only because the machine is too small for it is out of a resource.
    text = e.what();
    // One that failed only because its arguments were refused got bad input; because of this computer, likewise.
    std::set<ExitCode> reasons;
    std::string ignored;
    for (const auto& [rank, failure] : e.failures) reasons.insert(classify(failure, ignored));
    const ExitCode reason = reasons.size() == 1 ? *reasons.begin() : ExitCode::program_failed;
    const bool passed_on =
        reason == ExitCode::bad_input || reason == ExitCode::out_of_resource || reason == ExitCode::environment;
    return passed_on ? reason : ExitCode::program_failed;
  } catch (const DeviceFault& e) {
    text = e.what();
    return ExitCode::program_failed;
  } catch (const std::system_error& e) {
    text = std::ferror(stdout) != 0 ? kNoStandardOutput : e.what();
    return ExitCode::environment;
  } catch (const std::bad_alloc&) {
    text = kNoMemory;
    return ExitCode::environment;
  } catch (const sc_core::sc_report& e) {
    // What a process throws comes as a report of SystemC's own.
    const bool no_stack = std::string_view(e.get_msg_type()) == sc_core::SC_ID_STACK_SETUP_FAILED_;  // for a rank
    if (no_stack || std::string_view(e.what()).find("std::bad_alloc") != std::string_view::npos) {
      text = kNoMemory;
      return ExitCode::environment;
    }
    text = fmt::format("internal error: {} ({}:{})", e.what(), e.get_file_name(), e.get_line_number());
    return ExitCode::internal;
  } catch (const std::exception& e) {
    // Of a thread that this computer has no memory for: oneTBB, which pagmo works with, throws a text.
    if (std::string_view(e.what()).find("pthread_create has failed") != std::string_view::npos) {
      text = e.what();
      return ExitCode::environment;
    }
    text = fmt::format("internal error: {}", e.what());
    return ExitCode::internal;
  } catch (...) {
    text = "internal error";
    return ExitCode::internal;
  }
}

}  // namespace kernbench
