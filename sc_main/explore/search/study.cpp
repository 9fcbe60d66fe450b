#include "sc_main/explore/search/study.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sc_main/explore/sweep/stored_json.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"
#include "waves/output_file.h"

namespace kernbench::search {
namespace {

sweep::SweepFile& named_after_search(sweep::SweepFile& file, const Options& options) {
  file.name += "/" + options.algorithm + "-" + std::to_string(options.seed);
  return file;
}

sweep::Evaluator::Options as_search(sweep::Evaluator::Options options) {
  options.kind = "search";
  return options;
}

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS search_runs(
  sweep TEXT PRIMARY KEY, algorithm TEXT NOT NULL, seed INTEGER NOT NULL, population INTEGER NOT NULL,
  points INTEGER NOT NULL, reference TEXT);
CREATE TABLE IF NOT EXISTS search_generations(
  sweep TEXT NOT NULL, generation INTEGER NOT NULL, evaluated INTEGER NOT NULL, front INTEGER NOT NULL,
  hypervolume REAL NOT NULL, front_keys TEXT NOT NULL, PRIMARY KEY(sweep, generation));
)";
}  // namespace

Space::Space(const std::vector<sweep::Axis>& axes) : axes_(axes) {
  for (const sweep::Axis& axis : axes) variables_.push_back({axis.size(), axis.numeric});
}

std::size_t Space::size() const {
  std::size_t size = 1;
  for (const Variable& variable : variables_) size *= variable.levels;
  return size;
}

sweep::Coordinates Space::coordinates(const Candidate& candidate) const {
  sweep::Coordinates out;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const sweep::Axis& axis = axes_[a];
    out.push_back(axis.values.empty() ? axis.at(candidate[a]) : axis.values[static_cast<std::size_t>(candidate[a])]);
  }
  return out;
}

Costs to_costs(const std::vector<sweep::Objective>& objectives, const std::vector<double>& figures) {
  Costs out;
  for (std::size_t i = 0; i < figures.size(); ++i)
    out.push_back(objectives[i].goal == sweep::Goal::minimize ? figures[i] : -figures[i]);
  return out;
}

std::size_t usual_points(std::size_t space) { return space == 0 ? 200 : std::max<std::size_t>(40, space * 15 / 100); }

std::size_t usual_population(std::size_t points) { return std::clamp<std::size_t>(points / 5, 8, 40) / 4 * 4; }

StudySearch::StudySearch(sweep::SweepFile& file, sweep::Store& store, const Options& options,
                         sweep::Evaluator::Options evaluation, const std::atomic<bool>& stop)
    : file_(named_after_search(file, options)),
      store_(store),
      options_(options),
      space_(file.axes),
      maker_(file),
      evaluator_(file, maker_, store, as_search(std::move(evaluation)), stop) {}

Result StudySearch::execute(const Shown& shown) {
  Problem problem;
  problem.variables = space_.variables();
  problem.objectives = file_.objectives.size();
  problem.allowed = [this](const Candidate& candidate) {
    const std::string refused = maker_.make(space_.coordinates(candidate)).refused;
    if (!refused.empty()) refusals_.insert(refused);
    return refused.empty();
  };
  problem.run = [this](const std::vector<Candidate>& candidates) { return run(candidates); };
  try {
    store_.database().exec(kTables);
    sweep::execute(store_.database(), "INSERT OR REPLACE INTO search_runs VALUES(?, ?, ?, ?, ?, NULL)", file_.name,
                   options_.algorithm, static_cast<std::int64_t>(options_.seed),
                   static_cast<std::int64_t>(options_.population), static_cast<std::int64_t>(options_.budget));
    Result result = search(problem, options_, [&](const Generation& generation, const std::vector<Found>& found) {
      const std::vector<FrontPoint> members = front(found);
      note(generation, members);
      if (shown) shown(generation, members);
    });
    if (result.generations.back().evaluated == 0 && !refusals_.empty()) {
      throw ConfigError(file_.where,
                        "no point is left: all that were looked at are refused by " +
                            join(std::vector<std::string>(refusals_.begin(), refusals_.end()), " or "),
                        "loosen a constraint, or give axes that it allows");
    }
    evaluator_.check_objectives();
    sweep::execute(store_.database(), "UPDATE search_runs SET reference = ? WHERE sweep = ?",
                   json_text(to_costs(file_.objectives, result.reference)), file_.name);
    sweep::execute(store_.database(), "DELETE FROM search_generations WHERE sweep = ? AND generation > ?", file_.name,
                   result.generations.back().number);
    return result;
  } catch (const SQLite::Exception& error) {
    throw OutputError("cannot write '" + store_.path() + "': " + error.what());
  }
}

std::size_t StudySearch::lost() const {
  return static_cast<std::size_t>(std::count_if(
      known_.begin(), known_.end(), [](const auto& one) { return one.second.status == sweep::Status::lost; }));
}

std::vector<std::optional<Costs>> StudySearch::run(const std::vector<Candidate>& candidates) {
  std::vector<sweep::Coordinates> coordinates;
  coordinates.reserve(candidates.size());
  for (const Candidate& candidate : candidates) coordinates.push_back(space_.coordinates(candidate));
  std::vector<sweep::Evaluated> evaluated = evaluator_.evaluate(coordinates);
  // A point that something outside has ended says nothing about the point: once more.
  const auto lost = [](const sweep::Evaluated& one) { return one.status == sweep::Status::lost; };
  if (std::any_of(evaluated.begin(), evaluated.end(), lost)) evaluated = evaluator_.evaluate(coordinates);
  std::vector<std::optional<Costs>> out;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const sweep::Evaluated& one = evaluated[i];
    const bool whole =
        std::none_of(one.objectives.begin(), one.objectives.end(), [](double v) { return std::isnan(v); });
    out.push_back(one.status == sweep::Status::ok && whole ? std::optional(to_costs(file_.objectives, one.objectives))
                                                           : std::nullopt);
    known_[candidates[i]] = one;
  }
  return out;
}

std::vector<FrontPoint> StudySearch::front(const std::vector<Found>& found) const {
  std::vector<FrontPoint> out;
  for (const Found& one : found) {
    const sweep::Evaluated& evaluated = known_.at(one.candidate);
    out.push_back({evaluated.key, space_.coordinates(one.candidate), evaluated.objectives});
  }
  std::sort(out.begin(), out.end(),
            [](const FrontPoint& a, const FrontPoint& b) { return a.objectives < b.objectives; });
  return out;
}

void StudySearch::note(const Generation& generation, const std::vector<FrontPoint>& front) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  for (const FrontPoint& point : front) keys.push_back(point.key);
  sweep::execute(store_.database(), "INSERT OR REPLACE INTO search_generations VALUES(?, ?, ?, ?, ?, ?)", file_.name,
                 generation.number, static_cast<std::int64_t>(generation.evaluated),
                 static_cast<std::int64_t>(generation.front), generation.hypervolume, json_text(keys));
}

}  // namespace kernbench::search
