#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>

#include "tests/acceptance/train_band.h"

namespace kernbench {
namespace {
using nlohmann::ordered_json;

/// Largest deviation of a collective's time in the fast grade from the accurate one. Source: spec,
/// Accuracy: collectives within 10%.
constexpr double kBand = 0.10;

void expect_same_data_and_like_times(const ordered_json& accurate, const ordered_json& fast) {
  ASSERT_EQ(accurate["results"].size(), fast["results"].size());
  for (std::size_t i = 0; i < accurate["results"].size(); ++i) {
    const ordered_json &a = accurate["results"][i], &f = fast["results"][i];
    for (const char* key : {"check", "mismatches", "max_abs_err"}) EXPECT_EQ(a[key], f[key]) << key;
    EXPECT_EQ(f["check"], "ok");
    const double time = a["time_ns"];
    EXPECT_NEAR(f["time_ns"], time, kBand * time) << a.dump();
  }
}

struct Case {
  const char* name;
  std::vector<std::string> arguments;
};

class Grades : public testing::TestWithParam<Case> {};

TEST_P(Grades, HaveTheSameDataAndTimesWithinTheBand) {
  const ordered_json accurate = run_json(with(GetParam().arguments, {"--fidelity", "accurate"})),
                     fast = run_json(with(GetParam().arguments, {"--fidelity", "noc=fast"}));
  EXPECT_EQ(accurate["fidelity"], "accurate");
  EXPECT_EQ(fast["fidelity"], "noc=fast,hbm=accurate");
  expect_same_data_and_like_times(accurate, fast);
}

TEST_P(Grades, AreRepeatedExactly) {
  const auto run = [] {
    ordered_json json = run_json(with(GetParam().arguments, {"--fidelity", "noc=fast"}));
    json.erase("host");
    return json.dump(1);
  };
  EXPECT_EQ(run(), run());
}

std::vector<std::string> all_reduce(const char* preset) {
  return {"run", "all_reduce", "--topology", preset, "-b", "1K", "-e", "64K", "-f", "8", "-w", "0"};
}

INSTANTIATE_TEST_SUITE_P(
    Acceptance, Grades,
    testing::Values(Case{"default", all_reduce("default")}, Case{"ring8", all_reduce("ring8")},
                    Case{"torus4x4", all_reduce("torus4x4")}, Case{"mesh4x4", all_reduce("mesh4x4")},
                    Case{"cubes", with(all_reduce("default"), {"--scope", "cube", "--dtype", "bf16"})}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(MixedGrades, EveryCombinationRunsAndComputesTheSame) {
  const std::vector<std::string> arguments{
      "run", "all_reduce", "--set", "sip.cube_mesh.w=2", "--set", "sip.cube_mesh.h=1", "-b", "16K", "-w", "0"};
  const ordered_json accurate = run_json(arguments);
  for (const char* mix : {"noc=fast", "hbm=fast", "fast"})
    expect_same_data_and_like_times(accurate, run_json(with(arguments, {"--fidelity", mix})));
}

TEST(Trains, HaveTheSameDataAndTimesWithinTheBand) {
  for (const char* placement : {"default", "torus4x4"}) {
    std::vector<std::string> arguments =
        with(all_reduce(placement), {"--set", "sip.cube_mesh.w=2", "--set", "sip.cube_mesh.h=2"});
    const ordered_json accurate = run_json(arguments), fast = run_json(with(arguments, {"--fidelity", "fast"}));
    expect_same_data_and_like_times(accurate, fast);
  }
}

TEST(Trains, OfLongMessagesHaveTheSameDataAndTimesWithinTheBand) {
  const std::vector<std::string> arguments{
      "run", "all_reduce", "-b", "1M", "-w", "0", "--set", "sip.cube_mesh.w=2", "--set", "sip.cube_mesh.h=1"};
  expect_same_data_and_like_times(run_json(arguments), run_json(with(arguments, {"--fidelity", "fast"})));
}

/// Deviation of the time of each row of the fast grade.
std::vector<double> errors(const ordered_json& accurate, const ordered_json& fast) {
  EXPECT_EQ(accurate.size(), fast.size());
  std::vector<double> list;
  for (std::size_t i = 0; i < std::min(accurate.size(), fast.size()); ++i) {
    list.push_back(fast[i]["time_ns"].get<double>() / accurate[i]["time_ns"].get<double>() - 1);
  }
  return list;
}
double largest_error(const std::vector<std::string>& arguments) {
  double most = 0;
  for (const double error :
       errors(run_json(arguments)["results"], run_json(with(arguments, {"--fidelity", "fast"}))["results"])) {
    most = std::max(most, std::fabs(error));
  }
  return most;
}

TEST(Trains, OfLongSlotsHaveTheSameDataAndTimesWithinThreePercent) {
  const std::vector<std::string> arguments{"run",        "all_reduce",
                                           "--topology", "torus8x8",
                                           "-b",         "8M",
                                           "-w",         "0",
                                           "--set",      "system.sips.count=4",
                                           "--set",      "system.sips.w=2",
                                           "--set",      "system.sips.h=2",
                                           "--set",      "pe.ipcq.slot_size=64 KiB"};
  EXPECT_EQ(run_json(with(arguments, {"--fidelity", "fast"}))["results"][0]["check"], "ok");
  EXPECT_LT(largest_error(with(arguments, {"--data", "off"})), 0.03);
}

TEST(Trains, PassWiresWhoseEndsHaveDifferentBuffers) {
  EXPECT_EQ(run_json({"run", "all_reduce", "--topology", "torus8x8", "-b", "1M", "-w", "0", "--fidelity", "fast",
                      "--set", "system.sips.count=4", "--set", "system.sips.w=2", "--set", "system.sips.h=2", "--set",
                      "cube.ucie.buffer_packets=256"})["results"][0]["check"],
            "ok");
}

TEST(Trains, LoadsFromNearAndFarTakeTheTimesOfTheirPackets) {
  EXPECT_LT(
      largest_error({"run", "probe", "--bytes", "64K", "--set", "sip.cube_mesh.w=2", "--set", "sip.cube_mesh.h=2"}),
      0.05);
}

TEST(Trains, StreamsTakeTheTimesOfTheirPackets) {
  // Without refresh: which rows of a run it falls into is chance.
  const std::vector<std::string> one_cube{
      "run", "stream", "--set", "cube.hbm.refresh=none", "--set", "sip.cube_mesh.w=1", "--set", "sip.cube_mesh.h=1"};
  const ordered_json accurate = run_json(one_cube)["results"], run = run_json(with(one_cube, {"--fidelity", "fast"})),
                     fast = run["results"];
  const double printed = printed_error(run, "trains");
  EXPECT_LT(printed, 0.18) << "a little wider than the specification's bars of single parts, 0.15";
  std::map<std::string, double> by_pattern;
  const std::vector<double> list = errors(accurate, fast);
  for (std::size_t i = 0; i < list.size(); ++i) by_pattern[accurate[i]["pattern"]] = list[i];
  ASSERT_EQ(by_pattern.size(), 5U);
  for (const auto& [pattern, error] : by_pattern) {
    // A triad is early: its writes come to a memory 4 KiB at a time, which saves it turns of direction.
    EXPECT_LE(std::fabs(error), pattern == "triad" ? 0.1 : 0.03) << pattern << ": " << error;
  }
}

/// A run of each kind in which trains are wrong (docs/fidelity.md), as large as the time of a test allows, without
/// refresh; larger layers: TrainsComplete.
TEST(Trains, LayersTransfersAndCollectivesKeepToThePrintedBand) {
  const auto most = [](const std::vector<std::string>& run) {
    return largest_error_within_the_printed(with(run, {"--set", "cube.hbm.refresh=none"}), 0);
  };
  most({"run", "tp_mlp", "--in", "256", "--hidden", "14336", "--out", "256", "--batch", "128", "--set",
        "sip.cube_mesh.w=1", "--set", "sip.cube_mesh.h=1"});
  most({"run", "all_reduce", "--topology", "ring8", "-b", "64K", "-e", "64K", "-w", "0"});
  most({"run", "p2p", "-b", "16K", "-e", "1M"});
  most({"run", "reduce_scatter", "--topology", "rebel100", "-b", "1M", "-e", "1M", "-w", "0"});
  most({"run", "all_gather", "--topology", "kernbench-py", "-b", "64K", "-e", "64K", "-w", "0"});
  EXPECT_GT(most({"run", "probe", "--bytes", "4K", "--topology", "rebel100"}), 0.12)
      << "near the edge of the band: else others belong here";
}

/// More of them: TrainsComplete.
TEST(Trains, LayersOfALanguageModelKeepToTheirPrintedBand) {
  EXPECT_GT(largest_error_of_layers_within_the_printed(
                {"--topology", "ring8", "--layers", "1", "--prompt", "0", "--context", "64", "--decode", "1"}),
            0);
}

/// Two cubes whose memories never refresh.
std::vector<std::string> on_two_cubes(std::vector<std::string> run) {
  return with(std::move(run), {"--set", "sip.cube_mesh.w=2", "--set", "sip.cube_mesh.h=1", "--set",
                               "cube.hbm.refresh=none", "--data", "off"});
}

/// Dynamic energy in pJ by component.
std::map<std::string, double> energy_of(const ordered_json& json) {
  std::map<std::string, double> energy;
  for (const ordered_json& row : json["energy"]) energy[row["component"]] = row["dynamic_pj"];
  return energy;
}

// What a train saves in events it does not save the machine: a read's requests and a write's answers are as many as its
// packets of data. A wire without flits carries bytes only. How full flits are depends on when packets start, too, and
// those of a train lie closer.
TEST(Trains, CountTheMessagesAndTheEnergyOfTheirPackets) {
  for (const std::vector<std::string>& run :
       {std::vector<std::string>{"run", "probe", "--bytes", "8K"},
        {"run", "p2p", "-b", "64K", "-e", "64K"},
        {"run", "all_reduce", "-b", "64K", "-e", "64K", "-w", "0", "-n", "1", "--scope", "cube"}}) {
    for (const auto& [flit, band] : {std::pair("raw", 0.0), std::pair("256B", 0.15)}) {
      const std::vector<std::string> arguments =
          with(on_two_cubes(run), {"--stats-in-json", "--set", std::string("cube.ucie.flit=") + flit, "--set",
                                   std::string("sip.io.ucie.flit=") + flit});
      const ordered_json accurate = run_json(arguments), fast = run_json(with(arguments, {"--fidelity", "fast"}));
      for (const auto& [kind, total] : accurate["statistics"]["totals"].items()) {
        const ordered_json& other = fast["statistics"]["totals"][kind];
        EXPECT_EQ(other["messages"], total["messages"]) << run[1] << " " << kind;
        EXPECT_EQ(other["bytes"], total["bytes"]) << run[1] << " " << kind;
      }
      std::map<std::string, double> energy = energy_of(fast);
      for (const auto& [component, pj] : energy_of(accurate)) {
        const double off = component == "ucie" ? band : component == "hbm" ? 0.01 : 0;  // hbm: the order of accesses
        EXPECT_NEAR(energy[component], pj, off * pj + 1e-9 * pj) << run[1] << " " << component << " " << flit;
      }
    }
  }
}

// Rule: docs/noc.md. A flow of which a place is free every 6 cycles has 1 in 6 of a port, however fast it is simulated.
TEST(FidelityThatHolds, ShallowBuffersSlowTheFastGradeAsTheAccurateOne) {
  for (const char* slow : {"cube.noc.vc_depth=1", "cube.noc.pipeline.link=20"}) {
    const std::vector<std::string> arguments =
        with(on_two_cubes({"run", "p2p", "-b", "64K", "-e", "64K"}), {"--set", slow});
    const char* warning = "cycles of a port";
    const ordered_json accurate = run_json(arguments, warning),
                       fast = run_json(with(arguments, {"--fidelity", "fast"}), warning);
    EXPECT_EQ(fast["fidelity"], "noc=accurate,hbm=fast");
    for (const double error : errors(accurate["results"], fast["results"])) EXPECT_LT(std::fabs(error), 0.05) << slow;
  }
}

TEST(Trains, FitWiresWithShortBuffers) {
  const std::vector<std::string> arguments{"run",   "all_reduce",
                                           "-b",    "256K",
                                           "-w",    "0",
                                           "--set", "sip.cube_mesh.w=2",
                                           "--set", "sip.cube_mesh.h=1",
                                           "--set", "cube.ucie.buffer_packets=2",
                                           "--set", "sip.io.ucie.buffer_packets=5"};
  const char* warning = "cube.ucie.buffer_packets is 2, less than ";
  expect_same_data_and_like_times(run_json(arguments, warning),
                                  run_json(with(arguments, {"--fidelity", "fast"}), warning));
}

TEST(Trains, DataOffChangesNoTime) {
  const std::vector<std::string> arguments{"run", "all_reduce", "-b", "1M", "--fidelity", "fast"};
  EXPECT_EQ(run_json(arguments)["sim_time_ps"], run_json(with(arguments, {"--data", "off"}))["sim_time_ps"]);
}

TEST(MixedGrades, DataOffChangesNoTimeOfTheFastGrade) {
  const std::vector<std::string> arguments{"run", "all_reduce", "-b", "16K", "--fidelity", "noc=fast"};
  EXPECT_EQ(run_json(arguments)["sim_time_ps"], run_json(with(arguments, {"--data", "off"}))["sim_time_ps"]);
}

}  // namespace
}  // namespace kernbench
