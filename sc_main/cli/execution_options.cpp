#include "sc_main/cli/execution_options.h"

#include <fmt/format.h>

#include <filesystem>

#include "sc_main/explore/sweep/cluster_executors.h"
#include "sc_main/run/exit_code.h"
#include "tlm/config/units.h"

namespace kernbench {
namespace {
using namespace sweep;

std::uint64_t quantity(const char* option, const std::string& text, Dimension dimension) {
  const QuantityResult result = parse_quantity(text, dimension);
  if (!result.ok || result.value == 0)
    throw UsageError(fmt::format("{} is '{}'{}", option, text, result.problem),
                     fmt::format("give {}, such as '{}'", name_of(dimension), example_of(dimension)));
  return result.value;
}
}  // namespace

void ExecutionOptions::add_to(po::options_description_easy_init& add) {
  add("jobs,j", po::value(&jobs)->value_name("N"), "points at a time (default: one per core)");
  add("retry-failed", po::bool_switch(&retry_failed), "runs again what has failed before");
  add("point-time", po::value(&time_limit)->value_name("TIME"), "of one point, e.g. '10 s'; wins over the file");
  add("point-memory", po::value(&memory_limit)->value_name("SIZE"), "of one point, e.g. '2 GiB'; wins over the file");
  add("executor", po::value(&executor)->value_name("local|slurm|parallel"),
      "where points run: processes here, a Slurm job array, or hosts behind ssh through GNU parallel (default: local)");
  add("tasks", po::value(&tasks)->value_name("N"),
      "of slurm and parallel: parts into which the points are dealt, each of many points (default: 16)");
  add("sbatch-option", po::value(&sbatch)->value_name("WORD")->composing(),
      "handed to sbatch, e.g. --sbatch-option=--partition=long; repeatable");
  add("host", po::value(&hosts)->value_name("HOST")->composing(),
      "of parallel: where to run, as ssh takes it; ':' is this machine; repeatable (default: ':')");
  add("host-tool", po::value(&tool)->value_name("PATH"), "of parallel: kernbench on those hosts (default: as here)");
}

void ExecutionOptions::check() const {
  if (executor != "local" && executor != "slurm" && executor != "parallel")
    throw UsageError(fmt::format("--executor is '{}'", executor), "give 'local', 'slurm' or 'parallel'");
  if (executor != "parallel" && !(hosts.empty() && tool.empty()))
    throw UsageError("--host and --host-tool are for --executor parallel", "leave them out, or give it");
  if (executor != "slurm" && !sbatch.empty())
    throw UsageError("--sbatch-option is for --executor slurm", "leave it out, or give it");
  if (tasks == 0) throw UsageError("--tasks is '0'", "give an integer of at least 1");
}

void ExecutionOptions::limit(Limits& limits) const {
  if (!time_limit.empty())
    limits.time_s = static_cast<double>(quantity("--point-time", time_limit, Dimension::time)) * 1e-12;
  if (!memory_limit.empty()) limits.memory_bytes = quantity("--point-memory", memory_limit, Dimension::bytes);
}

std::unique_ptr<Executor> ExecutionOptions::make(const std::string& store, const Limits& limits) const {
  if (executor == "slurm")
    return std::make_unique<SlurmExecutor>(SlurmExecutor::Options{store + ".slurm", tasks, sbatch}, limits);
  if (executor == "parallel") {
    const std::vector<std::string> here{":"};
    return std::make_unique<SshExecutor>(SshExecutor::Options{hosts.empty() ? here : hosts, tool, jobs, tasks}, limits);
  }
  return std::make_unique<LocalExecutor>(jobs, limits);
}

std::function<void(const std::string&, const Record&)> say_failures(ProgressView& view) {
  return [&view](const std::string& command, const Record& record) {
    view.say(fmt::format("kernbench: a point {} (exit code {}): {}\n  {}", to_string(record.status), record.exit_code,
                         record.error, command));
  };
}

std::string usual_store(const std::string& file) {
  return std::filesystem::path(file).replace_extension(".sqlite").string();
}

}  // namespace kernbench
