#include "sc_main/explore/sweep/remote_plan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <iterator>

#include "sc_main/explore/sweep/record.h"
#include "sc_main/process/pool.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/version.h"
#include "tlm/config/json_text.h"
#include "waves/output_file.h"

namespace kernbench::sweep {
namespace {
using Json = nlohmann::ordered_json;

/// Appends whole lines to a file of its own, or to standard output.
class LineFile {
 public:
  explicit LineFile(const std::string& path) : path_(path) {
    file_ = path == "-" ? STDOUT_FILENO : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) fail();
  }
  ~LineFile() {
    if (file_ > STDERR_FILENO) ::close(file_);
  }
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void write(const std::string& line) {
    const std::string text = line + "\n";
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t written = ::write(file_, text.data() + at, text.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail();
      at += static_cast<std::size_t>(written);
    }
  }

 private:
  [[noreturn]] void fail() const {
    throw OutputError(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
  }
  std::string path_;
  int file_ = -1;
};

std::unique_ptr<Task> task_of(const Json& point, const Json& configs) {
  auto task = std::make_unique<Task>();
  task->identity.key = point.at("key").get<std::string>();
  task->identity.config_hash = point.at("config_hash").get<std::string>();
  for (const Json& word : point.at("arguments")) task->arguments.push_back(word.get<std::string>());
  try {
    task->run = std::make_unique<Run>(task->arguments);
    task->resolved = std::make_unique<topology::Resolved>(
        topology::resolve_json(configs.at(task->identity.config_hash), point.at("machine").get<std::string>()));
    if (task->resolved->hash != task->identity.config_hash)
      throw OutputError("the machine is another one here; do all files that it names look the same?");
    if (inputs_of(*task->run) != point.at("inputs").get<std::string>())
      throw OutputError("a file that the point names is another one here");
  } catch (const nlohmann::json::exception&) {
    throw;
  } catch (...) {
    task->refuse();
  }
  return task;
}

Json read_plan(const std::string& path) {
  const std::string text = path == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_file(path);
  Json plan;
  try {
    plan = parse_json(text);
  } catch (const JsonError&) {  // as what is no plan
  }
  if (!plan.is_object() || !plan.contains("points") || !plan["points"].is_array() || !plan.contains("configs"))
    throw UsageError(fmt::format("--worker '{}' is no plan of a sweep", path),
                     "'kernbench sweep --executor' makes plans");
  if (plan.value("version", "") != kVersion || plan.value("build", "") != build_id())
    throw UsageError("this kernbench is another build than the one that made the plan",
                     "install the same program on every machine");
  return plan;
}
}  // namespace

Json plan_of_tasks(const std::vector<Task*>& tasks, const Limits& limits) {
  Json plan{{"version", kVersion},           {"build", build_id()},
            {"time_limit_s", limits.time_s}, {"memory_limit_bytes", limits.memory_bytes},
            {"points", Json::array()},       {"configs", Json::object()}};
  for (const Task* task : tasks) {
    plan["points"].push_back({{"key", task->identity.key},
                              {"arguments", task->arguments},
                              {"machine", task->resolved->spec.name},
                              {"config_hash", task->identity.config_hash},
                              {"inputs", task->inputs}});
    if (!plan["configs"].contains(task->identity.config_hash))
      plan["configs"][task->identity.config_hash] = task->resolved->config;
  }
  return plan;
}

std::vector<std::unique_ptr<Task>> tasks_for_workers(const Executor::Next& next) {
  std::vector<std::unique_ptr<Task>> tasks;
  while (auto task = next()) {
    task->run.reset();
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::vector<std::vector<Task*>> shards_of(const std::vector<Task*>& tasks, std::size_t shards) {
  std::vector<std::vector<Task*>> dealt(std::min(shards, tasks.size()));
  for (std::size_t i = 0; i < tasks.size(); ++i) dealt[i % dealt.size()].push_back(tasks[i]);
  return dealt;
}

Merge::Merge(const std::vector<std::unique_ptr<Task>>& tasks, const Executor::Done& done) : tasks_(tasks), done_(done) {
  for (const auto& task : tasks) open_[task->identity.key] = task.get();
}

void Merge::add(const std::string& line) {
  Json json;
  try {
    json = parse_json(line);
  } catch (const JsonError&) {  // a line that was cut short
    return;
  }
  const auto record = Record::from_json(json);
  if (!record) return;
  if (record->status == Status::lost) {
    why_lost_[record->key] = record->error;
    return;
  }
  const auto found = open_.find(record->key);
  if (found == open_.end()) return;
  const Task* task = found->second;
  open_.erase(found);
  done_(*task, *record);
}

std::vector<Task*> Merge::missing() const {
  std::vector<Task*> tasks;
  for (const auto& task : tasks_) {
    if (open_.count(task->identity.key) > 0) tasks.push_back(task.get());
  }
  return tasks;
}

void Merge::give_up(const std::string& reason) {
  for (Task* task : missing()) {
    Record record;
    record.key = task->identity.key;
    record.status = Status::lost;
    record.exit_code = static_cast<int>(ExitCode::environment);
    const std::string& why = why_lost_[record.key];
    record.error = why.empty() ? reason : fmt::format("{}: {}", reason, why);
    open_.erase(record.key);
    done_(*task, record);
  }
}

void run_worker(const std::string& plan_path, const std::string& results, unsigned jobs,
                const std::atomic<bool>& stop) {
  const Json plan = read_plan(plan_path);
  LineFile file(results);
  Limits limits;
  limits.time_s = plan.value("time_limit_s", 0.0);
  limits.memory_bytes = plan.value("memory_limit_bytes", std::uint64_t{0});
  std::size_t cursor = 0;
  const auto next = [&]() -> std::unique_ptr<Task> {
    while (cursor < plan["points"].size()) {
      auto task = task_of(plan["points"][cursor++], plan["configs"]);
      if (task->refusal.empty()) return task;
      file.write(json_text(refused_record(task->identity.key, task->refusal_code, task->refusal).json()));
    }
    return nullptr;
  };
  LocalExecutor local(jobs, limits);
  local.run(
      next, [&](const Task&, const Record& record) { file.write(json_text(record.json())); }, [](std::size_t) {}, stop);
}

}  // namespace kernbench::sweep
