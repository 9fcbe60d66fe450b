#include "sc_main/explore/sweep/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "sc_main/process/cpu_time.h"
#include "sc_main/run/errors.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/version.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"

namespace kernbench::sweep {
namespace {
using Json = nlohmann::ordered_json;
using topology::hash_of;

double cpu_s() { return process::cpu_s(process::own_usage()); }

/// Options in an order of their own. `machine`: with those of the machine, which is not resolved.
std::vector<std::string> canonical_options(const PointCommand& command, bool machine) {
  std::vector<std::string> options = command.options;
  for (const auto& [option, value] : command.machine) {
    if (machine) options.push_back(option + "=" + value);
  }
  std::sort(options.begin(), options.end());
  return options;
}

/// What was thrown, without places in files, which differ with where a point runs.
struct Failure {
  explicit Failure(const std::exception_ptr& error) : code(static_cast<int>(classify(error, text))) {
    try {
      std::rethrow_exception(error);
    } catch (const ConfigError& config) {
      std::vector<std::string> lines;
      for (const Problem& problem : config.problems()) {
        refusals.push_back({problem.text, problem.hint});
        lines.push_back(problem.hint.empty() ? problem.text : fmt::format("{} (hint: {})", problem.text, problem.hint));
      }
      text = join(lines, "\n");
    } catch (const Refused& refused) {
      refusals = refused.refusals;
    } catch (...) {
      refusals.push_back({text, {}});
    }
  }

  std::string text;
  int code;
  std::vector<Refusal> refusals;
};
}  // namespace

void Task::refuse() {
  const Failure failure(std::current_exception());
  refusal = failure.text;
  refusals = failure.refusals;
  refusal_code = failure.code;
}

std::string inputs_of(const Run& run) {
  std::string text;
  for (const std::string& input : run.inputs()) text += hash_of(input) + "\n";
  return hash_of(text);
}

std::unique_ptr<Task> make_task(const SweepFile& file, const PointMaker& maker, const Point& point) {
  auto task = std::make_unique<Task>();
  const PointCommand command = maker.command(point);
  task->arguments = command.arguments(false);
  task->identity.workload = file.workload;
  task->identity.command = command.text();
  try {
    task->run = std::make_unique<Run>(command.arguments());
    task->resolved = std::make_unique<topology::Resolved>(task->run->resolve());
    task->identity.config_hash = task->resolved->hash;
    task->identity.config = json_text(task->resolved->config);
  } catch (...) {
    task->refuse();
  }
  std::string text = fmt::format("kernbench point 1\n{}\n{}\n{}\n{}\n{}\n", kVersion, build_id(), file.workload,
                                 task->identity.config_hash, join(canonical_options(command, !task->resolved), "\n"));
  if (task->run) {
    task->inputs = inputs_of(*task->run);
    text += "inputs " + task->inputs + "\n";
  } else {
    for (const std::string& plugin : file.plugins) text += "plugin " + hash_of(read_file(plugin)) + "\n";
  }
  task->identity.key = hash_of(text);
  return task;
}

std::string answer_of(const std::function<bool(Json& answer)>& work) {
  const double begin = cpu_s();
  Json answer{{"exit_code", 0}, {"error", ""}, {"result", nullptr}};
  try {
    if (work(answer)) {
      answer["exit_code"] = static_cast<int>(ExitCode::check_failed);
      answer["error"] = "the workload's own check failed";
    }
  } catch (...) {
    const Failure failure(std::current_exception());
    answer["exit_code"] = failure.code;
    answer["error"] = failure.text;
    for (const Refusal& refusal : failure.refusals)
      answer["refusals"].push_back({{"text", refusal.text}, {"hint", refusal.hint}, {"where", refusal.where}});
  }
  answer["model_cpu_s"] = cpu_s() - begin;
  return json_text(answer);
}

std::string run_task(Task& task) {
  return answer_of([&task](Json& answer) {
    Run::Finished finished = task.run->execute_silently(*task.resolved);
    answer["result"] = std::move(finished.json);
    return finished.wrong;
  });
}

std::string check_task(Task& task) {
  return answer_of([&task](Json&) {
    task.run->check(*task.resolved);
    return false;
  });
}

}  // namespace kernbench::sweep
