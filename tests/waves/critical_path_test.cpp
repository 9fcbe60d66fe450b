// `run --critical-path`: the chain of causes.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using nlohmann::ordered_json;

ordered_json path_of(const Tool& tool, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--critical-path", "--json", "-"});
  const Outcome outcome = tool(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  ordered_json json = json_of(outcome.out);
  EXPECT_EQ(schema_errors(json), "");
  EXPECT_EQ(json["critical_path"]["time_ps"], json["sim_time_ps"]);
  return json["critical_path"];
}

/// The share of the last launch that went for what is named so.
double share_of(const ordered_json& path, const std::string& spent) {
  double share = 0;
  for (const auto& part : path["launches"].back()["parts"]) {
    if (part["spent"].get<std::string>().rfind(spent, 0) == 0) share += part["share"].get<double>();
  }
  return share;
}

const std::vector<std::string> kPathRun{"run", "all_reduce", "-b", "256K", "-e", "256K", "-w", "0"};

std::vector<std::string> path_arguments(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(CriticalPath, OfManyIterationsTheFirstAndTheLastAreTold) {
  const Tool tool;
  const ordered_json path =
      path_of(tool, {"run", "all_reduce", "-b", "64", "-e", "64", "-w", "0", "-n", "1100", "--topology", "minimal",
                     "--set", "system.sips.count=2", "--data", "off", "--fidelity", "fast"});
  ASSERT_EQ(path["stretches"].size(), 1024u);
  EXPECT_EQ(path["stretches_left_out"], 76);
  EXPECT_EQ(path["stretches"][511]["name"], "64 B, iteration 512");
  EXPECT_EQ(path["stretches"][512]["name"], "64 B, iteration 589");
  EXPECT_EQ(path["stretches"].back()["name"], "64 B, iteration 1100");
}

TEST(CriticalPath, AddsUpToTheRunAndToEveryLaunch) {
  const Tool tool;
  for (const char* fidelity : {"accurate", "fast"}) {
    const ordered_json path = path_of(tool, path_arguments(kPathRun, {"--fidelity", fidelity}));
    std::uint64_t at = 0, sum = 0;
    EXPECT_EQ(path["segments_left_out"], 0);
    for (const auto& segment : path["segments"]) {
      EXPECT_EQ(segment["begin_ps"], at);
      at = segment["end_ps"];
    }
    EXPECT_EQ(at, path["time_ps"]);
    for (const auto& part : path["parts"]) sum += part["time_ps"].get<std::uint64_t>();
    EXPECT_EQ(sum, path["time_ps"]);
    ASSERT_FALSE(path["launches"].empty());
    for (const auto& launch : path["launches"]) {
      sum = 0;
      for (const auto& part : launch["parts"]) sum += part["time_ps"].get<std::uint64_t>();
      EXPECT_EQ(sum, launch["time_ps"]) << launch["kernel"];
    }
    for (const auto& kind : path["kinds"])
      EXPECT_TRUE(kind["spent"] != "other" || kind["share"].get<double>() < 0.05) << fidelity;
  }
}

TEST(CriticalPath, AddsUpToEveryLayerThatTheResultsTimed) {
  const Tool tool;
  const std::vector<std::string> mlp{"run",      "tp_mlp", "--topology", "minimal", "--in",    "64",
                                     "--hidden", "256",    "--out",      "64",      "--batch", "16"};
  const Outcome outcome = tool(path_arguments(mlp, {"--critical-path", "--json", tool.file("r.json")}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const ordered_json result = json_of(read(tool.file("r.json"))), path = result["critical_path"];
  std::map<std::string, std::uint64_t> layers;
  for (const auto& stretch : path["stretches"]) {
    std::uint64_t sum = 0;
    for (const auto& part : stretch["parts"]) sum += part["time_ps"].get<std::uint64_t>();
    EXPECT_EQ(sum, stretch["time_ps"]) << stretch["name"];
    layers[stretch["name"]] = sum;
    const bool timed = stretch["timed"];
    EXPECT_EQ(outcome.out.find("# critical path of " + stretch["name"].get<std::string>()) != std::string::npos, timed);
  }
  for (const auto& row : result["results"]) {
    if (row["layer"] != "fc1" && row["layer"] != "fc2") continue;
    const char* stretch = row["layer"] == "fc1" ? "pass 1, layer 0" : "pass 1, layer 1";
    ASSERT_EQ(layers.count(stretch), 1U) << path["stretches"].dump();
    EXPECT_EQ(layers[stretch], std::llround(row["time_ns"].get<double>() * 1e3)) << stretch;
  }
}

TEST(CriticalPath, ChangesNoTime) {
  const Tool tool;
  const ordered_json json = json_of(tool(path_arguments(kPathRun, {"--json", "-"})).out);
  EXPECT_EQ(path_of(tool, kPathRun)["time_ps"], json["sim_time_ps"]);
}

// A machine that is throttled in one place spends more of its time there than one that is not, and that place leads.
TEST(CriticalPath, NamesWhatAMachineIsThrottledBy) {
  const Tool tool;
  const ordered_json free = path_of(tool, kPathRun);
  const ordered_json narrow = path_of(tool, path_arguments(kPathRun, {"--set", "system.links.lanes=1"}));
  EXPECT_GT(share_of(narrow, "wire"), 0.5);
  EXPECT_EQ(narrow["launches"].back()["parts"][0]["joins"].get<std::string>().rfind("sip", 0), 0U);
  EXPECT_GT(share_of(narrow, "wire"), share_of(free, "wire"));
  const ordered_json slow = path_of(tool, path_arguments(kPathRun, {"--set", "pe.cpu.dispatch=2us"}));
  EXPECT_GT(share_of(slow, "dispatch"), 0.5);
}

// A small TCM is no wait: smaller tiles make for more and shorter products, which fill and drain the array more often.
// In the fast grade a long packet goes on while its tail is still on the link.
TEST(CriticalPath, HasTheFlightOverALinkInBothGrades) {
  const Tool tool;
  for (const char* grade : {"fast", "accurate"}) {
    const ordered_json path =
        path_of(tool, {"run", "all_reduce", "-b", "16K", "-e", "16K", "-w", "0", "--topology", "ring8", "--set",
                       "system.sips.count=2", "--data", "off", "--fidelity", grade});
    double flight = 0, io = 0;  // ps
    for (const auto& part : path["launches"].back()["parts"]) {
      const std::string place = part["place"];
      if (part["spent"] == "flight" && place.find(".link") != std::string::npos)
        flight += part["time_ps"].get<double>();
      if (part["spent"] == "NoC" && place.find(".io0") != std::string::npos) io += part["time_ps"].get<double>();
    }
    EXPECT_NEAR(flight, 400e3, 10e3) << grade << ": system.links.latency";
    EXPECT_LT(io, 50e3) << grade;
  }
}

TEST(CriticalPath, TellsWhatTheArrayComputesFromFillingIt) {
  const Tool tool;
  const auto of_tcm = [&](const std::string& size) {
    const ordered_json path =
        path_of(tool, {"run", "gemm", "--topology", "minimal", "--m", "256", "--n", "256", "--k", "256", "--data",
                       "off", "--set", "pe.ipcq.slots=2", "--set", "pe.tcm.size=" + size});
    std::map<std::string, double> ns;
    for (const auto& kind : path["kinds"]) ns[kind["spent"]] += kind["time_ps"].get<double>() / 1e3;
    for (const auto& part : path["parts"]) {
      if (part["spent"] == "GEMM fill") {
        EXPECT_EQ(part["keys"][0], "pe.tcm.size");
      }
    }
    return ns;
  };
  auto small = of_tcm("256 KiB"), large = of_tcm("4 MiB");
  const double peak_ns = 256.0 * 256 * 256 / (32 * 32) / 1.6;  // of one PE's array, f16
  EXPECT_LE(small["GEMM"], peak_ns * 1.001);
  EXPECT_GT(small["GEMM"], peak_ns * 0.9);
  EXPECT_GT(small["GEMM fill"], 1.5 * large["GEMM fill"]);
  EXPECT_GT(small["GEMM fill"], small["GEMM"]);
}

TEST(CriticalPath, IsToldBelowTheResults) {
  const Tool tool;
  const Outcome outcome = tool(path_arguments(kPathRun, {"--critical-path"}));
  EXPECT_NE(outcome.out.find("# critical path of the run, "), std::string::npos);
  EXPECT_NE(outcome.out.find("# critical path of the last launch of "), std::string::npos);
}

/// Eight SIPs have more places than a table keeps.
TEST(CriticalPath, SmallPlacesTogetherAreSaidToBeOthers) {
  const Tool tool;
  const Outcome outcome = tool({"run", "all_reduce", "-b", "256K", "-e", "256K", "--topology", "ring8", "--fidelity",
                                "fast", "--data", "off", "--critical-path", "--json", "path.json"});
  const ordered_json path = json_of(read(tool.file("path.json")))["critical_path"];
  bool any = false;
  for (const ordered_json& launch : path["launches"]) {
    for (const ordered_json& part : launch["parts"]) any |= part["place"] == "";
  }
  ASSERT_TRUE(any);
  EXPECT_NE(outcome.out.find("flight                (other places)\n"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace kernbench
