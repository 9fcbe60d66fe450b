#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sc_main/explore/search/pareto.h"

namespace kernbench::search {

/// What a search may choose in one axis.
struct Variable {
  std::size_t levels = 0;  ///< one of so many values; 0: any number from 0 to 1
  bool ordered = true;     ///< neighbouring levels are alike; false: names without an order
};

/// A choice in every axis: a level (a whole number), or a number from 0 to 1.
using Candidate = std::vector<double>;

/// What is searched.
struct Problem {
  std::vector<Variable> variables;
  std::size_t objectives = 2;
  /// Whether a candidate keeps the constraints. Costs nothing.
  std::function<bool(const Candidate&)> allowed = [](const Candidate&) { return true; };
  /// Runs candidates, each allowed and for the first time: the costs of each, or nothing if it failed.
  std::function<std::vector<std::optional<Costs>>(const std::vector<Candidate>&)> run;
};

struct Options {
  std::string algorithm = "nsga2";
  std::size_t population = 20;  ///< a multiple of four, at least eight
  std::size_t budget = 200;     ///< points that may be run; the search ends when they are
  unsigned generations = 0;     ///< at most so many; 0: until the budget is spent
  std::uint64_t seed = 1;
  std::optional<Costs> reference;  ///< of the hypervolume; else a tenth beyond the worst of the first generation
};

/// What had been found when a generation was complete.
struct Generation {
  unsigned number = 0;        ///< 0: the first population
  std::size_t evaluated = 0;  ///< points run so far, failed ones included
  std::size_t front = 0;      ///< of them, on the front
  double hypervolume = 0;     ///< of the front, up to the reference point
};

struct Found {
  Candidate candidate;
  Costs costs;
};

/// Called after each generation with the front so far, in the order in which it was found.
using Done = std::function<void(const Generation&, const std::vector<Found>& front)>;

struct Result {
  std::vector<Generation> generations;
  std::vector<Found> front;  ///< in the order in which they were found
  Costs reference;
  std::size_t failed = 0;
  bool exhausted = false;  ///< every candidate of the space was run
};

/// Names of the algorithms, the default first: of pagmo, and `random`, which only draws.
const std::vector<std::string>& algorithms();

/// Looks for the Pareto front of `problem`. The same problem and options give the same candidates in the same order.
///
/// The first population is a Latin hypercube over the levels of each variable. An algorithm asks again and again for a
/// candidate that is known: that costs nothing, and what its population holds twice gives way to a neighbour of the
/// front that has not been run (one variable changed; of an ordered one most often by a step), as long as there is one.
/// Throws std::invalid_argument on options that make no sense.
Result search(const Problem& problem, const Options& options, const Done& done = {});

/// Moves a population by a generation; one class for each algorithm of pagmo behind it.
class Evolver {
 public:
  /// Costs of candidates as the algorithm is to see them, all of one order of magnitude.
  using Judge = std::function<std::vector<Costs>(const std::vector<Candidate>&)>;
  virtual ~Evolver() = default;
  virtual void step() = 0;
  virtual std::vector<Candidate> population() const = 0;
  virtual void replace(std::size_t index, const Candidate& candidate, const Costs& costs) = 0;
};
/// REQUIRES: `algorithm` is one of algorithms() other than `random`; `costs` are those of `first`.
std::unique_ptr<Evolver> make_evolver(const std::string& algorithm, const std::vector<Variable>& variables,
                                      std::uint64_t seed, const std::vector<Candidate>& first,
                                      const std::vector<Costs>& costs, Evolver::Judge judge);

}  // namespace kernbench::search
