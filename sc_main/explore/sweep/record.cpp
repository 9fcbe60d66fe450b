#include "sc_main/explore/sweep/record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <ctime>

#include "sc_main/run/exit_code.h"
#include "tlm/config/units.h"

namespace kernbench::sweep {
namespace {
/// A signal that a program earns by its own doing; others come from outside.
bool own_fault(int signal) {
  for (const int own :
       {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXFSZ, SIGXCPU, SIGPIPE, SIGALRM}) {
    if (signal == own) return true;
  }
  return false;
}
}  // namespace

Record refused_record(const std::string& key, int exit_code, const std::string& error) {
  Record record;
  record.key = key;
  record.status = Status::failed;
  record.exit_code = exit_code;
  record.error = error;
  record.finished = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return record;
}

Record record_of(const std::string& key, const process::Ending& ending, const process::Limits& limits) {
  Record record = refused_record(key, 0, {});
  record.wall_s = ending.wall_s;
  record.cpu_s = ending.cpu_s;
  record.peak_rss_bytes = ending.peak_rss_bytes;
  const auto set = [&](Status status, int code, std::string error) {
    record.status = status;
    record.exit_code = code;
    record.error = std::move(error);
  };
  if (ending.stopped == process::Ending::Stopped::time) {
    set(Status::failed, static_cast<int>(ExitCode::limit),
        fmt::format("the point's time limit of {:g} s was reached", limits.time_s));
  } else if (ending.stopped == process::Ending::Stopped::memory) {
    set(Status::failed, static_cast<int>(ExitCode::environment),
        fmt::format("the point's memory limit of {} was reached",
                    format_quantity(limits.memory_bytes, Dimension::bytes)));
  } else if (WIFSIGNALED(ending.status)) {
    const int signal = WTERMSIG(ending.status);
    set(own_fault(signal) ? Status::failed : Status::lost, 128 + signal,
        fmt::format("ended by signal {} ({})", signal, ::strsignal(signal)));
  } else if (WEXITSTATUS(ending.status) != 0) {
    const std::string& text = ending.errors;
    const bool lost = WEXITSTATUS(ending.status) == static_cast<int>(ExitCode::environment);
    set(lost ? Status::lost : Status::failed, WEXITSTATUS(ending.status),
        text.empty() ? fmt::format("ended with exit code {} and no answer", WEXITSTATUS(ending.status)) : text);
  } else {
    const auto answer = nlohmann::ordered_json::parse(ending.answer, nullptr, false);
    if (answer.is_discarded() || !answer.is_object()) {
      set(Status::failed, static_cast<int>(ExitCode::internal), "ended without an answer");
    } else {
      const int code = answer.value("exit_code", static_cast<int>(ExitCode::internal));
      // What this computer lacked says nothing of the point, which stays open.
      const bool lost =
          code == static_cast<int>(ExitCode::interrupted) || code == static_cast<int>(ExitCode::environment);
      set(code == 0 ? Status::ok : lost ? Status::lost : Status::failed, code, answer.value("error", std::string()));
      record.result = answer.value("result", nlohmann::ordered_json());
      record.model_cpu_s = answer.value("model_cpu_s", 0.0);
    }
  }
  return record;
}

}  // namespace kernbench::sweep
