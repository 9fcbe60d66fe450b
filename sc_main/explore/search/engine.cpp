#include "sc_main/explore/search/engine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>

namespace kernbench::search {
namespace {

/// Cost, in ranges of the first population, of what failed, breaks a constraint or is beyond the budget.
constexpr double kOutOfQuestion = 1e6;
/// Draws without success before the rest of a finite space is listed, or a continuous one is called exhausted.
constexpr unsigned kDraws = 200;
constexpr std::size_t kMostListed = 1U << 20U;
/// Generations in a row that may pass without a new point.
constexpr unsigned kIdleGenerations = 25;

/// Everything that was run, and the choice of what is run next.
class Archive {
 public:
  Archive(const Problem& problem, const Options& options)
      : problem_(problem), options_(options), random_(options.seed) {
    for (const Variable& variable : problem.variables) {
      if (variable.levels == 0 || size_ > kMostListed / variable.levels) {
        size_ = 0;
        break;
      }
      size_ *= variable.levels;
    }
  }

  bool spent() const { return known_.size() >= options_.budget; }
  bool exhausted() const { return exhausted_; }
  std::size_t evaluated() const { return known_.size(); }
  std::size_t failed() const { return failed_; }
  const std::vector<Found>& found() const { return found_; }
  bool knows(const Candidate& candidate) const { return known_.count(candidate) != 0; }

  /// Runs what is new and allowed, in order, as far as the budget goes.
  void run(const std::vector<Candidate>& candidates) {
    std::vector<Candidate> fresh;
    std::set<Candidate> chosen;
    for (const Candidate& candidate : candidates) {
      if (known_.size() + fresh.size() >= options_.budget) break;
      if (!knows(candidate) && problem_.allowed(candidate) && chosen.insert(candidate).second)
        fresh.push_back(candidate);
    }
    if (fresh.empty()) return;
    const std::vector<std::optional<Costs>> costs = problem_.run(fresh);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      known_[fresh[i]] = costs[i];
      if (costs[i])
        found_.push_back({fresh[i], *costs[i]});
      else
        ++failed_;
    }
  }

  /// As the algorithm sees them.
  std::vector<Costs> judge(const std::vector<Candidate>& candidates) {
    run(candidates);
    std::vector<Costs> out;
    out.reserve(candidates.size());
    for (const Candidate& candidate : candidates) out.push_back(seen(candidate));
    return out;
  }
  Costs seen(const Candidate& candidate) const {
    const auto known = known_.find(candidate);
    Costs out(problem_.objectives, kOutOfQuestion);
    if (known == known_.end() || !known->second) return out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = (known->second->at(i) - low_[i]) / range_[i];
    return out;
  }
  /// What was found so far sets the scale of costs.
  void set_scale() {
    low_.assign(problem_.objectives, 0);
    range_.assign(problem_.objectives, 1);
    if (found_.empty()) return;
    Costs high = low_ = found_.front().costs;
    for (const Found& one : found_) {
      for (std::size_t i = 0; i < low_.size(); ++i) {
        low_[i] = std::min(low_[i], one.costs[i]);
        high[i] = std::max(high[i], one.costs[i]);
      }
    }
    for (std::size_t i = 0; i < low_.size(); ++i) range_[i] = high[i] > low_[i] ? high[i] - low_[i] : 1;
  }

  /// One point in each of `count` slices of every variable, in random combinations; what breaks a constraint or comes
  /// twice is drawn anew.
  std::vector<Candidate> hypercube(std::size_t count) {
    const std::size_t dimensions = problem_.variables.size();
    std::vector<Candidate> out(count, Candidate(dimensions));
    for (std::size_t d = 0; d < dimensions; ++d) {
      std::vector<std::size_t> slice(count);
      std::iota(slice.begin(), slice.end(), std::size_t{0});
      std::shuffle(slice.begin(), slice.end(), random_);
      for (std::size_t i = 0; i < count; ++i)
        out[i][d] = level(d, (static_cast<double>(slice[i]) + unit()) / static_cast<double>(count));
    }
    // Of ordered variables the ends are where extremes of the objectives lie more often than not.
    if (count >= 4) {
      for (std::size_t d = 0; d < dimensions; ++d) {
        if (!problem_.variables[d].ordered) continue;
        out[0][d] = level(d, 0);
        out[1][d] = level(d, 1);
      }
    }
    std::set<Candidate> chosen;
    for (Candidate& candidate : out) {
      if (problem_.allowed(candidate) && chosen.insert(candidate).second) continue;
      const std::optional<Candidate> other = unseen(chosen);
      if (!other) break;
      candidate = *other;
      chosen.insert(candidate);
    }
    return {chosen.begin(), chosen.end()};
  }

  /// Any candidate that is allowed, was not run and is not in `besides`; nothing if there is none.
  std::optional<Candidate> unseen(const std::set<Candidate>& besides) {
    Candidate candidate(problem_.variables.size());
    for (unsigned draw = 0; draw < kDraws; ++draw) {
      for (std::size_t d = 0; d < candidate.size(); ++d) candidate[d] = level(d, unit());
      if (fits(candidate, besides)) return candidate;
    }
    std::vector<Candidate> rest;
    for (std::size_t n = 0; n < size_; ++n) {
      std::size_t digits = n;
      for (std::size_t d = 0; d < candidate.size(); ++d) {
        candidate[d] = static_cast<double>(digits % problem_.variables[d].levels);
        digits /= problem_.variables[d].levels;
      }
      if (fits(candidate, besides)) rest.push_back(candidate);
    }
    exhausted_ = rest.empty() && besides.empty();
    if (rest.empty()) return std::nullopt;
    return rest[below(rest.size())];
  }

  /// A candidate that is not known and differs from a member of the front in one variable; else any unseen().
  std::optional<Candidate> neighbour(const std::set<Candidate>& besides) {
    const std::vector<std::size_t> front = front_of_found();
    for (unsigned draw = 0; draw < kDraws && !front.empty(); ++draw) {
      Candidate candidate = found_[front[below(front.size())]].candidate;
      const std::size_t d = below(candidate.size());
      const Variable& variable = problem_.variables[d];
      if (variable.levels == 0) {
        candidate[d] = std::clamp(candidate[d] + 0.2 * (unit() - 0.5), 0.0, 1.0);
      } else if (variable.ordered && unit() < 0.75) {
        candidate[d] += unit() < 0.5 ? -1 : 1;
        if (candidate[d] < 0 || candidate[d] >= static_cast<double>(variable.levels)) continue;
      } else {
        candidate[d] = level(d, unit());
      }
      if (fits(candidate, besides)) return candidate;
    }
    return unseen(besides);
  }

  std::vector<std::size_t> front_of_found() const {
    std::vector<Costs> costs;
    for (const Found& one : found_) costs.push_back(one.costs);
    return pareto_front(costs);
  }

 private:
  // Not by the standard library's distributions: a search is to be the same everywhere.
  double unit() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(unit() * static_cast<double>(count)); }
  double level(std::size_t d, double u) const {
    const std::size_t levels = problem_.variables[d].levels;
    return levels == 0 ? u : std::min(std::floor(u * static_cast<double>(levels)), static_cast<double>(levels - 1));
  }
  bool fits(const Candidate& candidate, const std::set<Candidate>& besides) const {
    return !knows(candidate) && besides.count(candidate) == 0 && problem_.allowed(candidate);
  }

  const Problem& problem_;
  const Options& options_;
  std::mt19937_64 random_;
  std::size_t size_ = 1;  ///< candidates of a finite space; 0: too many to list
  std::map<Candidate, std::optional<Costs>> known_;
  std::vector<Found> found_;
  std::size_t failed_ = 0;
  bool exhausted_ = false;
  Costs low_, range_;
};

class Search {
 public:
  Search(const Problem& problem, const Options& options, const Done& done)
      : problem_(problem), options_(options), done_(done), archive_(problem, options) {}

  Result execute() {
    check();
    const std::vector<Candidate> first = archive_.hypercube(std::min(options_.population, options_.budget));
    archive_.run(first);
    archive_.set_scale();
    complete();
    if (options_.algorithm == "random")
      draw();
    else if (first.size() == options_.population)
      evolve(first);
    result_.failed = archive_.failed();
    result_.exhausted = archive_.exhausted() || first.size() < std::min(options_.population, options_.budget);
    return std::move(result_);
  }

 private:
  void check() const {
    const auto& names = algorithms();
    if (std::find(names.begin(), names.end(), options_.algorithm) == names.end())
      throw std::invalid_argument("unknown algorithm '" + options_.algorithm + "'");
    if (options_.population < 8 || options_.population % 4 != 0)
      throw std::invalid_argument("a population of " + std::to_string(options_.population) +
                                  ": give a multiple of 4, at least 8");
    if (problem_.objectives < 2) throw std::invalid_argument("a search needs at least two objectives");
    if (problem_.variables.empty()) throw std::invalid_argument("a search needs at least one axis");
  }

  bool over() const {
    const bool last = options_.generations != 0 && result_.generations.back().number >= options_.generations;
    return archive_.spent() || archive_.exhausted() || last;
  }

  void draw() {
    while (!over()) {
      std::set<Candidate> next;
      while (next.size() < options_.population) {
        const std::optional<Candidate> candidate = archive_.unseen(next);
        if (!candidate) break;
        next.insert(*candidate);
      }
      if (next.empty()) return;
      archive_.run({next.begin(), next.end()});
      complete();
    }
  }

  void evolve(const std::vector<Candidate>& first) {
    const std::unique_ptr<Evolver> evolver =
        make_evolver(options_.algorithm, problem_.variables, options_.seed, first, archive_.judge(first),
                     [this](const std::vector<Candidate>& candidates) { return archive_.judge(candidates); });
    unsigned idle = 0;
    while (!over() && idle < kIdleGenerations) {
      const std::size_t before = archive_.evaluated();
      evolver->step();
      replace_doubles(*evolver);
      idle = archive_.evaluated() == before ? idle + 1 : 0;
      complete();
    }
  }

  void replace_doubles(Evolver& evolver) {
    const std::vector<Candidate> population = evolver.population();
    std::set<Candidate> seen, fresh;
    std::vector<std::pair<std::size_t, Candidate>> changes;
    for (std::size_t i = 0; i < population.size(); ++i) {
      if (seen.insert(population[i]).second || archive_.evaluated() + fresh.size() >= options_.budget) continue;
      const std::optional<Candidate> other = archive_.neighbour(fresh);
      if (!other) break;
      fresh.insert(*other);
      changes.emplace_back(i, *other);
    }
    std::vector<Candidate> order;
    order.reserve(changes.size());
    for (const auto& [index, candidate] : changes) order.push_back(candidate);
    archive_.run(order);
    for (const auto& [index, candidate] : changes) evolver.replace(index, candidate, archive_.seen(candidate));
  }

  /// Notes what the generation that has just ended came to.
  void complete() {
    result_.front.clear();
    std::vector<Costs> costs;
    for (const std::size_t i : archive_.front_of_found()) {
      result_.front.push_back(archive_.found()[i]);
      costs.push_back(archive_.found()[i].costs);
    }
    if (result_.reference.empty()) set_reference();
    Generation generation;
    generation.number = static_cast<unsigned>(result_.generations.size());
    generation.evaluated = archive_.evaluated();
    generation.front = costs.size();
    if (!costs.empty()) generation.hypervolume = hypervolume(costs, result_.reference);
    result_.generations.push_back(generation);
    if (done_) done_(generation, result_.front);
  }
  /// As soon as there is a point to take it from.
  void set_reference() {
    if (options_.reference) {
      result_.reference = *options_.reference;
    } else if (!archive_.found().empty()) {
      std::vector<Costs> all;
      for (const Found& one : archive_.found()) all.push_back(one.costs);
      result_.reference = reference_point(nadir(all));
    }
  }

  const Problem& problem_;
  const Options& options_;
  const Done& done_;
  Archive archive_;
  Result result_;
};
}  // namespace

const std::vector<std::string>& algorithms() {
  static const std::vector<std::string> names{"nsga2", "nspso", "moead", "random"};
  return names;
}

Result search(const Problem& problem, const Options& options, const Done& done) {
  return Search(problem, options, done).execute();
}

}  // namespace kernbench::search
