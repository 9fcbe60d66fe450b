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

void add_numbers(const nlohmann::ordered_json& json, const std::string& name, std::map<std::string, double>& numbers) {
  if (json.is_number()) {
    numbers[name] = json.get<double>();
  } else if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      add_numbers(value, name.empty() ? key : fmt::format("{}.{}", name, key), numbers);
  }
}

Record ended_now(const std::string& key) {
  Record record;
  record.key = key;
  record.finished = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return record;
}
}  // namespace

const char* to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::failed:
      return "failed";
    case Status::lost:
      return "lost";
    case Status::infeasible:
      return "infeasible";
  }
  return "";
}

Status status_of(const std::string& text) {
  return text == "ok" ? Status::ok : text == "failed" ? Status::failed : Status::lost;
}

Status status_of_exit(int exit_code) {
  switch (static_cast<ExitCode>(exit_code)) {
    case ExitCode::success:
      return Status::ok;
    case ExitCode::environment:
    case ExitCode::interrupted:
      return Status::lost;
    default:
      return Status::failed;
  }
}

nlohmann::ordered_json Record::json() const {
  return {{"key", key},
          {"status", to_string(status)},
          {"exit_code", exit_code},
          {"error", error},
          {"result", result},
          {"wall_s", wall_s},
          {"cpu_s", cpu_s},
          {"peak_rss_bytes", peak_rss_bytes},
          {"finished", finished},
          {"attempt", attempt}};
}

std::optional<Record> Record::from_json(const nlohmann::ordered_json& json) {
  try {
    Record record;
    record.key = json.at("key").get<std::string>();
    record.status = status_of(json.at("status").get<std::string>());
    record.exit_code = json.at("exit_code").get<int>();
    record.error = json.at("error").get<std::string>();
    record.result = json.at("result");
    record.wall_s = json.at("wall_s").get<double>();
    record.cpu_s = json.at("cpu_s").get<double>();
    record.peak_rss_bytes = json.at("peak_rss_bytes").get<std::uint64_t>();
    record.finished = json.at("finished").get<std::string>();
    record.attempt = json.at("attempt").get<int>();
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::map<std::string, double> metrics_of(const nlohmann::ordered_json& result) {
  std::map<std::string, double> numbers;
  if (!result.is_object()) return numbers;
  for (const char* name : {"sim_time_ps", "energy_pj"}) {
    if (result.contains(name)) add_numbers(result[name], name, numbers);
  }
  const auto rows = result.find("results");
  if (rows == result.end() || !rows->is_array() || rows->empty()) return numbers;
  add_numbers(rows->back(), "", numbers);
  for (std::size_t i = 0; rows->size() > 1 && i < rows->size(); ++i)
    add_numbers((*rows)[i], fmt::format("row{}", i), numbers);
  return numbers;
}

Record refused_record(const std::string& key, int exit_code, const std::string& error) {
  Record record = ended_now(key);
  record.status = status_of_exit(exit_code);
  record.exit_code = exit_code;
  record.error = error;
  return record;
}

Record record_of(const std::string& key, const process::Ending& ending, const process::Limits& limits) {
  Record record = ended_now(key);
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
  } else if (const int code = WEXITSTATUS(ending.status); code != 0) {
    set(status_of_exit(code), code,
        ending.errors.empty() ? fmt::format("ended with exit code {} and no answer", code) : ending.errors);
  } else {
    const auto answer = nlohmann::ordered_json::parse(ending.answer, nullptr, false);
    if (answer.is_discarded() || !answer.is_object()) {
      set(Status::failed, static_cast<int>(ExitCode::internal), "ended without an answer");
    } else {
      const int said = answer.value("exit_code", static_cast<int>(ExitCode::internal));
      set(status_of_exit(said), said, answer.value("error", std::string()));
      for (const auto& refusal : answer.value("refusals", nlohmann::ordered_json::array()))
        record.refusals.push_back({refusal.at("text"), refusal.at("hint"), refusal.at("where")});
      record.result = answer.value("result", nlohmann::ordered_json());
      record.model_cpu_s = answer.value("model_cpu_s", 0.0);
    }
  }
  return record;
}

}  // namespace kernbench::sweep
