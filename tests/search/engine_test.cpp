#include "sc_main/explore/search/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace kernbench::search {
namespace {

/// A machine as an architect would sketch it: width and height of a mesh, rate of its links (eight steps), one of three
/// kinds of memory. Time falls with parallelism and bandwidth up to a floor; area grows with both.
struct Machine {
  std::vector<Variable> variables{{8, true}, {8, true}, {8, true}, {3, false}};
  std::size_t size() const { return 8 * 8 * 8 * 3; }

  Costs costs(const Candidate& c) const {
    const double pes = (c[0] + 1) * (c[1] + 1), rate = std::pow(2, c[2] / 2),
                 memory = std::vector<double>{1, 2.5, 1.6}[static_cast<std::size_t>(c[3])];
    const double compute = 400 / pes, transfer = 60 * (c[0] + c[1] + 2) / rate, loads = 90 / memory;
    return {std::max({compute, transfer, loads}) + 0.2 * (compute + transfer + loads),
            pes * (1 + 0.1 * rate) + 6 * memory};
  }
  double whole_hypervolume(const Costs& reference) const {
    std::vector<Costs> all;
    for (std::size_t n = 0; n < size(); ++n) {
      all.push_back(costs({static_cast<double>(n % 8), static_cast<double>(n / 8 % 8), static_cast<double>(n / 64 % 8),
                           static_cast<double>(n / 512)}));
    }
    return hypervolume(all, reference);
  }
  Costs reference() const {
    std::vector<Costs> all, front;
    for (std::size_t n = 0; n < size(); ++n) {
      all.push_back(costs({static_cast<double>(n % 8), static_cast<double>(n / 8 % 8), static_cast<double>(n / 64 % 8),
                           static_cast<double>(n / 512)}));
    }
    for (const std::size_t i : pareto_front(all)) front.push_back(all[i]);
    return reference_point(nadir(front));
  }
};

/// The machine as a problem; notes what is run.
struct Recorder {
  Machine machine;
  std::vector<Candidate> ran;
  std::size_t batches = 0;

  Problem problem() {
    Problem out;
    out.variables = machine.variables;
    out.run = [this](const std::vector<Candidate>& candidates) {
      ++batches;
      std::vector<std::optional<Costs>> costs;
      for (const Candidate& candidate : candidates) {
        ran.push_back(candidate);
        costs.emplace_back(machine.costs(candidate));
      }
      return costs;
    };
    return out;
  }
};

Options options(const std::string& algorithm, std::size_t budget, std::uint64_t seed = 1) {
  Options out;
  out.algorithm = algorithm;
  out.budget = budget;
  out.seed = seed;
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

/// Median over ten seeds of the share of the whole grid's hypervolume that a search reaches.
double reached(const std::string& algorithm, std::size_t budget) {
  const Machine machine;
  const Costs reference = machine.reference();
  const double whole = machine.whole_hypervolume(reference);
  std::vector<double> shares;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Recorder recorder;
    const Result result = search(recorder.problem(), options(algorithm, budget, seed));
    EXPECT_LE(recorder.ran.size(), budget);
    std::vector<Costs> front;
    for (const Found& found : result.front) front.push_back(found.costs);
    shares.push_back(hypervolume(front, reference) / whole);
  }
  return median(shares);
}

class EveryAlgorithm : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryAlgorithm, RunsNoCandidateTwiceAndKeepsToTheBudget) {
  Recorder recorder;
  const Result result = search(recorder.problem(), options(GetParam(), 100));
  EXPECT_EQ(recorder.ran.size(), 100U);
  EXPECT_EQ(std::set<Candidate>(recorder.ran.begin(), recorder.ran.end()).size(), 100U);
  EXPECT_EQ(result.generations.back().evaluated, 100U);
  EXPECT_EQ(result.generations.back().front, result.front.size());
}

TEST_P(EveryAlgorithm, DoesTheSameAgainWithTheSameSeed) {
  Recorder a, b, other;
  search(a.problem(), options(GetParam(), 80, 7));
  search(b.problem(), options(GetParam(), 80, 7));
  search(other.problem(), options(GetParam(), 80, 8));
  EXPECT_EQ(a.ran, b.ran);
  EXPECT_NE(a.ran, other.ran);
}

TEST_P(EveryAlgorithm, StaysOnTheLevels) {
  Recorder recorder;
  search(recorder.problem(), options(GetParam(), 150));
  for (const Candidate& candidate : recorder.ran) {
    for (std::size_t v = 0; v < candidate.size(); ++v) {
      EXPECT_EQ(candidate[v], std::floor(candidate[v]));
      EXPECT_GE(candidate[v], 0);
      EXPECT_LT(candidate[v], recorder.machine.variables[v].levels);
    }
  }
}

TEST_P(EveryAlgorithm, RunsNothingThatBreaksAConstraint) {
  Recorder recorder;
  Problem problem = recorder.problem();
  problem.allowed = [](const Candidate& c) { return c[0] >= c[1]; };
  search(problem, options(GetParam(), 120));
  EXPECT_EQ(recorder.ran.size(), 120U);
  for (const Candidate& candidate : recorder.ran) EXPECT_GE(candidate[0], candidate[1]);
}

TEST_P(EveryAlgorithm, CountsAFailedPointButNeverFindsIt) {
  Recorder recorder;
  Problem problem = recorder.problem();
  const auto run = problem.run;
  problem.run = [&](const std::vector<Candidate>& candidates) {
    auto costs = run(candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i][3] == 1) costs[i] = std::nullopt;
    }
    return costs;
  };
  const Result result = search(problem, options(GetParam(), 90));
  EXPECT_EQ(recorder.ran.size(), 90U);
  EXPECT_EQ(result.failed, std::count_if(recorder.ran.begin(), recorder.ran.end(), [](auto& c) { return c[3] == 1; }));
  EXPECT_GT(result.failed, 0U);
  for (const Found& found : result.front) EXPECT_NE(found.candidate[3], 1);
}

TEST_P(EveryAlgorithm, GrowsTheHypervolumeFromGenerationToGeneration) {
  Recorder recorder;
  std::vector<Generation> seen;
  search(recorder.problem(), options(GetParam(), 200), [&](const Generation& g, const std::vector<Found>& front) {
    EXPECT_EQ(front.size(), g.front);
    seen.push_back(g);
  });
  ASSERT_GT(seen.size(), 3U);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].number, i);
    EXPECT_GE(seen[i].hypervolume, seen[i - 1].hypervolume);
    EXPECT_GE(seen[i].evaluated, seen[i - 1].evaluated);
  }
  EXPECT_GT(seen.back().hypervolume, seen.front().hypervolume);
}

TEST_P(EveryAlgorithm, FindsAllOfASpaceSmallerThanItsBudget) {
  Problem problem;
  problem.variables = {{4, true}, {3, true}};
  std::set<Candidate> ran;
  problem.run = [&](const std::vector<Candidate>& candidates) {
    std::vector<std::optional<Costs>> costs;
    for (const Candidate& c : candidates) {
      EXPECT_TRUE(ran.insert(c).second);
      costs.emplace_back(Costs{c[0], 3 - c[0] + c[1]});
    }
    return costs;
  };
  Options small = options(GetParam(), 1000);
  small.population = 8;
  const Result result = search(problem, small);
  EXPECT_EQ(ran.size(), 12U);
  EXPECT_TRUE(result.exhausted);
  EXPECT_EQ(result.front.size(), 4U);
}

TEST_P(EveryAlgorithm, SearchesNumbersBetweenTheirBounds) {
  Problem problem;
  problem.variables = {{0, true}, {5, true}};
  problem.run = [](const std::vector<Candidate>& candidates) {
    std::vector<std::optional<Costs>> costs;
    for (const Candidate& c : candidates) {
      EXPECT_GE(c[0], 0);
      EXPECT_LE(c[0], 1);
      costs.emplace_back(Costs{c[0] + c[1], (1 - c[0]) * (1 - c[0]) + c[1]});
    }
    return costs;
  };
  const Result result = search(problem, options(GetParam(), 200));
  // The front is c1 = 0 and any c0; it reaches from end to end.
  for (const Found& found : result.front) EXPECT_EQ(found.candidate[1], 0);
  EXPECT_GT(result.front.size(), 20U);
}

TEST_P(EveryAlgorithm, EndsAfterItsGenerations) {
  Recorder recorder;
  Options few = options(GetParam(), 1000);
  few.generations = 3;
  EXPECT_EQ(search(recorder.problem(), few).generations.size(), 4U);
}

INSTANTIATE_TEST_SUITE_P(Search, EveryAlgorithm, ::testing::Values("nsga2", "nspso", "moead", "random"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Search, ReachesTheGridsHypervolumeWithAFewOfItsPoints) {
  const std::size_t budget = Machine().size() * 15 / 100;
  const double random = reached("random", budget);
  for (const std::string algorithm : {"nsga2", "nspso", "moead"}) {
    const double share = reached(algorithm, budget);
    RecordProperty(algorithm, std::to_string(share));
    EXPECT_GT(share, 0.98) << algorithm;
    EXPECT_GT(share, random) << algorithm;
  }
  EXPECT_LT(random, 0.98);
}

TEST(Search, HandsBatchesToTheRunner) {
  Recorder recorder;
  search(recorder.problem(), options("nsga2", 200));
  EXPECT_LT(recorder.batches, 40U);  // a generation is one batch of children, and one of what replaces doubles
}

TEST(Search, MeasuresUpToTheReferenceItIsGiven) {
  Recorder recorder;
  Options given = options("nsga2", 40);
  given.reference = Costs{1000, 1000};
  const Result result = search(recorder.problem(), given);
  EXPECT_EQ(result.reference, (Costs{1000, 1000}));
  std::vector<Costs> front;
  for (const Found& found : result.front) front.push_back(found.costs);
  EXPECT_DOUBLE_EQ(result.generations.back().hypervolume, hypervolume(front, {1000, 1000}));
}

void expect_refused(Problem problem, const Options& options, const std::string& text) {
  try {
    search(problem, options);
    FAIL() << "accepted: " << text;
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(error.what(), text);
  }
}
TEST(Search, RefusesOptionsThatMakeNoSense) {
  Recorder recorder;
  Options ten = options("nsga2", 40);
  ten.population = 10;
  expect_refused(recorder.problem(), ten, "a population of 10: give a multiple of 4, at least 8");
  expect_refused(recorder.problem(), options("nsga3", 40), "unknown algorithm 'nsga3'");
  Problem one = recorder.problem();
  one.objectives = 1;
  expect_refused(one, options("nsga2", 40), "a search needs at least two objectives");
  Problem none = recorder.problem();
  none.variables.clear();
  expect_refused(none, options("nsga2", 40), "a search needs at least one axis");
}

}  // namespace
}  // namespace kernbench::search
