#include <gtest/gtest.h>

#include "tests/acceptance/run_json.h"

// Small messages take at most 1.5 times the longest way between two contributors, a load and a store: the mean of four
// calls, of which a refresh of the HBM meets one or another.
namespace kernbench {
namespace {

struct SmallCase {
  const char *op, *scope, *algorithm;
};

void expect_near_the_bound(const std::vector<std::string>& machine, const std::vector<SmallCase>& cases,
                           const char* fidelity = "fast") {
  for (const SmallCase& c : cases) {
    const auto json = run_json(with({"run", c.op, "-b", "1K", "--scope", c.scope, "--algorithm", c.algorithm,
                                     "--fidelity", fidelity, "--data", "off", "-n", "4"},
                                    machine));
    for (const auto& row : json["results"]) {
      EXPECT_EQ(row["bound_name"], "latency") << row.dump();
      EXPECT_LE(row["time_ns"].get<double>(), 1.5 * row["bound_ns"].get<double>()) << row.dump();
    }
  }
}

TEST(SmallCollectives, TakeAtMostOneAndAHalfTimesTheBoundOnRings) {
  expect_near_the_bound({"--topology", "ring8"}, {{"all_reduce", "sip", "flood"},
                                                  {"all_gather", "sip", "direct"},
                                                  {"reduce_scatter", "sip", "direct"},
                                                  {"all_to_all", "sip", "direct"},
                                                  {"all_reduce", "cube", "flood"},
                                                  {"reduce_scatter", "cube", "funnel"}});
}

TEST(SmallCollectives, TakeAtMostOneAndAHalfTimesTheBoundOnGrids) {
  expect_near_the_bound({"--topology", "torus4x4"}, {{"all_reduce", "sip", "flood"},
                                                     {"all_gather", "sip", "direct"},
                                                     {"reduce_scatter", "sip", "direct"},
                                                     {"all_to_all", "sip", "direct"},
                                                     {"reduce_scatter", "cube", "auto"}});
  expect_near_the_bound(
      {"--topology", "mesh4x4"},
      {{"all_reduce", "sip", "flood"}, {"all_reduce", "cube", "flood"}, {"reduce_scatter", "cube", "auto"}});
}

// 256 contributions: messages are few only as bundles.
TEST(SmallCollectives, TakeAtMostOneAndAHalfTimesTheBoundOnSixtyFourSips) {
  expect_near_the_bound({"--topology", "torus8x8"}, {{"reduce_scatter", "cube", "auto"}});
  expect_near_the_bound({"--topology", "torus8x8"}, {{"reduce_scatter", "cube", "funnel"}}, "accurate");
}

TEST(SmallCollectives, TakeAtMostOneAndAHalfTimesTheBoundOnPairs) {
  expect_near_the_bound(
      {"--topology", "ring8", "--set", "system.sips.topology=fully_connected"},
      {{"all_reduce", "sip", "flood"}, {"all_gather", "sip", "direct"}, {"reduce_scatter", "cube", "direct"}});
}

// Up to six cubes lie between a PE and the one of another number that gets its elements.
TEST(SmallCollectives, TakeAtMostOneAndAHalfTimesTheBoundOnConnectedSipsOfManyCubes) {
  expect_near_the_bound({"--topology", "fc8"}, {{"all_gather", "sip", "auto"},
                                                {"reduce_scatter", "sip", "auto"},
                                                {"all_to_all", "sip", "auto"},
                                                {"gather", "sip", "auto"},
                                                {"all_to_all", "cube", "auto"}});
  expect_near_the_bound({"--topology", "fc8"}, {{"all_gather", "cube", "point_to_point"}}, "accurate");
}

TEST(SmallCollectives, TakeAtMostOneAndAHalfTimesTheBoundOnTheDefaultMachine) {
  const std::vector<SmallCase> cases = {{"all_reduce", "sip", "flood"},      {"all_gather", "sip", "direct"},
                                        {"reduce_scatter", "sip", "direct"}, {"all_to_all", "sip", "direct"},
                                        {"all_reduce", "cube", "flood"},     {"reduce_scatter", "cube", "funnel"},
                                        {"all_to_all", "cube", "auto"},      {"gather", "sip", "auto"}};
  expect_near_the_bound({}, cases);
  expect_near_the_bound({}, {cases[3], cases[4], cases[5]}, "accurate");
}

}  // namespace
}  // namespace kernbench
