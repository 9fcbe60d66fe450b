#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "sc_main/cli/execution_options.h"
#include "sc_main/cli/tool.h"
#include "sc_main/explore/search/study.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/interrupt.h"
#include "sc_main/run/terminal.h"
#include "sc_main/run/version.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/units.h"

namespace kernbench {
namespace {
using nlohmann::ordered_json;
using search::FrontPoint;
using search::Generation;

struct SearchOptions {
  std::string file, store, algorithm, json;
  std::optional<std::size_t> points, population;
  std::optional<unsigned> generations;
  std::optional<std::uint64_t> seed;
  ExecutionOptions execution;
  bool quiet = false, no_progress = false;

  void add_to(po::options_description_easy_init& add) {
    const auto number = [](auto& target, const char* name) {
      using Number = typename std::decay_t<decltype(target)>::value_type;
      return po::value<Number>()->value_name(name)->notifier([&target](Number value) { target = value; });
    };
    add("file", po::value(&file)->value_name("FILE"), "a sweep file with at least two objectives; first argument");
    add("store,o", po::value(&store)->value_name("FILE"),
        "results, and what is known already (default: beside the sweep file, with .sqlite at the end)");
    add("algorithm", po::value(&algorithm)->value_name("NAME"), "nsga2, nspso, moead or random (default: nsga2)");
    add("points", number(points, "N"), "points to run at most (default: 15 % of the grid, at least 40)");
    add("population", number(population, "N"), "a multiple of 4 (default: a fifth of the points, 8 to 40)");
    add("generations", number(generations, "N"), "ends earlier after so many (default: when the points are run)");
    add("seed", number(seed, "N"), "of the search; the same seed takes the same way (default: 1)");
    execution.add_to(add);
    add("json", po::value(&json)->value_name("FILE|-"), "generations and front as JSON; '-' is standard output");
    add("quiet,q", po::bool_switch(&quiet), "the front only");
    add("no-progress", po::bool_switch(&no_progress), "no progress line on a terminal");
  }
};

constexpr const char* kSearchUsage =
    "Usage: kernbench search FILE [OPTIONS]\n\nLooks for the Pareto front of a sweep file's objectives without "
    "running all of its grid. The store\nis shared with 'kernbench sweep': what is there is not run again, and an "
    "interrupted search goes on.\nThe file's key 'search' may set algorithm, points, population, generations, seed "
    "and reference;\noptions win. Exit code 6: points failed.\n\n{}\nExample:\n  kernbench search sweep.yaml "
    "--points 60 --seed 7\n";

std::string counted_points(std::size_t number) { return counted(static_cast<std::int64_t>(number), "point"); }

class SearchCommand {
 public:
  explicit SearchCommand(SearchOptions options)
      : given_(std::move(options)),
        file_(sweep::load_sweep(given_.file, sweep::Use::search)),
        view_(Terminal(), !given_.quiet && !given_.no_progress) {
    const search::Section section = search::read_section(file_);
    const std::size_t space = search::Space(file_.axes).size();
    options_.algorithm = !given_.algorithm.empty() ? given_.algorithm : section.algorithm.value_or("nsga2");
    const auto& names = search::algorithms();
    if (std::find(names.begin(), names.end(), options_.algorithm) == names.end())
      throw UsageError(fmt::format("--algorithm is {}", quote(options_.algorithm)),
                       suggest(options_.algorithm, names, "algorithms"));
    const auto pick = [](const auto& option, const auto& in_file, auto otherwise) {
      return option ? *option : in_file ? *in_file : otherwise;
    };
    options_.budget = pick(given_.points, section.points, search::usual_points(space));
    if (options_.budget == 0) throw UsageError("--points is '0'", "give an integer of at least 1");
    options_.population = pick(given_.population, section.population, search::usual_population(options_.budget));
    if (options_.population < 8 || options_.population % 4 != 0)
      throw UsageError(fmt::format("--population is '{}'", options_.population), "give a multiple of 4, at least 8");
    options_.generations = pick(given_.generations, section.generations, 0U);
    options_.seed = pick(given_.seed, section.seed, std::uint64_t{1});
    options_.reference = section.reference;
    if (given_.store.empty()) given_.store = usual_store(given_.file);
    refuse_overwriting(file_.inputs(), {{"the store", given_.store}, {"--json", given_.json}});
    given_.execution.limit(file_.limits);
  }

  int execute() {
    const std::string name = file_.name;
    DocumentOutput json(given_.json);
    sweep::Store store(given_.store, sweep::Store::Mode::write);
    sweep::Evaluator::Options evaluation;
    const std::unique_ptr<sweep::Executor> executor = given_.execution.make(given_.store, file_.limits);
    evaluation.executor = executor.get();
    evaluation.retry_failed = given_.execution.retry_failed;
    evaluation.progress = [this](const sweep::Progress& progress) { view_.show(progress); };
    if (!given_.quiet) evaluation.ended = say_failures(view_);
    search::StudySearch study(file_, store, options_, evaluation, interrupt_.flag());
    print_head(name, study.space().size());
    search::Result result;
    try {
      result = study.execute([this](const Generation& g, const std::vector<FrontPoint>& f) { add(g, f); });
    } catch (const sweep::Interrupted&) {
      throw RunEnded(ExitCode::interrupted,
                     fmt::format("interrupted after {}; run it again to go on", counted_points(study.progress().done)));
    }
    const std::vector<FrontPoint> front = study.front(result.front);
    if (!quiet_text()) print_front(front);
    const ordered_json out = to_json(name, result, front);
    json.write(json_text(out, 2) + "\n");
    say_end(result, study.progress());
    const std::size_t lost = study.lost();
    return static_cast<int>(exit_of_points(result.failed - lost, lost));
  }

 private:
  bool quiet_text() const { return given_.json == "-"; }

  void print_head(const std::string& name, std::size_t space) const {
    if (quiet_text() || given_.quiet) return;
    show_format("# search of {}: {}, seed {}, population {}, at most {} of {} points\n", name, options_.algorithm,
                options_.seed, options_.population, space == 0 ? options_.budget : std::min(options_.budget, space),
                space == 0 ? "infinitely many" : std::to_string(space));
    show_format("# {:>10}{:>12}{:>8}  hypervolume\n", "generation", "evaluated", "front");
  }

  void add(const Generation& generation, const std::vector<FrontPoint>& front) {
    ordered_json members = ordered_json::array();
    for (const FrontPoint& point : front) members.push_back(point.key);
    generations_.push_back({{"generation", generation.number},
                            {"evaluated", generation.evaluated},
                            {"hypervolume", generation.hypervolume},
                            {"front", std::move(members)}});
    if (quiet_text() || given_.quiet) return;
    show_format("  {:>10}{:>12}{:>8}  {:.6g}\n", generation.number, generation.evaluated, generation.front,
                generation.hypervolume);
    std::fflush(stdout);
  }

  void print_front(const std::vector<FrontPoint>& front) const {
    std::vector<std::vector<std::string>> rows(1);
    for (const sweep::Axis& axis : file_.axes) rows[0].push_back(axis.name);
    for (const sweep::Objective& objective : file_.objectives)
      rows[0].push_back(objective.unit.empty() ? objective.name
                                               : fmt::format("{} ({})", objective.name, objective.unit));
    rows[0].emplace_back("key");
    for (const FrontPoint& point : front) {
      std::vector<std::string>& row = rows.emplace_back();
      for (const sweep::AxisValue& value : point.coordinates) row.push_back(value.label);
      for (const double figure : point.objectives) row.push_back(fmt::format("{:.6g}", figure));
      row.push_back(point.key);
    }
    show_format("# Pareto front: {}\n", counted_points(front.size()));
    std::vector<std::size_t> widths(rows[0].size(), 0);
    for (const auto& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      show_format("{}", r == 0 ? "#" : " ");
      for (std::size_t i = 0; i < rows[r].size(); ++i) show_format(" {:>{}}", rows[r][i], widths[i]);
      show_format("\n");
    }
  }

  ordered_json to_json(const std::string& name, const search::Result& result,
                       const std::vector<FrontPoint>& front) const {
    ordered_json out;
    out["version"] = kVersion;
    out["name"] = name;
    out["algorithm"] = options_.algorithm;
    out["seed"] = options_.seed;
    out["population"] = options_.population;
    out["points"] = options_.budget;
    out["axes"] = file_.axes_json();
    out["objectives"] = file_.objectives_json();
    out["reference"] = search::to_costs(file_.objectives, result.reference);
    out["generations"] = generations_;
    out["front"] = ordered_json::array();
    for (const FrontPoint& point : front) {
      ordered_json figures;
      for (std::size_t i = 0; i < file_.objectives.size(); ++i) figures[file_.objectives[i].name] = point.objectives[i];
      out["front"].push_back({{"key", point.key},
                              {"coordinates", sweep::to_json(file_.axes, point.coordinates)},
                              {"objectives", std::move(figures)}});
    }
    out["failed"] = result.failed;
    out["exhausted"] = result.exhausted;
    return out;
  }

  void say_end(const search::Result& result, const sweep::Progress& progress) const {
    if (given_.quiet) return;
    if (result.failed > 0)
      say(fmt::format("kernbench: {} failed; the store says why\n", counted_points(result.failed)));
    if (result.exhausted) say("kernbench: every point that the constraints allow has been run\n");
    say(fmt::format("kernbench: {}, {} of them from the store; see 'kernbench report {} --sweep {}'\n",
                    counted_points(result.generations.back().evaluated), progress.cached, given_.store, file_.name));
  }

  SearchOptions given_;
  sweep::SweepFile file_;
  search::Options options_;
  sweep::ProgressView view_;
  const Interrupt interrupt_;
  ordered_json generations_ = ordered_json::array();
};
}  // namespace

int search_command(const Arguments& arguments) {
  SearchOptions options;
  if (!parse_or_help(arguments, kSearchUsage, described(options), {"file"})) return 0;
  if (options.file.empty()) throw UsageError("no sweep file given", "see 'kernbench search --help'");
  options.execution.check();
  return SearchCommand(std::move(options)).execute();
}

}  // namespace kernbench
