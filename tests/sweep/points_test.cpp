#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sc_main/explore/sweep/points.h"
#include "sc_main/explore/sweep/sampling.h"

namespace kernbench::sweep {
namespace {

const std::string kHead = "workload: gemm_single_pe\ntopology: minimal\n";

/// Labels of the points that may run, axis by axis.
std::vector<std::string> labels(const std::string& body) {
  const SweepFile file = read_sweep(kHead + body, "sweep.yaml");
  PointMaker maker(file);
  std::vector<std::string> texts;
  for (const Point& point : points(file, maker)) {
    if (!point.refused.empty()) continue;
    std::string text;
    for (const AxisValue& value : point.coordinates) text += (text.empty() ? "" : " ") + value.label;
    texts.push_back(text);
  }
  return texts;
}
using Labels = std::vector<std::string>;

TEST(Points, OfAGridLetTheLastAxisRunFastest) {
  EXPECT_EQ(labels("axes: {m: [1, 2], k: [3, 4, 5]}"), (Labels{"1 3", "1 4", "1 5", "2 3", "2 4", "2 5"}));
}

TEST(Points, OfAZipTakeTheAxesSideBySide) {
  EXPECT_EQ(labels("method: zip\naxes: {m: [1, 2], k: [3, 4]}"), (Labels{"1 3", "2 4"}));
}

TEST(Points, OfRanges) {
  EXPECT_EQ(labels("axes: {m: {from: 1, to: 4}}"), (Labels{"1", "2", "3", "4"}));
  EXPECT_EQ(labels("axes: {m: {from: 1, to: 10, step: 4}}"), (Labels{"1", "5", "9"}));
  EXPECT_EQ(labels("axes: {m: {from: 16, to: 128, factor: 2}}"), (Labels{"16", "32", "64", "128"}));
  EXPECT_EQ(labels("axes: {m: {from: 1, to: 1000, steps: 4, scale: log}}"), (Labels{"1", "10", "100", "1000"}));
  EXPECT_EQ(labels("axes: {cube.sram.latency: {from: 5 ns, to: 20 ns, steps: 4}}"),
            (Labels{"5 ns", "10 ns", "15 ns", "20 ns"}));
}

/// Ratios are read with at most nine digits behind the point, and without an exponent.
TEST(Points, OfARangeOfRatiosAreWrittenAsTheyAreRead) {
  EXPECT_EQ(labels("axes: {system.links.efficiency: {from: 0.5, to: 0.9, steps: 4}}"),
            (Labels{"0.5", "0.633333333", "0.766666667", "0.9"}));
  EXPECT_EQ(labels("axes: {system.links.efficiency: {from: 0.00001, to: 1, steps: 6, scale: log}}"),
            (Labels{"0.00001", "0.0001", "0.001", "0.01", "0.1", "1"}));
  EXPECT_EQ(labels("axes: {system.links.efficiency: {from: 0.999999998, to: 1, steps: 3}}"),
            (Labels{"0.999999998", "0.999999999", "1"}));
  const SweepFile file =
      read_sweep(kHead + "axes: {m: [3]}\nderived: {system.links.efficiency: 1 / m}\n", "sweep.yaml");
  PointMaker maker(file);
  EXPECT_EQ(points(file, maker).front().settings.back().text, "0.333333333");
}

TEST(Points, OfMapsSetSeveralValuesAtOnce) {
  const SweepFile file =
      read_sweep(kHead + "axes:\n  shape:\n    - {name: flat, m: 1, n: 64}\n    - {m: 8, n: 8}\n", "sweep.yaml");
  EXPECT_EQ(file.axes.front().values[0].label, "flat");
  EXPECT_EQ(file.axes.front().values[1].label, "m=8 n=8");
  EXPECT_EQ(file.axes.front().keys, (std::vector<std::string>{"m", "n"}));
}

TEST(Points, AreRefusedByAConstraintAndByADerivedValueThatFitsNoKey) {
  EXPECT_EQ(labels("axes: {m: [1, 2, 3], k: [2, 4]}\nconstraints: ['m * k <= 8']"),
            (Labels{"1 2", "1 4", "2 2", "2 4", "3 2"}));
  EXPECT_EQ(labels("axes: {cube.noc.rows: [1, 2, 3, 4]}\nderived: {cube.noc.cols: 12 / (cube.noc.rows + 1)}"),
            (Labels{"1", "2", "3"}));  // 12 / 5 columns there are not
}

TEST(Points, FormulasSeeWhatTheMachineHasAndWhatAnAxisSets) {
  // preset minimal has a mesh of 2 x 2
  EXPECT_EQ(labels("axes: {m: [1, 2, 3]}\nconstraints: ['m <= cube.noc.rows']"), (Labels{"1", "2"}));
  EXPECT_EQ(labels("axes: {m: [1, 2, 3], cube.noc.rows: [1]}\nconstraints: ['m <= cube.noc.rows']"), (Labels{"1 1"}));
  EXPECT_EQ(labels("axes: {dtype: [f16, f32], m: [1, 2]}\nconstraints: ['dtype == f16 || m == 1']"),
            (Labels{"f16 1", "f16 2", "f32 1"}));
}

TEST(Points, FormulasSeeTheMachineThatRunsWhereverItIsNamed) {
  const std::string ring8 = "constraints: ['system.sips.count == 8']";  // minimal has 1 SIP, default 2
  for (const char* named : {"topology: ring8\naxes: {m: [1]}\n", "options: {topology: ring8}\naxes: {m: [1]}\n",
                            "axes: {topology: [ring8]}\n"}) {
    const SweepFile file = read_sweep(std::string("workload: gemm_single_pe\n") + named + ring8, "sweep.yaml");
    PointMaker maker(file);
    const Point point = points(file, maker).front();
    EXPECT_EQ(point.refused, "") << named;
    EXPECT_EQ(maker.command(point).machine.front().second, "ring8") << named;
  }
}

/// `replay` needs `data: off`, wherever that stands.
TEST(Points, MayHaveOptionsThatAreGoodOnlyTogether) {
  EXPECT_EQ(labels("options: {replay: 'on', data: 'off'}\naxes: {m: [1]}"), (Labels{"1"}));
  EXPECT_EQ(labels("options: {data: 'off', replay: 'on'}\naxes: {m: [1]}"), (Labels{"1"}));
  EXPECT_EQ(labels("options: {replay: 'on'}\naxes: {data: ['off']}"), (Labels{"off"}));
  EXPECT_EQ(labels("options: {data: 'off'}\naxes: {replay: ['on', 'off', 8]}"), (Labels{"on", "off", "8"}));
  EXPECT_EQ(labels("axes: {how: [{data: 'off', replay: 'on'}]}"), (Labels{"data=off replay=on"}));
}

TEST(Points, QuotesChangeNoValueOfAFormula) {
  const Labels both{"8 GT/s", "16 GT/s"};
  EXPECT_EQ(labels("axes: {cube.ucie.lane_rate: ['8 GT/s', \"16 GT/s\"]}\n"
                   "constraints: ['cube.ucie.lane_rate <= 16 * GTps']"),
            both);
  EXPECT_EQ(labels("set: {cube.noc.clock: '1 GHz'}\naxes: {cube.ucie.lane_rate: ['8 GT/s', 16 GT/s]}\n"
                   "constraints: ['cube.ucie.lane_rate >= 8 * cube.noc.clock']"),
            both);
  EXPECT_EQ(labels("axes: {system.links.efficiency: ['1/2', '0.9']}\nconstraints: [system.links.efficiency < 0.6]"),
            (Labels{"1/2"}));
  EXPECT_EQ(
      labels("axes: {system.sips.topology: ['ring_1d', torus_2d]}\nconstraints: [system.sips.topology == ring_1d]"),
      (Labels{"ring_1d"}));
  const SweepFile file = read_sweep(kHead +
                                        "axes: {cube.ucie.lane_rate: ['8 GT/s']}\n"
                                        "objectives: [{name: rate, goal: maximize, value: cube.ucie.lane_rate}]",
                                    "sweep.yaml");
  PointMaker maker(file);
  EXPECT_EQ(maker.objectives(points(file, maker).front(), {}), std::vector<double>{8e9});
}

TEST(Points, RunCapKeepsTheFirstThatMayRun) {
  EXPECT_EQ(labels("run_cap: 2\naxes: {m: [1, 2, 3, 4]}\nconstraints: ['m != 2']"), (Labels{"1", "3"}));
}

TEST(Points, SamplesAreTheSameForASeedAndDifferForAnother) {
  const std::string axes = "axes: {m: {from: 1, to: 100000}, k: {from: 1, to: 100000, scale: log}}\nsamples: 20\n";
  for (const char* method : {"random", "latin_hypercube", "sobol"}) {
    const std::string body = axes + "method: " + method + "\n";
    const Labels once = labels(body + "seed: 7\n");
    EXPECT_EQ(once.size(), 20U) << method;
    EXPECT_EQ(once, labels(body + "seed: 7\n")) << method;
    EXPECT_NE(once, labels(body + "seed: 8\n")) << method;
  }
}

TEST(Points, RandomSamplesAreAsManyAsAskedForThatMayRun) {
  EXPECT_EQ(labels("method: random\nsamples: 10\naxes: {m: {from: 1, to: 100}}\nconstraints: ['m > 50']").size(), 10U);
  EXPECT_EQ(labels("method: random\nsamples: 10\naxes: {m: [1, 2, 3]}").size(), 3U);  // there are no more
}

TEST(Sampling, ALatinHypercubeHasOneSampleInEverySliceOfEveryAxis) {
  const auto places = latin_hypercube(16, 3, 5);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::set<int> slices;
    for (const auto& place : places) slices.insert(static_cast<int>(place[axis] * 16));
    EXPECT_EQ(slices.size(), 16U);
  }
}

TEST(Sampling, ASobolSequenceFillsTheSquareMoreEvenlyThanRandomPlaces) {
  // Of 256 places every one of 8 x 8 boxes gets 4 on average; the squares of what they are off by, added up.
  const auto uneven = [](bool sobol) {
    Sequence sequence(sobol, 2, 3);
    std::vector<int> boxes(64, 0);
    for (int i = 0; i < 256; ++i) {
      const auto place = sequence.next();
      ++boxes[static_cast<std::size_t>(place[0] * 8) * 8 + static_cast<std::size_t>(place[1] * 8)];
    }
    int sum = 0;
    for (const int box : boxes) sum += (box - 4) * (box - 4);
    return sum;
  };
  EXPECT_LT(2 * uneven(true), uneven(false));
}

TEST(Points, CommandReproducesThePoint) {
  const SweepFile file = read_sweep(
      kHead + "set: {cube.noc.rows: 3}\noptions: {check: 0}\naxes: {cube.sram.latency: [5 ns]}\n", "sweep.yaml");
  PointMaker maker(file);
  EXPECT_EQ(maker.command(points(file, maker).front()).text(),
            "kernbench run gemm_single_pe --topology minimal --set cube.noc.rows=3 --set 'cube.sram.latency=5 ns' "
            "--check=0");
}

}  // namespace
}  // namespace kernbench::sweep
