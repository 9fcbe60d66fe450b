#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "sc_main/cli/exit_code.h"
#include "sc_main/cli/interrupt.h"
#include "sc_main/cli/options.h"
#include "sc_main/cli/simulation.h"
#include "sc_main/cli/usage_error.h"
#include "sc_main/sweep/cluster_executors.h"
#include "sc_main/sweep/evaluator.h"
#include "sc_main/sweep/progress_view.h"
#include "sc_main/sweep/remote_plan.h"
#include "tlm/config/units.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {
using namespace sweep;

struct SweepOptions {
  std::string file, store, csv, json, name, export_from, executor = "local", worker, results, tool, time_limit,
                                                         memory_limit, color = "auto";
  std::vector<std::string> hosts, sbatch;
  unsigned jobs = 0, tasks = 16;
  bool dry_run = false, resume = false, retry_failed = false, quiet = false, no_progress = false;

  po::options_description describe() {
    po::options_description options("Options");
    auto add = options.add_options();
    add("file", po::value(&file)->value_name("FILE"), "the sweep file; also without its name");
    add("store,o", po::value(&store)->value_name("FILE"),
        "where results go and are found again (default: beside the sweep file, with .sqlite at the end)");
    add("jobs,j", po::value(&jobs)->value_name("N"), "points at a time (default: one per core)");
    add("dry-run", po::bool_switch(&dry_run), "lists the points and runs none");
    add("resume", po::bool_switch(&resume),
        "goes on with a store that must be there; without it, too, only what is missing runs");
    add("retry-failed", po::bool_switch(&retry_failed), "runs again what has failed before");
    add("point-time", po::value(&time_limit)->value_name("TIME"), "of one point, e.g. '10 s'; wins over the file");
    add("point-memory", po::value(&memory_limit)->value_name("SIZE"), "of one point, e.g. '2 GiB'; wins over the file");
    add("executor", po::value(&executor)->value_name("local|slurm|parallel"),
        "where points run: processes here, a Slurm job array, or hosts behind ssh through GNU parallel (default: "
        "local)");
    add("tasks", po::value(&tasks)->value_name("N"),
        "of slurm and parallel: parts into which the points are dealt, each of many points (default: 16)");
    add("sbatch-option", po::value(&sbatch)->value_name("WORD")->composing(),
        "handed to sbatch, e.g. --sbatch-option=--partition=long; repeatable");
    add("host", po::value(&hosts)->value_name("HOST")->composing(),
        "of parallel: where to run, as ssh takes it; ':' is this machine; repeatable (default: ':')");
    add("host-tool", po::value(&tool)->value_name("PATH"), "of parallel: kernbench on those hosts (default: as here)");
    add("worker", po::value(&worker)->value_name("PLAN"), "internal: runs a part of a sweep for --executor");
    add("results", po::value(&results)->value_name("FILE|-"), "internal: where --worker writes");
    add("csv", po::value(&csv)->value_name("FILE|-"), "the results as CSV");
    add("json", po::value(&json)->value_name("FILE|-"), "the results as JSON; '-' is standard output");
    add("export", po::value(&export_from)->value_name("STORE"), "only exports what a store holds; runs nothing");
    add("name", po::value(&name)->value_name("SWEEP"), "with --export: which sweep, where a store holds several");
    add("quiet,q", po::bool_switch(&quiet), "no progress and no list of failed points");
    add("no-progress", po::bool_switch(&no_progress), "no progress");
    add("color", po::value(&color)->value_name("auto|never"), "colours on standard error (default: auto)");
    add("help,h", "this text");
    return options;
  }

  void check() const {
    if (!worker.empty()) {
      if (results.empty()) throw UsageError("--worker without --results", "'kernbench sweep --executor' gives both");
      return;
    }
    if (executor != "local" && executor != "slurm" && executor != "parallel")
      throw UsageError(fmt::format("--executor is '{}'", executor), "give 'local', 'slurm' or 'parallel'");
    if (executor != "parallel" && !(hosts.empty() && tool.empty()))
      throw UsageError("--host and --host-tool are for --executor parallel", "leave them out, or give it");
    if (executor != "slurm" && !sbatch.empty())
      throw UsageError("--sbatch-option is for --executor slurm", "leave it out, or give it");
    if (tasks == 0) throw UsageError("--tasks is '0'", "give an integer of at least 1");
    if (color != "auto" && color != "never")
      throw UsageError(fmt::format("--color is '{}'", color), "give 'auto' or 'never'");
    if (csv == "-" && json == "-") throw UsageError("--csv and --json are both '-'", "give one of them a file");
    if (export_from.empty() && !name.empty()) throw UsageError("--name without --export", "the file names its sweep");
    if (!export_from.empty() && !file.empty())
      throw UsageError("--export together with a sweep file", "give one of them");
    if (!export_from.empty() && csv.empty() && json.empty())
      throw UsageError("--export without --csv and --json", "say what to write, e.g. --csv -");
    if (export_from.empty() && file.empty())
      throw UsageError("no sweep file given", "kernbench sweep FILE; docs/sweep.md describes it");
    if (dry_run && (resume || retry_failed || !csv.empty() || !json.empty()))
      throw UsageError("--dry-run runs nothing, so there is nothing to resume or export", "leave it out");
  }

  std::string store_path() const {
    return store.empty() ? std::filesystem::path(file).replace_extension(".sqlite").string() : store;
  }

  void limit(Limits& limits) const {
    if (!time_limit.empty())
      limits.time_s = static_cast<double>(quantity("--point-time", time_limit, Dimension::time)) * 1e-12;
    if (!memory_limit.empty()) limits.memory_bytes = quantity("--point-memory", memory_limit, Dimension::bytes);
  }
  bool text_wanted() const { return csv != "-" && json != "-"; }

 private:
  static std::uint64_t quantity(const char* option, const std::string& text, Dimension dimension) {
    const QuantityResult result = parse_quantity(text, dimension);
    if (!result.ok || result.value == 0)
      throw UsageError(fmt::format("{} is '{}'{}", option, text, result.problem),
                       fmt::format("give {}, such as '{}'", name_of(dimension), example_of(dimension)));
    return result.value;
  }
};

int print_help() {
  SweepOptions options;
  std::ostringstream text;
  text << options.describe();
  fmt::print(
      "Usage: kernbench sweep FILE [OPTIONS]\n       kernbench sweep --export STORE --csv FILE|-\n\n"
      "Runs every point of a sweep file, each in a process of its own, and keeps the results in a store; run again, "
      "it\n"
      "does what is missing. docs/sweep.md describes the file.\n\n{}\nExample:\n"
      "  kernbench sweep docs/examples/sweep.yaml --store sweep.sqlite\n",
      text.str());
  return 0;
}

void dry_run(const SweepFile& file) {
  PointMaker maker(file);
  const std::vector<Point> all = points(file, maker);
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < file.axes.size(); ++i) {
    widths.push_back(file.axes[i].name.size());
    for (const Point& point : all) widths[i] = std::max(widths[i], point.coordinates[i].label.size());
  }
  fmt::print("#{:>7}", "point");
  for (std::size_t i = 0; i < widths.size(); ++i) fmt::print("  {:<{}}", file.axes[i].name, widths[i]);
  fmt::print("\n");
  std::size_t number = 0;
  for (const Point& point : all) {
    fmt::print(" {:>7}", point.refused.empty() ? std::to_string(number++) : "-");
    for (std::size_t i = 0; i < widths.size(); ++i) fmt::print("  {:<{}}", point.coordinates[i].label, widths[i]);
    fmt::print("{}\n", point.refused.empty() ? "" : "  refused: " + point.refused);
  }
  fmt::print("# {} point{} of sweep {}, {} more refused\n", number, number == 1 ? "" : "s", file.name,
             all.size() - number);
  for (const Point& point : all) {
    if (!point.refused.empty()) continue;
    fmt::print("# the first: {}\n", maker.command(point));
    return;
  }
}

/// Result files that are opened before the sweep: hours of work shall not end at a folder that does not exist.
class Exports {
 public:
  explicit Exports(const SweepOptions& options) : options_(options) {
    if (!options.csv.empty() && options.csv != "-") csv_.emplace(options.csv);
    if (!options.json.empty() && options.json != "-") json_.emplace(options.json);
  }
  void write(Store& store, const std::string& sweep, const nlohmann::ordered_json& host) {
    if (!options_.csv.empty()) put(csv_, store.csv(sweep));
    if (options_.json.empty()) return;
    nlohmann::ordered_json all = store.json(sweep);
    if (!host.is_null()) all["host"] = host;
    put(json_, all.dump(2) + "\n");
  }

 private:
  static void put(std::optional<OutputFile>& file, const std::string& text) {
    if (!file) {
      fmt::print("{}", text);
      return;
    }
    file->write(text);
    file->commit();
  }
  const SweepOptions& options_;
  std::optional<OutputFile> csv_, json_;
};

double own_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What the sweep cost; `bench` reads it.
nlohmann::ordered_json host_json(const Progress& progress, unsigned jobs) {
  const double own = own_cpu_s();
  const double ran = std::max<double>(1, static_cast<double>(progress.ran));
  const double slots = progress.elapsed_s * (jobs == 0 ? usable_cores() : jobs);
  return {{"wall_s", progress.elapsed_s},
          {"points_run", progress.ran},
          {"points_cached", progress.cached},
          {"points_cpu_s", progress.cpu_s},
          {"own_cpu_s", own},
          {"busy_fraction", slots > 0 ? progress.process_s / slots : 0},
          {"overhead_ms_per_point", (progress.cpu_s + own - progress.model_cpu_s) / ran * 1e3}};
}

void print_summary(const SweepFile& file, const Progress& progress, const std::vector<Point>& all,
                   const std::vector<Evaluated>& results, const PointMaker& maker, const std::string& store) {
  const std::size_t good = progress.done - progress.failed - progress.lost;
  fmt::print(
      "# sweep {}: {} points, {} ok, {} failed, {} lost, {} refused; {} ran now, {} were in the store\n# store {}\n",
      file.name, progress.total, good, progress.failed, progress.lost, progress.refused, progress.ran, progress.cached,
      store);
  for (std::size_t o = 0; o < file.objectives.size(); ++o) {
    const Objective& objective = file.objectives[o];
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].objectives.empty() || std::isnan(results[i].objectives[o])) continue;
      const double value = results[i].objectives[o];
      const bool better = !best || (objective.goal == Goal::minimize ? value < results[*best].objectives[o]
                                                                     : value > results[*best].objectives[o]);
      if (better) best = i;
    }
    if (!best) continue;
    fmt::print("best {} ({}): {:.6g}{}{}\n", objective.name, to_string(objective.goal), results[*best].objectives[o],
               objective.unit.empty() ? "" : " ", objective.unit);
    for (std::size_t i = 0; i < file.axes.size(); ++i)
      fmt::print("  {} = {}\n", file.axes[i].name, all[*best].coordinates[i].label);
    fmt::print("  {}\n", maker.command(all[*best]));
  }
}

std::unique_ptr<Executor> executor_of(const SweepOptions& options, const Limits& limits) {
  if (options.executor == "slurm")
    return std::make_unique<SlurmExecutor>(
        SlurmExecutor::Options{options.store_path() + ".slurm", options.tasks, options.sbatch}, limits);
  if (options.executor == "parallel") {
    const std::vector<std::string> here{":"};
    return std::make_unique<ParallelExecutor>(ParallelExecutor::Options{options.hosts.empty() ? here : options.hosts,
                                                                        options.tool, options.jobs, options.tasks},
                                              limits);
  }
  return std::make_unique<LocalExecutor>(options.jobs, limits);
}

int run_sweep(const SweepOptions& options) {
  SweepFile file = load_sweep(options.file);
  options.limit(file.limits);
  if (options.dry_run) return dry_run(file), 0;
  const std::string path = options.store_path();
  std::error_code ignored;
  if (options.resume && !std::filesystem::exists(path, ignored))
    throw UsageError(fmt::format("--resume: there is no store '{}'", path),
                     "leave --resume out to start, or give --store");

  Exports exports(options);
  const Interrupt interrupt;
  Store store(path, Store::Mode::write);
  ProgressView view(Terminal(options.color == "never" ? ColorMode::never : ColorMode::automatic),
                    !options.quiet && !options.no_progress);
  Evaluator::Options how;
  const std::unique_ptr<Executor> executor = executor_of(options, file.limits);
  how.executor = executor.get();
  how.retry_failed = options.retry_failed;
  how.progress = [&view](const Progress& progress) { view.show(progress); };
  how.ended = [&](const std::string& command, const Record& record) {
    if (!options.quiet)
      view.say(fmt::format("kernbench: a point {} (exit code {}): {}\n  {}", to_string(record.status), record.exit_code,
                           record.error, command));
  };
  std::optional<Evaluator> evaluator(std::in_place, file, store, how, interrupt.flag());
  const std::vector<Point> all = points(file, evaluator->maker());
  std::vector<Evaluated> results;
  try {
    results = evaluator->evaluate(all);
  } catch (const Interrupted&) {
    throw RunEnded(ExitCode::interrupted, fmt::format("interrupted after {} of {} points; run it again to go on",
                                                      evaluator->progress().done, evaluator->progress().total));
  }
  view.clear();
  evaluator->check_objectives();
  const Progress progress = evaluator->progress();
  if (options.text_wanted()) print_summary(file, progress, all, results, evaluator->maker(), path);
  exports.write(store, file.name, host_json(progress, options.jobs));
  return static_cast<int>(progress.failed + progress.lost > 0 ? ExitCode::sweep_failed : ExitCode::success);
}
}  // namespace

int sweep_command(const Arguments& arguments) {
  if (asks_for_help(arguments)) return print_help();
  SweepOptions options;
  const po::options_description described = options.describe();
  parse(arguments, described, {"file"});
  options.check();
  if (!options.worker.empty()) {
    const Interrupt interrupt;
    try {
      run_worker(options.worker, options.results, options.jobs, interrupt.flag());
    } catch (const Interrupted&) {
      throw RunEnded(ExitCode::interrupted, "interrupted");
    }
    return 0;
  }
  if (options.export_from.empty()) return run_sweep(options);
  Exports exports(options);
  Store store(options.export_from, Store::Mode::read);
  exports.write(store, options.name, {});
  return 0;
}

}  // namespace kernbench
