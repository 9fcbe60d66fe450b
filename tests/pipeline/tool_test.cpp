#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/pipeline/pipeline_tool.h"

namespace kernbench {
namespace {

TEST(PipelineTool, EveryKindOfSupertaskComputesWhatIsExpected) {
  const Tool tool;
  const Outcome checked = tool(with({"pipeline", "check", kExamples + "all_kinds.yaml"}, kTwoSips));
  EXPECT_EQ(checked.code, 0) << checked.err;
  for (const char* order : {"flow", "document"}) {
    const Outcome outcome = tool(
        with({"pipeline", "run", kExamples + "all_kinds.yaml", "--inputs", kExamples + "inputs.safetensors", "--expect",
              kExamples + "expected.safetensors", "--outputs", "out.safetensors", "--order", order, "--json", "-"},
             kTwoSips));
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    const nlohmann::json summary = row_of(outcome, "row", "pipeline");
    EXPECT_EQ(summary["check"], "ok");
    EXPECT_EQ(summary["max_abs_err"], 0.0);
    EXPECT_GT(summary["latency_ns"].get<double>(), 0);
    EXPECT_EQ(summary["critical_path"].back(), "post");
  }
}

/// The same document on two parts of one SIP, whose members read what the others hold.
TEST(PipelineTool, EveryKindOfSupertaskComputesTheSameAmongPartsOfOneSip) {
  const Tool tool;
  std::string text = read(kExamples + "all_kinds.yaml");
  for (const auto& [old, made] : {std::pair("{kind: npu, idx: 0}", "{kind: npu, idx: 0, cubes: [0, 1]}"),
                                  std::pair("{kind: npu, idx: 1}", "{kind: npu, idx: 0, cubes: [1, 2]}")}) {
    ASSERT_NE(text.find(old), std::string::npos) << old;
    text.replace(text.find(old), std::string(old).size(), made);
  }
  std::ofstream(tool.file("p.yaml")) << text;
  tool.shell("cp " + quoted(kExamples) + "/*.safetensors .");
  const Outcome outcome =
      tool({"pipeline", "run", "p.yaml", "--inputs", "inputs.safetensors", "--expect", "expected.safetensors",
            "--topology", "minimal", "--set", "sip.cube_mesh.w=2", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(row_of(outcome, "row", "pipeline")["check"], "ok");
}

TEST(PipelineTool, OutputsThatDifferEndWithCode1) {
  const Tool tool;
  const Outcome wrong = tool(with(
      {"pipeline", "run", kExamples + "all_kinds.yaml", "--expect", kExamples + "expected.safetensors", "--seed", "3"},
      kTwoSips));
  EXPECT_EQ(wrong.code, 1) << wrong.err;
}

/// Two slots come to two exchanges in different orders. In one order for all that is no matter; in the document's they
/// wait for each other for ever.
TEST(PipelineTool, AnOrderThatDeadlocksAtRunTimeEndsAsAnyDeadlock) {
  const Tool tool;
  const std::string head = R"(name: crossed
devices: {a: {kind: npu, idx: 0}, b: {kind: npu, idx: 1}}
tensors:
  x0: {shape: [4], dtype: f32}
  x1: {shape: [4], dtype: f32}
  p0: {shape: [4], dtype: f32}
  p1: {shape: [4], dtype: f32}
)";
  const std::string transfers = R"(supertasks:
  in: {kind: input, inputs: [], outputs: [x0, x1]}
  recv0: {kind: recv, device: a, inputs: [], outputs: [p0], group: down, device_idx: 0, metadata: {}}
  send0: {kind: send, device: a, inputs: [x0], outputs: [], group: up, device_idx: 0, metadata: {}}
  recv1: {kind: recv, device: b, inputs: [], outputs: [p1], group: up, device_idx: 1, metadata: {}}
  send1: {kind: send, device: b, inputs: [x1], outputs: [], group: down, device_idx: 1, metadata: {}}
)";
  const std::string collectives = R"(  q1: {shape: [4], dtype: f32}
supertasks:
  in: {kind: input, inputs: [], outputs: [x0, x1]}
  one0: {kind: broadcast, device: a, inputs: [], outputs: [p0], group: one, device_idx: 0, metadata: {src: b}}
  two0: {kind: reduce, device: a, inputs: [x0], outputs: [], group: two, device_idx: 0, metadata: {reduce_op: sum, dst: b}}
  two1: {kind: reduce, device: b, inputs: [x1], outputs: [q1], group: two, device_idx: 1, metadata: {reduce_op: sum, dst: b}}
  one1: {kind: broadcast, device: b, inputs: [x1], outputs: [p1], group: one, device_idx: 1, metadata: {src: b}}
)";
  const std::string tail = R"(  out: {kind: output, inputs: [p0, p1], outputs: []}
metadata:
  tensors: {inputs: {x: {shape: [8], dtype: f32, idx: 0}}, outputs: {y: {shape: [8], dtype: f32, idx: 0}}}
  tensor_slices:
    inputs:
      x0: {placements: [[0, 4]], origin: x, dtype: f32, device: a}
      x1: {placements: [[4, 8]], origin: x, dtype: f32, device: b}
    outputs:
      p0: {placements: [[0, 4]], origin: y, dtype: f32, device: a}
      p1: {placements: [[4, 8]], origin: y, dtype: f32, device: b}
)";
  // The words of every deadlock (deadlock_report, Failure.DeadlockNamesWhoWaitsForWhat), then where the slots stand.
  const auto report = [](const std::string& zero, const std::string& one, const std::string& slots) {
    const std::string first = "collective 'direct' on sip0, submitted at T ns (process group 1, " + zero + ")";
    const std::string second = "collective 'direct' on sip1, submitted at T ns (process group 2, " + one + ")";
    return "kernbench: error: deadlock at T ns: nothing is left to happen, and 2 ranks have not finished\n"
           "\n"
           "  rank waits for\n"
           "  0    collective 'direct' on sip0, submitted at T ns; process group 1, " +
           zero + ": not called by rank 1\n  1    collective 'direct' on sip1, submitted at T ns; process group 2, " +
           one + ": not called by rank 0\n\nno PE is blocked\n\nwait cycle of ranks and what they submitted:\n" +
           "  rank 0 waits for " + first + "\n  <- " + first + " waits for rank 1, which has not called it\n" +
           "  <- rank 1 waits for " + second + "\n  <- " + second + " waits for rank 0, which has not called it\n" +
           "  <- rank 0\n\n" + slots;
  };
  for (const auto& [tasks, words] :
       {std::pair(transfers, report("rank 1 to rank 0, transfer 0", "rank 0 to rank 1, transfer 0",
                                    "slot 'a' waits in supertask 'recv0' (recv, group 'down')\n"
                                    "slot 'b' waits in supertask 'recv1' (recv, group 'up')\n")),
        std::pair(collectives, report("collective 0", "collective 0",
                                      "slot 'a' waits in supertask 'one0' (broadcast, group 'one')\n"
                                      "slot 'b' waits in supertask 'two1' (reduce, group 'two')\n"))}) {
    std::ofstream(tool.file("p.yaml")) << head << tasks << tail;
    const Outcome checked = tool(with({"pipeline", "check", "p.yaml"}, kTwoSips));
    EXPECT_EQ(checked.code, 0) << checked.err;
    const Outcome good = tool(with({"pipeline", "run", "p.yaml"}, kTwoSips));
    EXPECT_EQ(good.code, 0) << good.err;
    const Outcome stuck = tool(with({"pipeline", "run", "p.yaml", "--order", "document"}, kTwoSips));
    EXPECT_EQ(stuck.code, 3) << stuck.out << stuck.err;
    const std::string said = std::regex_replace(stuck.err.substr(stuck.err.find("kernbench: error")),
                                                std::regex("[0-9]+\\.[0-9]+ ns"), "T ns");
    EXPECT_EQ(said.substr(0, words.size()), words);
    EXPECT_EQ(said.find_first_not_of('\n', words.size()), std::string::npos) << said;
  }
}

/// A slot that works in an order in which it reads what it has not made would read whatever lies there.
TEST(PipelineTool, TheOrderOfTheDocumentHasToBeOneOfItsDataFlow) {
  const Tool tool;
  const std::string first = "  first: {kind: dfg, device: a, inputs: [x], outputs: [h], data: \"h = relu(x)\"}\n",
                    second = "  second: {kind: dfg, device: a, inputs: [h], outputs: [y], data: \"y = neg(h)\"}\n";
  const auto document = [](const std::string& tasks) {
    return R"(name: turned
devices: {a: {kind: npu, idx: 0}}
tensors: {x: {shape: [4], dtype: f32}, h: {shape: [4], dtype: f32}, y: {shape: [4], dtype: f32}}
supertasks:
  out: {kind: output, inputs: [y], outputs: []}
)" + tasks +
           R"(  in: {kind: input, inputs: [], outputs: [x]}
metadata:
  tensors: {inputs: {x: {shape: [4], dtype: f32, idx: 0}}, outputs: {y: {shape: [4], dtype: f32, idx: 0}}}
  tensor_slices:
    inputs: {x: {placements: [[0, 4]], origin: x, dtype: f32, device: a}}
    outputs: {y: {placements: [[0, 4]], origin: y, dtype: f32, device: a}}
)";
  };
  std::ofstream(tool.file("turned.yaml")) << document(second + first);
  std::ofstream(tool.file("flow.yaml")) << document(first + second);
  EXPECT_EQ(tool(with({"pipeline", "run", "turned.yaml"}, kTwoSips)).code, 0);
  EXPECT_EQ(tool(with({"pipeline", "run", "flow.yaml", "--order", "document"}, kTwoSips)).code, 0);
  const Outcome refused = tool(with({"pipeline", "run", "turned.yaml", "--order", "document"}, kTwoSips));
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "turned.yaml:6:43: error: $.supertasks.second reads 'h', which $.supertasks.first makes behind it\n"
            "  hint: write the document in the order of its data flow, or leave --order document out\n");
}

std::string replaced(std::string text, const std::string& old, const std::string& made) {
  EXPECT_NE(text.find(old), std::string::npos) << old;
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += made.size())
    text.replace(at, old.size(), made);
  return text;
}

/// The same document with its weights in files of PyTorch: parts of views with strides, to the bit and the picosecond.
TEST(PipelineTool, WeightsOfPyTorchGiveTheRunOfThoseOfSafetensors) {
  const Tool tool;
  ASSERT_EQ(
      tool({"pipeline", "export", "--tp", "2", "--in", "24", "--hidden", "32", "--out", "20", "--output", "mlp.json"})
          .code,
      0);
  const Outcome written = tool.shell(std::string(KERNBENCH_PYTHON) + " " +
                                     quoted(std::string(KERNBENCH_SOURCE_DIR) + "/tests/pipeline/write_weights.py") +
                                     " mlp.safetensors w.pt w.pt2");
  ASSERT_EQ(written.code, 0) << "needs Debian's python3-torch, which make test installs\n" << written.err;
  const std::string document = read(tool.file("mlp.json"));
  const auto run = [&](const std::string& file) {
    const Outcome outcome = tool(with({"pipeline", "run", file, "--outputs", file + ".out", "--json", "-"}, kTwoSips));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return row_of(outcome, "row", "pipeline")["latency_ns"].get<double>();
  };
  const double latency = run("mlp.json");
  for (const auto& [format, weights] : {std::pair("torch.save", "w.pt"), std::pair("torch.export", "w.pt2")}) {
    const std::string file = std::string(format) + ".json";
    std::ofstream(tool.file(file)) << replaced(replaced(document, "\"safetensors\"", "\"" + std::string(format) + "\""),
                                               "mlp.safetensors", weights);
    EXPECT_EQ(run(file), latency) << format;
    EXPECT_TRUE(read(tool.file(file + ".out")) == read(tool.file("mlp.json.out"))) << format;
  }
  // A name that the file does not hold is told with its place in the document.
  std::ofstream(tool.file("torch.save.json"))
      << replaced(replaced(replaced(document, "\"safetensors\"", "\"torch.save\""), "mlp.safetensors", "w.pt"),
                  "\"name\": \"down.bias\"", "\"name\": \"down.bais\"");
  const Outcome refused = tool(with({"pipeline", "run", "torch.save.json"}, kTwoSips));
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_NE(refused.err.find("'down.bais', which 'w.pt' does not hold\n  hint: did you mean 'down.bias'?"),
            std::string::npos)
      << refused.err;
}

/// 64 B go to the host and come back, 128 B go through its memory. Without refreshes, of which a longer pass meets
/// another number.
TEST(PipelineTool, TheHostIsAsFastAsItsOptionsSay) {
  const Tool tool;
  const auto latency = [&](const std::vector<std::string>& options) {
    const Outcome outcome = tool(
        with(with({"pipeline", "run", kExamples + "kinds/cpu.yaml", "--set", "cube.hbm.refresh=none", "--json", "-"},
                  kTwoSips),
             options));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return row_of(outcome, "row", "pipeline")["latency_ns"].get<double>();
  };
  const double usual = latency({});
  EXPECT_NEAR(latency({"--host-link", "0.001"}) - usual, 2 * 64e3, 10);
  EXPECT_NEAR(latency({"--host-bandwidth", "0.001"}) - usual, 128e3, 10);
  EXPECT_NEAR(latency({"--host-flops", "0.001"}) - usual, 16e3, 10);  // 16 elements
}

TEST(PipelineTool, LoadingIsApartUnlessItIsAskedFor) {
  const Tool tool;
  const auto run = [&](const std::vector<std::string>& options) {
    const Outcome outcome =
        tool(with(with({"pipeline", "run", kExamples + "kinds/dfg.yaml", "--json", "-"}, kTwoSips), options));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const nlohmann::json row = row_of(outcome, "row", "pipeline");
    return std::pair(row["latency_ns"].get<double>(), row["loading_ns"].get<double>());
  };
  const auto [apart, loading] = run({"--host-io", "timed"});
  EXPECT_GT(loading, run({}).second);  // where host copies take no time it is the mapping of addresses alone
  EXPECT_NEAR(run({"--host-io", "timed", "--include-load"}).first, apart + loading, 1e-3);
}

/// The same results from other places, in another time; what no tensor is called is refused.
TEST(PipelineTool, TensorsLieWhereTheUserWantsThem) {
  const Tool tool;
  const std::vector<std::string> words =
      with({"pipeline", "run", kExamples + "kinds/dfg.yaml", "--inputs", kExamples + "kinds/inputs.safetensors",
            "--expect", kExamples + "kinds/expected.safetensors", "--json", "-"},
           {"--topology", "minimal", "--set", "sip.cube_mesh.w=2"});
  std::set<double> latencies;
  for (const std::vector<std::string>& options : {std::vector<std::string>{},
                                                  {"--place", "x:cube=row_wise,pe=row_wise"},
                                                  {"--place", "y:cube=replicate,pe=row_wise"},
                                                  {"--gemm-placement", "cube=row_wise,pe=row_wise"}}) {
    const Outcome outcome = tool(with(words, options));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(row_of(outcome, "row", "pipeline")["check"], "ok");
    latencies.insert(row_of(outcome, "row", "pipeline")["latency_ns"].get<double>());
  }
  EXPECT_EQ(latencies.size(), 4U);
  const Outcome unknown = tool(with(words, {"--place", "z:cube=row_wise,pe=row_wise"}));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--place names 'z', which is no tensor"), std::string::npos) << unknown.err;
}

/// Defaults on either side, a single pass, refreshes and all. Tensors lie at the same addresses and passes begin at the
/// same time, so that both meet the same rows and refreshes.
TEST(PipelineTool, ARunOfAnExportedDocumentTakesTheTimeOfTheDirectRun) {
  const Tool tool;
  std::ofstream(tool.file("model.yaml")) << R"(layers: 2
width: 256
heads: 8
kv_heads: 4
head_dim: 32
mlp_width: 512
gated: true
activation: silu
norm: rms
epsilon: 1e-5
vocabulary: 512
position: rotary
rope_theta: 10000
positions: 64
biases: false
tied: false
)";
  // Without refreshes, which fall here into one of the two and there into the other.
  const std::vector<std::string> quiet{"--set", "cube.hbm.refresh=none", "--json", "-"};
  const std::vector<std::string> two = with(with(kTwoSips, {"--set", "sip.cube_mesh.w=2"}), quiet);
  const std::vector<std::string> mlp{"--batch", "64"}, transformer{"--ends", "0", "--decode", "0"},
      layers{"--model", "model.yaml", "--layers", "2", "--prompt", "64"};
  struct Case {
    std::vector<std::string> direct, sizes, parallel, machine;
    const char* layer;
  };
  for (const Case& one :
       {Case{{"run", "tp_mlp"}, {}, {"--tp", "2"}, two, "mlp"},
        Case{{"run", "tp_mlp"},
             mlp,
             {"--tp", "4"},
             with({"--topology", "ring8", "--set", "system.sips.count=4", "--fidelity", "fast"}, quiet),
             "mlp"},
        Case{with({"run", "tp_transformer"}, transformer), layers, {"--tp", "2"}, two, "all"},
        Case{with({"run", "tp_transformer"}, transformer), layers, {"--tp", "1", "--pp", "2"}, two, "all"}}) {
    const bool perceptron = std::string(one.layer) == "mlp";
    const std::vector<std::string> direct_options =
        with(with(with(one.direct, one.sizes), perceptron ? std::vector<std::string>() : one.parallel), one.machine);
    ASSERT_EQ(tool(with(with({"pipeline", "export", "--output", "exported.json"}, one.sizes), one.parallel)).code, 0);
    const Outcome run = tool(with({"pipeline", "run", "exported.json"}, one.machine)), direct = tool(direct_options);
    ASSERT_EQ(run.code, 0) << run.err;
    ASSERT_EQ(direct.code, 0) << direct.err;
    const double expected = row_of(direct, "layer", one.layer)["time_ns"];
    // A perceptron's layers are timed apart: the rank waits between them, and the second launch is not there ahead.
    const nlohmann::json first = row_of(direct, "layer", "fc1");
    const double waits = perceptron ? first["launch_ns"].get<double>() - first["kernel_ns"].get<double>() : 0;
    const double latency = row_of(run, "row", "pipeline")["latency_ns"];
    EXPECT_LE(latency, 1.02 * expected);
    EXPECT_GE(latency, 0.98 * expected - waits);
  }
}

/// Queues between stages are installed by a transfer.
TEST(PipelineTool, TransfersBeforeTheFirstPassReadNothingThatNobodyWrote) {
  const Tool tool;
  ASSERT_EQ(
      tool({"pipeline", "export", "--pp", "2", "--in", "64", "--hidden", "64", "--out", "64", "--output", "mlp.json"})
          .code,
      0);
  const Outcome outcome = tool(with({"pipeline", "run", "mlp.json", "--debug"}, kTwoSips));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err.find("nobody wrote"), std::string::npos) << outcome.err;
}

TEST(PipelineTool, ProblemsOfADocumentEndWithCode2) {
  const Tool tool;
  const Outcome outcome = tool({"pipeline", "check", kExamples + "all_kinds.yaml", "--topology", "minimal"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("all_kinds.yaml:8:26: error: $.devices.npu1.idx is 1, but the machine has 1 SIP\n"
                             "  hint: give 0, or a larger machine with --topology"),
            std::string::npos)
      << outcome.err;
}

/// Two stages of about equal length: while the second works on a request, the first works on the next.
TEST(PipelineTool, StagesOverlapSuccessiveRequests) {
  const Tool tool;
  ASSERT_EQ(
      tool({"pipeline", "export", "--pp", "2", "--in", "64", "--hidden", "64", "--out", "64", "--output", "mlp.json"})
          .code,
      0);
  const Outcome one = tool(with({"pipeline", "run", "mlp.json", "--json", "-"}, kTwoSips));
  const Outcome four = tool(with({"pipeline", "run", "mlp.json", "--requests", "4", "--json", "-"}, kTwoSips));
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(four.code, 0) << four.err;
  const double single = row_of(one, "row", "pipeline")["requests_per_s"],
               several = row_of(four, "row", "pipeline")["requests_per_s"];
  EXPECT_GT(several, 1.1 * single);
  EXPECT_LT(several, 2 * single);  // no stage is longer than half of a request
  // A request is not faster for the others, and the last of four does not wait for all of them twice.
  const double alone = row_of(one, "row", "pipeline")["latency_ns"],
               among = row_of(four, "row", "pipeline")["latency_ns"];
  EXPECT_GE(among, 0.99 * alone);
  EXPECT_LE(among, 4 / several * 1e9);
  // Each slot does the same four times over: its share of a pass grows with the throughput.
  const auto computing = [](const Outcome& outcome, const char* slot) {
    const nlohmann::json all = nlohmann::json::parse(outcome.out);
    for (const nlohmann::json& row : all["results"]) {
      if (row["row"] != "slot" || row["slot"] != slot) continue;
      EXPECT_LE(row["computing"].get<double>() + row["communicating"].get<double>(), 1.0001) << slot;
      return row["computing"].get<double>();
    }
    return 0.0;
  };
  for (const char* slot : {"npu0", "npu1"})
    EXPECT_NEAR(computing(four, slot) / computing(one, slot), several / single, 0.05) << slot;
}

/// Boxes of the drawing by their titles: x, y, width, height.
std::map<std::string, std::array<double, 4>> boxes_of(const std::string& svg) {
  static const std::regex box(
      "<title>([^<]*)</title><rect x=\"([^\"]*)\" y=\"([^\"]*)\" width=\"([^\"]*)\" "
      "height=\"([^\"]*)\"");
  std::map<std::string, std::array<double, 4>> found;
  for (std::sregex_iterator at(svg.begin(), svg.end(), box); at != std::sregex_iterator(); ++at)
    found[(*at)[1]] = {std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4]), std::stod((*at)[5])};
  return found;
}

TEST(PipelineTool, ShowPutsSupertasksUnderTheirSlotsInTheOrderOfTheFlow) {
  const Tool tool;
  const Outcome shown = tool(with({"pipeline", "show", kExamples + "all_kinds.yaml"}, kTwoSips));
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto boxes = boxes_of(shown.out);
  EXPECT_EQ(boxes.size(), 3U + 19U);  // slots, supertasks
  for (const auto& [name, slot] : std::map<std::string, std::string>{
           {"fx", "npu0"}, {"dfg", "npu1"}, {"ar0", "npu0"}, {"ar1", "npu1"}, {"tx", "npu1"}, {"rx", "host"}})
    EXPECT_EQ(boxes.at(name)[0], boxes.at("slot " + slot)[0]) << name;
  const std::vector<std::string> flow{"in", "dfg", "ar1", "ag1", "rs1", "aa1", "rd1", "bc1", "tx", "post", "out"};
  for (std::size_t i = 1; i < flow.size(); ++i) EXPECT_GT(boxes.at(flow[i])[1], boxes.at(flow[i - 1])[1]) << flow[i];
  EXPECT_EQ(boxes.at("tx")[1], boxes.at("rx")[1]);  // members of one exchange stand side by side
  for (const auto& [name, a] : boxes) {
    for (const auto& [other, b] : boxes) {
      const bool apart = a[0] + a[2] <= b[0] || b[0] + b[2] <= a[0] || a[1] + a[3] <= b[1] || b[1] + b[3] <= a[1];
      EXPECT_TRUE(name == other || apart) << name << " lies over " << other;
    }
  }
}

/// KERNBENCH_REGENERATE=1 in the environment writes the picture that docs/pipeline.md has.
TEST(PipelineTool, ThePictureOfThePageIsWhatShowDraws) {
  const Tool tool;
  const Outcome shown = tool(with({"pipeline", "show", kExamples + "all_kinds.yaml", "--output", "p.svg"}, kTwoSips));
  ASSERT_EQ(shown.code, 0) << shown.err;
  const std::string picture = std::string(KERNBENCH_SOURCE_DIR) + "/docs/images/pipeline/all_kinds.svg",
                    drawn = read(tool.file("p.svg"));
  if (std::getenv("KERNBENCH_REGENERATE") != nullptr) std::ofstream(picture) << drawn;
  EXPECT_TRUE(read(picture) == drawn) << picture << " is not in step: run this test with KERNBENCH_REGENERATE=1";
}

/// Slices of outputs that overlap hold the same elements; if they do not, the run says so.
TEST(PipelineTool, ReplicasThatDifferEndWithCode1) {
  const Tool tool;
  std::ifstream file(kExamples + "kinds/all_reduce.yaml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto replace = [&](const std::string& old, const std::string& made) {
    ASSERT_NE(text.find(old), std::string::npos);
    text.replace(text.find(old), old.size(), made);
  };
  // Smallest elements in the place of a copy of the largest.
  replace("min1: {placements: [[0, 2], [0, 4]], origin: all_reduce_min",
          "min1: {placements: [[0, 2], [0, 4]], origin: all_reduce_max");
  std::ofstream(tool.file("p.yaml")) << text;
  const Outcome outcome = tool(
      with({"pipeline", "run", "p.yaml", "--inputs", kExamples + "kinds/inputs.safetensors", "--json", "-"}, kTwoSips));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const nlohmann::json summary = row_of(outcome, "row", "pipeline");
  EXPECT_EQ(summary["check"], "wrong");
  EXPECT_EQ(summary["replica_conflicts"], 8);  // no two elements of x that meet are equal
}

TEST(PipelineTool, ExportSaysWhichOptionsBelongTogether) {
  const Tool tool;
  const auto refused = [&](std::vector<std::string> more) {
    const Outcome outcome = tool(with({"pipeline", "export", "--output", "p.json"}, more));
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_EQ(refused({"--model", "llama3-8b", "--hidden", "64"}),
            "kernbench: error: --hidden together with --model\n  hint: the model says its sizes\n");
  EXPECT_EQ(refused({"--prompt", "4"}),
            "kernbench: error: --prompt without --model\n  hint: it is of layers of a language model\n");
  EXPECT_EQ(refused({"--model", "llama3-8b", "--layers", "33"}),
            "kernbench: error: --layers is 33\n  hint: model 'llama3-8b' has 32\n");
  EXPECT_EQ(refused({"--model", "llama3-8b", "--pp", "2"}),
            "kernbench: error: --pp is 2: give 1 to 1, the number of layers\n");
  EXPECT_EQ(refused({"--model", "llama3-8b", "--tp", "3"}),
            "kernbench: error: --tp is 3: give a divisor of the 32 heads\n");
  // Mistral's: a document of all positions would be another model.
  std::ofstream(tool.file("m.json")) << R"({"model_type": "mistral", "hidden_size": 32, "intermediate_size": 48,
    "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2,
    "max_position_embeddings": 64, "vocab_size": 70, "sliding_window": 8})";
  EXPECT_EQ(
      refused({"--model", "m.json", "--prompt", "9"}),
      "kernbench: error: --prompt is 9\n  hint: model 'm.json' has a sliding window of 8, and every token sees all "
      "before: give 8 at most\n");
}

// YAML takes all of these.
TEST(PipelineTool, AFileNamedJsonHasToBeJson) {
  const Tool tool;
  const std::string hint =
      "\n  hint: check quotes, commas and brackets around here; YAML goes into a file named .yaml\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\n \"name\": \"x\",\n}\n", "p.json:3:1: error: not valid JSON"},
      {"{\"name\": \"x\" # a name\n}", "p.json:1:14: error: not valid JSON"},
      {"{'name': \"x\"}", "p.json:1:2: error: not valid JSON"},
      {"name: x\n", "p.json:1:2: error: not valid JSON"},
      {"{\"name\": \"x\",\n", "p.json:2:1: error: not valid JSON: it ends too early"},
      {"{\"name\": \"x\"}\n{}", "p.json:2:1: error: not valid JSON"},
  };
  for (const auto& [text, error] : cases) {
    std::ofstream(tool.file("p.json")) << text;
    const Outcome outcome = tool({"pipeline", "check", "p.json"});
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_EQ(outcome.err, error + hint) << text;
  }
}

}  // namespace
}  // namespace kernbench
