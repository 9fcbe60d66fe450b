#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {

/// Two slots of the host, whose times are known without a machine: at 0.001 GFLOP/s 16 elements take 16 us, twice as
/// many operations twice as long, and what one host slot hands to another is there at once.
constexpr const char* kHostAlone = R"yaml(name: relay
devices: {first: {kind: cpu, idx: 0}, second: {kind: cpu, idx: 1}}
tensors:
  x: {shape: [16], dtype: f32}
  h: {shape: [16], dtype: f32}
  r: {shape: [16], dtype: f32}
  y: {shape: [16], dtype: f32}
supertasks:
  in: {kind: input, inputs: [], outputs: [x]}
  make: {kind: dfg, device: first, inputs: [x], outputs: [h], data: "h = relu(x)"}
  tx: {kind: send, device: first, inputs: [h], outputs: [], group: g, device_idx: 0, metadata: {}}
  rx: {kind: recv, device: second, inputs: [], outputs: [r], group: g, device_idx: 1, metadata: {}}
  use: {kind: dfg, device: second, inputs: [r], outputs: [y], data: "k = neg(r)\ny = relu(k)"}
  out: {kind: output, inputs: [y], outputs: []}
metadata:
  tensors: {inputs: {x: {shape: [16], dtype: f32, idx: 0}}, outputs: {y: {shape: [16], dtype: f32, idx: 0}}}
  tensor_slices:
    inputs: {x: {placements: [[0, 16]], origin: x, dtype: f32, device: first}}
    outputs: {y: {placements: [[0, 16]], origin: y, dtype: f32, device: second}}
)yaml";

TEST(PipelineReport, TextHasTheTimelineTheSharesAndTheCriticalPath) {
  const Tool tool;
  std::ofstream(tool.file("p.yaml")) << kHostAlone;
  const Outcome outcome = tool({"pipeline", "run", "p.yaml", "--topology", "minimal", "--host-flops", "0.001"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find("# fidelity")),
            R"(# pipeline 'relay': 2 slots, 6 supertasks; warm-up 1, iterations 1
# latency 48000.000 ns, loading 0.000 ns
# timeline of the last request, ns
#           slot       supertask            kind          begin            end           time
           first            make             dfg          0.000      16000.000      16000.000
           first              tx            send      16000.000      16000.000          0.000
          second              rx            recv          0.000      16000.000      16000.000
          second             use             dfg      16000.000      48000.000      32000.000
# share of the last pass, %
#           slot  computing  communicating       idle
           first       33.3            0.0       66.7
          second       66.7           33.3        0.0
# critical path, ns: make 16000.000 -> tx 0.000 -> use 32000.000
)");
}

/// Of every example: what the rows of a run say of each other.
TEST(PipelineReport, SpansLieInTheRunSharesAreTheirSumsAndTheCriticalPathLastsAsLong) {
  const Tool tool;
  std::size_t exchanges_on_paths = 0;
  for (const std::string name : {"all_kinds.yaml", "kinds/send_recv.yaml", "kinds/cpu.yaml", "kinds/parts.yaml",
                                 "kinds/all_gather.yaml", "kinds/dfg.yaml"}) {
    const Outcome outcome =
        tool({"pipeline", "run", std::string(KERNBENCH_SOURCE_DIR) + "/docs/examples/pipeline/" + name, "--topology",
              "minimal", "--set", "system.sips.count=2", "--set", "sip.cube_mesh.w=2", "--json", "-"});
    ASSERT_EQ(outcome.code, 0) << name << outcome.err;
    const nlohmann::json rows = nlohmann::json::parse(outcome.out)["results"], &summary = rows[0];
    const double latency = summary["latency_ns"];
    EXPECT_GT(latency, 0) << name;
    std::map<std::string, double> computing, communicating, at;
    double last = 0;
    for (const nlohmann::json& row : rows) {
      const std::string slot = row.value("slot", "");
      if (row["row"] == "supertask") {
        const double begin = row["begin_ns"], end = row["end_ns"];
        EXPECT_NEAR(begin, at[slot], 1e-3) << name << ": a slot does one supertask after the other";
        EXPECT_LE(begin, end) << name;
        EXPECT_LE(end, latency + 1e-3) << name;
        at[slot] = end;
        last = std::max(last, end);
        const std::string kind = row["kind"];
        (kind == "dfg" || kind == "FX" ? computing : communicating)[slot] += end - begin;
      } else if (row["row"] == "slot") {
        EXPECT_NEAR(row["computing"].get<double>(), computing[slot] / latency, 1e-9) << name << " " << slot;
        EXPECT_NEAR(row["communicating"].get<double>(), communicating[slot] / latency, 1e-9) << name << " " << slot;
      }
    }
    EXPECT_NEAR(last, latency, 1e-3) << name;
    double path = 0;
    ASSERT_EQ(summary["critical_path"].size(), summary["critical_path_ns"].size());
    for (std::size_t i = 0; i < summary["critical_path"].size(); ++i) {
      path += summary["critical_path_ns"][i].get<double>();
      for (const nlohmann::json& row : rows) {
        if (row.value("supertask", "") == summary["critical_path"][i] && row["kind"] != "dfg" && row["kind"] != "FX")
          ++exchanges_on_paths;
      }
    }
    EXPECT_NEAR(path, latency, 1e-3) << name;
  }
  EXPECT_GT(exchanges_on_paths, 5U);
}

}  // namespace
}  // namespace kernbench
