// Everything that needs pagmo, which is slow to compile.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <pagmo/algorithm.hpp>
#include <pagmo/algorithms/moead.hpp>
#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/algorithms/nspso.hpp>
#include <pagmo/bfe.hpp>
#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/threading.hpp>
#include <pagmo/types.hpp>
#include <pagmo/utils/hypervolume.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sc_main/explore/search/engine.h"

namespace kernbench::search {
namespace {

/// How candidates look to pagmo. Levels without an order are whole numbers for an algorithm that knows those, and come
/// last; of all other variables the number's whole part is the level, so that small steps lead to neighbours.
class Coding {
 public:
  Coding(const std::vector<Variable>& variables, bool whole_numbers)
      : variables_(variables), whole_numbers_(whole_numbers) {
    for (const bool last : {false, true}) {
      for (std::size_t v = 0; v < variables.size(); ++v) {
        if (is_whole(v) == last) order_.push_back(v);
      }
    }
  }
  std::size_t size() const { return order_.size(); }
  std::size_t whole() const {
    return static_cast<std::size_t>(
        std::count_if(order_.begin(), order_.end(), [this](std::size_t v) { return is_whole(v); }));
  }
  std::pair<pagmo::vector_double, pagmo::vector_double> bounds() const {
    pagmo::vector_double low(size(), 0), high;
    for (const std::size_t v : order_) {
      const auto levels = static_cast<double>(variables_[v].levels);
      high.push_back(levels == 0 ? 1 : is_whole(v) ? levels - 1 : levels);
    }
    return {low, high};
  }
  Candidate decode(const double* genes) const {
    Candidate out(size());
    for (std::size_t i = 0; i < size(); ++i) {
      const auto levels = static_cast<double>(variables_[order_[i]].levels);
      out[order_[i]] = levels == 0 ? genes[i] : std::clamp(std::floor(genes[i]), 0.0, levels - 1);
    }
    return out;
  }
  pagmo::vector_double encode(const Candidate& candidate) const {
    pagmo::vector_double out;
    for (const std::size_t v : order_)
      out.push_back(candidate[v] + (variables_[v].levels > 0 && !is_whole(v) ? 0.5 : 0.0));
    return out;
  }

 private:
  bool is_whole(std::size_t v) const { return whole_numbers_ && variables_[v].levels > 0 && !variables_[v].ordered; }

  const std::vector<Variable> variables_;
  const bool whole_numbers_;
  std::vector<std::size_t> order_;
};

/// What pagmo copies about: the problem and its batch evaluator both point here.
struct Shared {
  Coding coding;
  std::size_t objectives;
  Evolver::Judge judge;
};

struct PagmoProblem {
  const Shared* shared = nullptr;

  pagmo::vector_double fitness(const pagmo::vector_double& genes) const {
    return shared->judge({shared->coding.decode(genes.data())}).front();
  }
  std::pair<pagmo::vector_double, pagmo::vector_double> get_bounds() const { return shared->coding.bounds(); }
  pagmo::vector_double::size_type get_nobj() const { return shared->objectives; }
  pagmo::vector_double::size_type get_nix() const { return shared->coding.whole(); }
  pagmo::thread_safety get_thread_safety() const { return pagmo::thread_safety::none; }
  template <typename Archive>
  void serialize(Archive&, unsigned) {}  // asked for by pagmo, never called
};

struct PagmoBatch {
  const Shared* shared = nullptr;

  pagmo::vector_double operator()(const pagmo::problem&, const pagmo::vector_double& genes) const {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < genes.size(); i += shared->coding.size())
      candidates.push_back(shared->coding.decode(genes.data() + i));
    pagmo::vector_double out;
    for (const Costs& costs : shared->judge(candidates)) out.insert(out.end(), costs.begin(), costs.end());
    return out;
  }
  template <typename Archive>
  void serialize(Archive&, unsigned) {}  // asked for by pagmo, never called
};

/// One generation at a time of the algorithm called `name`; its random state lives in the object.
pagmo::algorithm make_algorithm(const std::string& name, const Shared& shared, std::size_t population, unsigned seed) {
  const pagmo::bfe batch{PagmoBatch{&shared}};
  if (name == "nsga2") {
    // Each variable of a child mutates once in so many children as there are variables, the usual choice.
    pagmo::nsga2 nsga2(1, 0.95, 10, 1.0 / static_cast<double>(shared.coding.size()), 20, seed);
    nsga2.set_bfe(batch);
    return pagmo::algorithm(nsga2);
  }
  if (name == "nspso") {
    pagmo::nspso nspso(1, 0.6, 2, 2, 1, 0.5, 60, "crowding distance", true, seed);
    nspso.set_bfe(batch);
    return pagmo::algorithm(nspso);
  }
  // MOEA/D judges one child after the other: what it asks for comes one point at a time.
  if (name == "moead")
    return pagmo::algorithm(pagmo::moead(1, "low discrepancy", "tchebycheff", std::min<std::size_t>(20, population - 1),
                                         1, 0.5, 20, 0.9, 2, true, seed));
  throw std::invalid_argument("unknown algorithm '" + name + "'");
}

class PagmoEvolver : public Evolver {
 public:
  PagmoEvolver(const std::string& name, const std::vector<Variable>& variables, std::uint64_t seed,
               const std::vector<Candidate>& first, const std::vector<Costs>& costs, Judge judge)
      : shared_{Coding(variables, name == "nsga2"), costs.front().size(), std::move(judge)},
        algorithm_(make_algorithm(name, shared_, first.size(), static_cast<unsigned>(seed))),
        population_(pagmo::problem(PagmoProblem{&shared_}), 0U, static_cast<unsigned>(seed)) {
    for (std::size_t i = 0; i < first.size(); ++i) population_.push_back(shared_.coding.encode(first[i]), costs[i]);
  }

  void step() override { population_ = algorithm_.evolve(population_); }

  std::vector<Candidate> population() const override {
    std::vector<Candidate> out;
    for (const pagmo::vector_double& genes : population_.get_x()) out.push_back(shared_.coding.decode(genes.data()));
    return out;
  }
  void replace(std::size_t index, const Candidate& candidate, const Costs& costs) override {
    population_.set_xf(index, shared_.coding.encode(candidate), costs);
  }

 private:
  const Shared shared_;
  pagmo::algorithm algorithm_;
  pagmo::population population_;
};
}  // namespace

std::unique_ptr<Evolver> make_evolver(const std::string& algorithm, const std::vector<Variable>& variables,
                                      std::uint64_t seed, const std::vector<Candidate>& first,
                                      const std::vector<Costs>& costs, Evolver::Judge judge) {
  return std::make_unique<PagmoEvolver>(algorithm, variables, seed, first, costs, std::move(judge));
}

double hypervolume(const std::vector<Costs>& points, const Costs& reference) {
  std::vector<pagmo::vector_double> inside;
  for (const Costs& point : points) {
    bool within = true;
    for (std::size_t i = 0; i < reference.size(); ++i) within = within && point[i] < reference[i];
    if (within) inside.push_back(point);
  }
  return inside.empty() ? 0 : pagmo::hypervolume(inside, true).compute(reference);
}

}  // namespace kernbench::search
