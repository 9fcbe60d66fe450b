#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "sc_main/explore/search/engine.h"

namespace kernbench::search {
namespace {

/// The recorded grid of a shipped study: every point that its constraints allow, with its objectives.
class Recorded {
 public:
  /// `axes` and `objectives`: columns of the file; all objectives are to be small.
  Recorded(const std::string& study, const std::vector<std::string>& axes, const std::vector<std::string>& objectives) {
    std::ifstream file(std::string(KERNBENCH_STUDIES) + "/" + study + "/results.csv");
    std::string line;
    std::getline(file, line);
    const std::vector<std::string> head = split(line);
    const auto column = [&](const std::string& name) {
      const auto found = std::find(head.begin(), head.end(), name);
      EXPECT_NE(found, head.end()) << name;
      return static_cast<std::size_t>(found - head.begin());
    };
    std::vector<std::size_t> from, to;
    for (const std::string& axis : axes) from.push_back(column(axis));
    for (const std::string& objective : objectives) to.push_back(column(objective));
    levels_.resize(axes.size());
    while (std::getline(file, line)) {
      const std::vector<std::string> row = split(line);
      Candidate candidate;
      for (std::size_t a = 0; a < axes.size(); ++a) candidate.push_back(level(a, row.at(from[a])));
      Costs costs;
      for (const std::size_t c : to) costs.push_back(std::stod(row.at(c)));
      points_[candidate] = costs;
    }
  }

  std::size_t size() const { return points_.size(); }
  Costs reference() const {
    const std::vector<Costs> everything = all();
    std::vector<Costs> front;
    for (const std::size_t i : pareto_front(everything)) front.push_back(everything[i]);
    return reference_point(nadir(front));
  }
  double whole() const { return hypervolume(all(), reference()); }

  Problem problem() const {
    Problem out;
    for (const auto& values : levels_) out.variables.push_back({values.size(), true});
    out.allowed = [this](const Candidate& candidate) { return points_.count(candidate) != 0; };
    out.run = [this](const std::vector<Candidate>& candidates) {
      std::vector<std::optional<Costs>> costs;
      for (const Candidate& candidate : candidates) costs.emplace_back(points_.at(candidate));
      return costs;
    };
    return out;
  }

 private:
  static std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
    return fields;
  }
  /// Values stand in the file in the order of the axis, since the grid's first axis varies slowest.
  double level(std::size_t axis, const std::string& value) {
    auto& values = levels_[axis];
    auto found = std::find(values.begin(), values.end(), value);
    if (found == values.end()) found = values.insert(found, value);
    return static_cast<double>(found - values.begin());
  }
  std::vector<Costs> all() const {
    std::vector<Costs> out;
    for (const auto& [candidate, costs] : points_) out.push_back(costs);
    return out;
  }

  std::vector<std::vector<std::string>> levels_;
  std::map<Candidate, Costs> points_;
};

/// Median over ten seeds of the share of the grid's hypervolume that a search finds with 15 % of its points.
double reached_by(const Recorded& study, const std::string& algorithm) {
  std::vector<double> shares;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Options options;
    options.algorithm = algorithm;
    options.budget = study.size() * 15 / 100;
    options.population = std::clamp<std::size_t>(options.budget / 5, 8, 40) / 4 * 4;
    options.seed = seed;
    const Result result = search(study.problem(), options);
    EXPECT_LE(result.generations.back().evaluated, study.size() * 15 / 100);
    std::vector<Costs> front;
    for (const Found& found : result.front) front.push_back(found.costs);
    shares.push_back(hypervolume(front, study.reference()) / study.whole());
  }
  std::sort(shares.begin(), shares.end());
  return (shares[4] + shares[5]) / 2;
}

class ShippedStudy : public ::testing::TestWithParam<const char*> {};

TEST_P(ShippedStudy, IsFoundToTwoPercentWithFifteenPercentOfItsPointsAndBetterThanAtRandom) {
  const Recorded study(
      "mesh_ucie",
      {"sip.cube_mesh.w", "sip.cube_mesh.h", "cube.ucie.connections", "cube.ucie.lanes", "cube.ucie.lane_rate"},
      {"step_ns", "cost"});
  ASSERT_GT(study.size(), 100U);
  const double share = reached_by(study, GetParam()), random = reached_by(study, "random");
  RecordProperty("share", std::to_string(share));
  RecordProperty("random", std::to_string(random));
  EXPECT_GE(share, 0.98);
  EXPECT_GT(share, random);
}
INSTANTIATE_TEST_SUITE_P(Search, ShippedStudy, ::testing::Values("nsga2", "nspso", "moead"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kernbench::search
