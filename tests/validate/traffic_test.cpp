#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "sc_main/rigs/traffic_pattern.h"
#include "sc_main/rigs/traffic_source.h"

namespace kernbench {
namespace {

double mean_links(const std::string& pattern, unsigned k) { return TrafficPattern(pattern, k, k).mean_links(); }

TEST(TrafficPattern, MeanDistancesAreThoseOfTheDefinitions) {
  // Uniform: twice the mean of |a - b| over all pairs of k columns, (k^2 - 1) / (3 k).
  for (const unsigned k : {4U, 5U, 8U}) EXPECT_NEAR(mean_links("uniform", k), 2.0 * (k * k - 1) / (3.0 * k), 1e-12);
  // Transpose: |x - y| in both dimensions.
  EXPECT_NEAR(mean_links("transpose", 4), 2.5, 1e-12);
  // Neighbour: 1 link but k - 1 for the wrapped column, in both dimensions.
  EXPECT_NEAR(mean_links("neighbor", 4), 2 * (3 * 1 + 3) / 4.0, 1e-12);
  // Tornado on 8: d = 3; 5 columns go 3 to the right, 3 go 5 to the left.
  EXPECT_NEAR(mean_links("tornado", 8), 2 * (5 * 3 + 3 * 5) / 8.0, 1e-12);
  // On 5: d = 2; 3 columns go 2 to the right, 2 go 3 to the left.
  EXPECT_NEAR(mean_links("tornado", 5), 2 * (3 * 2 + 2 * 3) / 5.0, 1e-12);
  // Bit complement: x to k - 1 - x in both dimensions.
  EXPECT_NEAR(mean_links("bit-complement", 4), 2 * (3 + 1 + 1 + 3) / 4.0, 1e-12);
  // One corner: mean of x + y.
  EXPECT_NEAR(mean_links("hotspot(0)", 4), 3.0, 1e-12);
  EXPECT_NEAR(mean_links("hotspot(0,3,12,15)", 4), 3.0, 1e-12);
}

TEST(TrafficPattern, BusiestLinkAndNodeFollowFromCutsOfTheMesh) {
  const auto busiest = [](const char* pattern, unsigned k) { return TrafficPattern(pattern, k, k).busiest(); };
  // Over the middle of a row go half of what k / 2 nodes send; of 5 nodes, 2 of them send 3 / 5.
  EXPECT_NEAR(busiest("uniform", 8).link, 2.0, 1e-12);
  EXPECT_NEAR(busiest("uniform", 5).link, 2 * 3 / 5.0, 1e-12);
  EXPECT_NEAR(busiest("uniform", 8).node, 1.0, 1e-12);
  EXPECT_NEAR(busiest("bit-complement", 4).link, 2.0, 1e-12);  // all cross the middle
  EXPECT_NEAR(busiest("transpose", 4).link, 3.0, 1e-12);       // y = 0: three nodes go to column 0
  // To one node of a corner: along its column come three rows of four.
  EXPECT_NEAR(busiest("hotspot(0)", 4).link, 12.0, 1e-12);
  EXPECT_NEAR(busiest("hotspot(0)", 4).node, 16.0, 1e-12);
}

TEST(TrafficPattern, FixedPatternsPermute) {
  Random random(1, 0);
  const TrafficPattern transpose("transpose", 4, 4), reverse("bit_reverse", 4, 4), shuffle("shuffle", 4, 4);
  EXPECT_EQ(transpose.destination(1, random), 4U);
  EXPECT_EQ(reverse.destination(0b0001, random), 0b1000U);
  EXPECT_EQ(shuffle.destination(0b1001, random), 0b0011U);
  for (const char* name : {"transpose", "neighbor", "tornado", "bit_complement", "bit_reverse", "shuffle"}) {
    const TrafficPattern pattern(name, 4, 4);
    unsigned seen = 0;
    for (unsigned node = 0; node < 16; ++node) seen |= 1U << pattern.destination(node, random);
    EXPECT_EQ(seen, 0xFFFFU) << name;
  }
}

TEST(TrafficPattern, HotspotsAreDrawnByWeight) {
  Random random(1, 0);
  const TrafficPattern pattern("hotspot(0:3,15:1)", 4, 4);
  constexpr int kDraws = 100'000;
  int first = 0;
  for (int i = 0; i < kDraws; ++i) {
    const unsigned to = pattern.destination(7, random);
    ASSERT_TRUE(to == 0 || to == 15);
    first += to == 0 ? 1 : 0;
  }
  const double sigma = std::sqrt(kDraws * 0.75 * 0.25);
  EXPECT_NEAR(first, 0.75 * kDraws, 5 * sigma);
}

TEST(TrafficPattern, SaysWhatIsWrong) {
  const auto text = [](const std::string& pattern, unsigned cols, unsigned rows) {
    try {
      TrafficPattern(pattern, cols, rows);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("nothing thrown");
  };
  EXPECT_EQ(text("unifrom", 4, 4), "unknown pattern 'unifrom'\n  hint: did you mean 'uniform'?");
  EXPECT_EQ(text("hotspot", 4, 4),
            "pattern 'hotspot' names no nodes\n  hint: e.g. 'hotspot(0,15)', with weights 'hotspot(0:3,15:1)'");
  EXPECT_EQ(text("hotspot(16)", 4, 4), "hotspot: a node is '16'\n  hint: give an integer below 16");
  EXPECT_EQ(text("shuffle", 3, 3),
            "pattern 'shuffle' needs a power of two of nodes, not 9\n  hint: give another --pattern or size");
  EXPECT_EQ(text("transpose", 4, 2), "pattern 'transpose' needs a square mesh, not 4 x 2");
}

TEST(BernoulliArrivals, AreOneTrialPerNodeAndCycle) {
  constexpr unsigned kNodes = 16;
  constexpr std::uint64_t kCycles = 20'000;
  constexpr double kProbability = 0.05;
  BernoulliArrivals arrivals(kNodes, kProbability, 7);
  std::vector<double> of_node(kNodes);
  BernoulliArrivals::Arrival last{0, 0}, next = arrivals.next();
  bool first = true;
  for (; next.cycle < kCycles; next = arrivals.next()) {
    const bool later = next.cycle > last.cycle || (next.cycle == last.cycle && next.node > last.node);
    ASSERT_TRUE(first || later) << "at most one packet per node and cycle, in order";
    ASSERT_LT(next.node, kNodes);
    ++of_node[next.node];
    last = next;
    first = false;
  }
  const double sigma = std::sqrt(kCycles * kProbability * (1 - kProbability));
  for (const double count : of_node) EXPECT_NEAR(count, kCycles * kProbability, 5 * sigma);
}

TEST(BernoulliArrivals, CertaintyCreatesInEveryCycle) {
  BernoulliArrivals arrivals(3, 1.0, 1);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const BernoulliArrivals::Arrival arrival = arrivals.next();
    EXPECT_EQ(arrival.cycle, i / 3);
    EXPECT_EQ(arrival.node, i % 3);
  }
}

TEST(TrafficMeter, MeasuresPacketsOfItsWindowOnly) {
  TrafficMeter meter(100, 200);
  for (const std::uint64_t created : {99U, 100U, 199U, 200U}) meter.created(created);
  EXPECT_EQ(meter.measured(), 2U);
  meter.arrived(99, 99, 150, 1);    // accepted in the window, not measured
  meter.arrived(100, 101, 110, 2);  // both
  meter.arrived(199, 200, 229, 4);  // measured, accepted after it
  EXPECT_EQ(meter.arrived_count(), 2U);
  EXPECT_EQ(meter.accepted_count(), 2U);
  EXPECT_EQ(meter.packets(), 3U);
  EXPECT_EQ(meter.mean_latency(), (10 + 30) / 2.0);
  EXPECT_EQ(meter.mean_network_latency(), (9 + 29) / 2.0);
  EXPECT_EQ(meter.mean_links(), 3.0);
  EXPECT_EQ(meter.percentile(0.5), 10);
  EXPECT_EQ(meter.percentile(0.99), 30);
  EXPECT_EQ(meter.least_latency(), (std::vector<double>{0, 0, 10, 0, 30}));
  meter.freeze();
  meter.arrived(150, 150, 160, 1);
  EXPECT_EQ(meter.packets(), 3U);
}

}  // namespace
}  // namespace kernbench
