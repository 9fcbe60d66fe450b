#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "sc_main/cli/execution_options.h"
#include "sc_main/explore/sweep/point_check.h"
#include "sc_main/explore/sweep/remote_plan.h"
#include "sc_main/process/cpu_time.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/interrupt.h"
#include "sc_main/run/terminal.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/units.h"

namespace kernbench {
namespace {
using namespace sweep;

struct SweepOptions {
  std::string file, store, csv, json, name, export_from, worker, results, color = "auto";
  ExecutionOptions execution;
  bool dry_run = false, resume = false, quiet = false, no_progress = false;

  void add_to(po::options_description_easy_init& add) {
    add("file", po::value(&file)->value_name("FILE"), "the sweep file; also without its name");
    add("store,o", po::value(&store)->value_name("FILE"),
        "where results go and are found again (default: beside the sweep file, with .sqlite at the end)");
    add("dry-run", po::bool_switch(&dry_run), "lists the points and checks that each could start; runs none");
    add("resume", po::bool_switch(&resume),
        "goes on with a store that must be there; without it, too, only what is missing runs");
    execution.add_to(add);
    add("worker", po::value(&worker)->value_name("PLAN"), "internal: runs a part of a sweep for --executor");
    add("results", po::value(&results)->value_name("FILE|-"), "internal: where --worker writes");
    add("csv", po::value(&csv)->value_name("FILE|-"), "the results as CSV");
    add("json", po::value(&json)->value_name("FILE|-"), "the results as JSON; '-' is standard output");
    add("export", po::value(&export_from)->value_name("STORE"), "only exports what a store holds; runs nothing");
    add("name", po::value(&name)->value_name("SWEEP"), "with --export: which sweep, where a store holds several");
    add("quiet,q", po::bool_switch(&quiet), "no progress and no list of failed points");
    add("no-progress", po::bool_switch(&no_progress), "no progress");
    add("color", po::value(&color)->value_name("auto|never"), "colours on standard error (default: auto)");
  }

  void check() const {
    if (!worker.empty()) {
      if (results.empty()) throw UsageError("--worker without --results", "'kernbench sweep --executor' gives both");
      return;
    }
    execution.check();
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
    if (dry_run && (resume || execution.retry_failed || !csv.empty() || !json.empty()))
      throw UsageError("--dry-run runs nothing, so there is nothing to resume or export", "leave it out");
  }

  std::string store_path() const { return store.empty() ? usual_store(file) : store; }
  bool text_wanted() const { return csv != "-" && json != "-"; }
  bool progress_wanted() const { return !quiet && !no_progress; }
};

constexpr const char* kSweepUsage =
    "Usage: kernbench sweep FILE [OPTIONS]\n       kernbench sweep --export STORE --csv FILE|-\n\n"
    "Runs every point of a sweep file, each in a process of its own, and keeps the results in a store; run again, "
    "it\n"
    "does what is missing. docs/sweep.md describes the file.\n\n{}\nExample:\n"
    "  kernbench sweep docs/examples/sweep.yaml --store sweep.sqlite\n";

void list_points(const SweepFile& file, const PointMaker& maker, const std::vector<Point>& all) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < file.axes.size(); ++i) {
    widths.push_back(file.axes[i].name.size());
    for (const Point& point : all) widths[i] = std::max(widths[i], point.coordinates[i].label.size());
  }
  show_format("#{:>7}", "point");
  for (std::size_t i = 0; i < widths.size(); ++i) show_format("  {:<{}}", file.axes[i].name, widths[i]);
  show_format("\n");
  std::size_t number = 0;
  for (const Point& point : all) {
    show_format(" {:>7}", point.refused.empty() ? std::to_string(number++) : "-");
    for (std::size_t i = 0; i < widths.size(); ++i) show_format("  {:<{}}", point.coordinates[i].label, widths[i]);
    show_format("{}\n", point.refused.empty() ? "" : "  refused: " + point.refused);
  }
  show_format("# {} point{} of sweep {}, {} more refused\n", number, number == 1 ? "" : "s", file.name,
              all.size() - number);
  for (const Point& point : all) {
    if (!point.refused.empty()) continue;
    show_format("# the first: {}\n", maker.command(point).text());
    return;
  }
}

class Exports {
 public:
  explicit Exports(const SweepOptions& options) : csv_(options.csv), json_(options.json) {}
  void write(Store& store, const std::string& sweep, const nlohmann::ordered_json& host) {
    if (csv_.wanted()) csv_.write(store.csv(sweep));
    if (!json_.wanted()) return;
    nlohmann::ordered_json all = store.json(sweep);
    if (!host.is_null()) all["host"] = host;
    json_.write(json_text(all, 2) + "\n");
  }

 private:
  DocumentOutput csv_, json_;
};

/// What the sweep cost; `bench` reads it.
nlohmann::ordered_json host_json(const Progress& progress, unsigned jobs) {
  const double own = process::cpu_s(process::own_usage());
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
  show_format("# sweep {}: {}, {} ok, {} failed, {} lost, {} refused; {} ran now, {} were in the store\n# store {}\n",
              file.name, counted(static_cast<std::int64_t>(progress.total), "point"), good, progress.failed,
              progress.lost, progress.refused, progress.ran, progress.cached, store);
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
    show_format("best {} ({}): {:.6g}{}{}\n", objective.name, to_string(objective.goal), results[*best].objectives[o],
                objective.unit.empty() ? "" : " ", objective.unit);
    for (std::size_t i = 0; i < file.axes.size(); ++i)
      show_format("  {} = {}\n", file.axes[i].name, all[*best].coordinates[i].label);
    show_format("  {}\n", maker.command(all[*best]).text());
  }
}

/// As a search does: a sweep of no points says nothing of the machine.
void refuse_none(const SweepFile& file, const std::vector<Point>& all) {
  std::set<std::string> reasons;
  for (const Point& point : all) {
    if (point.refused.empty()) return;
    reasons.insert(point.refused);
  }
  throw ConfigError(
      file.where,
      "no point is left: all are refused by " + join(std::vector<std::string>(reasons.begin(), reasons.end()), " or "),
      "loosen a constraint, or give axes that it allows");
}

int dry_run(const SweepOptions& options, const SweepFile& file) {
  PointMaker maker(file);
  const std::vector<Point> all = points(file, maker);
  list_points(file, maker, all);
  std::fflush(stdout);
  const Interrupt interrupt;
  ProgressView view(Terminal(), options.progress_wanted());
  try {
    check_points(
        file, maker, all, options.execution.jobs, [&view](const Progress& progress) { view.show(progress); },
        interrupt.flag());
  } catch (const Interrupted&) {
    throw RunEnded(ExitCode::interrupted, "interrupted before every point was checked");
  }
  view.clear();
  return 0;
}

int run_sweep(const SweepOptions& options) {
  SweepFile file = load_sweep(options.file);
  options.execution.limit(file.limits);
  if (options.dry_run) return dry_run(options, file);
  const std::string path = options.store_path();
  refuse_overwriting(file.inputs(), {{"the store", path}, {"--csv", options.csv}, {"--json", options.json}});
  std::error_code ignored;
  if (options.resume && !std::filesystem::exists(path, ignored))
    throw UsageError(fmt::format("--resume: there is no store '{}'", path),
                     "leave --resume out to start, or give --store");

  PointMaker maker(file);
  const std::vector<Point> all = points(file, maker);
  refuse_none(file, all);
  Exports exports(options);
  const Interrupt interrupt;
  Store store(path, Store::Mode::write);
  ProgressView view(Terminal(), options.progress_wanted());
  Evaluator::Options how;
  const std::unique_ptr<Executor> executor = options.execution.make(path, file.limits);
  how.executor = executor.get();
  how.retry_failed = options.execution.retry_failed;
  how.progress = [&view](const Progress& progress) { view.show(progress); };
  if (!options.quiet) how.ended = say_failures(view);
  std::optional<Evaluator> evaluator(std::in_place, file, maker, store, how, interrupt.flag());
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
  if (options.text_wanted()) print_summary(file, progress, all, results, maker, path);
  exports.write(store, file.name, host_json(progress, options.execution.jobs));
  if (!options.quiet) say(fmt::format("kernbench: 'kernbench report {}' draws it\n", path));
  return static_cast<int>(exit_of_points(progress.failed, progress.lost));
}
}  // namespace

int sweep_command(const Arguments& arguments) {
  SweepOptions options;
  if (!parse_or_help(arguments, kSweepUsage, described(options), {"file"})) return 0;
  options.check();
  if (!options.worker.empty()) {
    const Interrupt interrupt;
    try {
      run_worker(options.worker, options.results, options.execution.jobs, interrupt.flag());
    } catch (const Interrupted&) {
      throw RunEnded(ExitCode::interrupted, "interrupted");
    }
    return 0;
  }
  if (options.export_from.empty()) return run_sweep(options);
  refuse_same_files({{"the store", options.export_from}, {"--csv", options.csv}, {"--json", options.json}});
  Exports exports(options);
  Store store(options.export_from, Store::Mode::read);
  exports.write(store, options.name, {});
  return 0;
}

}  // namespace kernbench
