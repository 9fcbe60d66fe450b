#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sc_main/explore/search/engine.h"
#include "sc_main/explore/sweep/evaluator.h"
#include "sc_main/explore/sweep/store.h"
#include "sc_main/explore/sweep/sweep_file.h"

namespace kernbench::search {

/// What the `search` key of a sweep file says; what it leaves out is empty.
struct Section {
  std::optional<std::string> algorithm;
  std::optional<std::size_t> points, population;
  std::optional<unsigned> generations;
  std::optional<std::uint64_t> seed;
  std::optional<Costs> reference;  ///< one figure per objective, as costs
};
/// Throws ConfigError with every problem found.
Section read_section(const sweep::SweepFile& file);

/// The axes of a sweep file as the variables of a search, and back.
class Space {
 public:
  explicit Space(const std::vector<sweep::Axis>& axes);
  const std::vector<Variable>& variables() const { return variables_; }
  /// Candidates of the whole space; 0: an axis is continuous.
  std::size_t size() const;
  sweep::Coordinates coordinates(const Candidate& candidate) const;

 private:
  const std::vector<sweep::Axis>& axes_;
  std::vector<Variable> variables_;
};

/// A member of the front, as it is shown.
struct FrontPoint {
  std::string key;
  sweep::Coordinates coordinates;
  std::vector<double> objectives;  ///< in the order of the file
};

/// A search of a sweep file whose points and generations go to a store.
///
/// The store is the cache: a search that was interrupted takes the same way again, at no cost as far as it had come.
/// Its points are listed there under "NAME/ALGORITHM-SEED"; generations in the tables search_runs and
/// search_generations (docs/search.md).
class StudySearch {
 public:
  /// Sets file.name to that of the search. The arguments outlive it.
  StudySearch(sweep::SweepFile& file, sweep::Store& store, const Options& options, sweep::Evaluator::Options evaluation,
              const std::atomic<bool>& stop);

  using Shown = std::function<void(const Generation&, const std::vector<FrontPoint>&)>;
  /// Throws what Evaluator::evaluate throws.
  Result execute(const Shown& shown = {});
  /// The front of a result, sorted by the first objective.
  std::vector<FrontPoint> front(const std::vector<Found>& found) const;
  const Space& space() const { return space_; }
  const sweep::Progress& progress() const { return evaluator_.progress(); }
  std::size_t lost() const;  ///< of the points that failed: those that something outside has ended, again and again

 private:
  std::vector<std::optional<Costs>> run(const std::vector<Candidate>& candidates);
  void note(const Generation& generation, const std::vector<FrontPoint>& front);

  const sweep::SweepFile& file_;
  sweep::Store& store_;
  const Options options_;
  const Space space_;
  sweep::PointMaker maker_;
  sweep::Evaluator evaluator_;
  std::map<Candidate, sweep::Evaluated> known_;
  std::set<std::string> refusals_;  // why points were not allowed
};

/// As costs: figures of objectives to be large change their sign. The same the other way.
/// None of none, as of a search that has found nothing.
Costs to_costs(const std::vector<sweep::Objective>& objectives, const std::vector<double>& figures);

/// Points to run if nobody says: 15 % of a finite space, at least 40; of an infinite one 200.
std::size_t usual_points(std::size_t space);
/// A fifth of the points, from 8 to 40, in fours.
std::size_t usual_population(std::size_t points);

}  // namespace kernbench::search
